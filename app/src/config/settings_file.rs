//! `hatchery.toml` as it was read at one moment. What the user has agreed to, what is used and what is remembered as used is all
//! about this one text: the file may be changed at any time.

use super::WrittenSettings;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use crate::shared_file;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    pub path: PathBuf,
    /// Empty if there is no file.
    text: String,
}

impl SettingsFile {
    /// As if there were none.
    pub fn missing(project: &Project) -> Self {
        Self { path: project.config_file(), text: String::new() }
    }

    /// The file need not be there.
    pub fn read(project: &Project) -> Result<Self, Report> {
        let missing = Self::missing(project);
        let doing = format!("{} cannot be read", missing.path.display());
        match shared_file::read(&missing.path).context(&doing)? {
            Some(bytes) => Ok(Self { text: String::from_utf8(bytes).context(&doing)?, ..missing }),
            None => Ok(missing),
        }
    }

    pub fn written(&self) -> Result<WrittenSettings, Report> {
        toml::from_str(&self.text).map_err(|error| {
            // The error's own text quotes the line, which may have a password in it.
            let place = error.span().map_or_else(String::new, |span| self.place(span.start));
            let (path, why) = (self.path.display(), error.message());
            Report::new(Code::Usage, format_args!("{path}{place} is not TOML: {why}"))
        })
    }

    /// The line and the column of a byte, both from 1.
    fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        format!(":{}:{}", before.matches('\n').count() + 1, line.chars().count() + 1)
    }

    /// A fingerprint (FNV-1a), which tells whether the file has changed since.
    pub fn mark(&self) -> String {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        format!("{:016x}", self.text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    /// The fingerprint of the file as it is now. None if it cannot be read.
    pub fn mark_now(project: &Project) -> Option<String> {
        Self::read(project).ok().map(|file| file.mark())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_by_its_place_and_without_its_line() {
        let told = |text: &str| {
            let file = SettingsFile { path: PathBuf::from("hatchery.toml"), text: text.to_owned() };
            file.written().unwrap_err().to_string()
        };
        let twice = "store = \"postgres://ann:secret@h/db\"\nport = 1\nstore = \"postgres://ann:secret@h/db\"";
        assert!(told(twice).starts_with("hatchery.toml:3:1 is not TOML: duplicate key"), "{}", told(twice));
        for slip in [
            "store = \"postgres://ann:secret@h/db",
            "store = postgres://ann:secret@h/db",
            "store \"postgres://ann:secret@h/db\"",
            "\"postgres://ann:secret@h/db\"",
            "[store.postgres://ann:secret@h/db]",
            "é = 1\nstore = 'postgres://ann:secret@h/db\"\nport = 1",
        ] {
            let told = told(slip);
            assert!(told.starts_with("hatchery.toml:") && !told.contains("secret"), "{slip}: {told}");
        }
    }
}
