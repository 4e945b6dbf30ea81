//! `hatchery.toml` as it was read at one moment. What the user has agreed to, what is used and what is remembered as used is all
//! about this one text: the file may be changed at any time.

use super::Written;
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

    pub fn written(&self) -> Result<Written, Report> {
        toml::from_str(&self.text)
            .map_err(|error| Report::new(Code::Usage, format_args!("{} is not TOML: {error}", self.path.display())))
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
