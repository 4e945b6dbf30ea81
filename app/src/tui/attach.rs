//! `/attach`: reads a file for your text, or makes a file of a paste that is too long for a message.

use super::update::{Attach, Attached};
use crate::clock;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

/// A longer file is named in your text, and the agent reads it. A message has room for more, so that yours fits beside it.
const MAX_TEXT_BYTES: u64 = 512 << 10;

/// Where files are looked for, and where pastes are kept.
#[derive(Debug)]
pub struct Attachments {
    /// The project.
    pub root: PathBuf,
    /// Readable by the user only.
    pub folder: PathBuf,
}

impl Attachments {
    pub fn take(&self, what: Attach) -> Attached {
        match what {
            Attach::File(path) => self.file(&path).unwrap_or_else(|error| Attached::Failed {
                why: match error.kind() {
                    std::io::ErrorKind::NotFound => format!("There is no file {path} in the project."),
                    std::io::ErrorKind::PermissionDenied => format!("You may not read {path}."),
                    _ => format!("{path} cannot be read: {error}."),
                },
                command: format!("/attach {path}"),
            }),
            Attach::Paste(text) => self.paste(&text).unwrap_or_else(|error| Attached::Failed {
                why: format!("The paste cannot be kept in {}: {error}.", self.folder.display()),
                command: "/attach".to_owned(),
            }),
        }
    }

    fn file(&self, path: &str) -> std::io::Result<Attached> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let whole = match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.root.join(path),
        };
        let about = std::fs::metadata(&whole)?;
        if !about.is_file() {
            return Err(std::io::Error::other("it is no file"));
        }
        // Agents need not work in the same folder.
        let named = whole.display().to_string();
        if about.len() > MAX_TEXT_BYTES {
            return Ok(Attached::Path { path: named, bytes: about.len() });
        }
        Ok(match String::from_utf8(std::fs::read(&whole)?) {
            Ok(text) => Attached::Text { path: path.to_owned(), text },
            Err(_) => Attached::Path { path: named, bytes: about.len() },
        })
    }

    fn paste(&self, text: &str) -> std::io::Result<Attached> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(format!("paste-{}.txt", clock::now().0));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(Attached::Path { path: path.display().to_string(), bytes: text.len() as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_text_is_taken_in_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let attachments = Attachments { root: folder.path().to_owned(), folder: folder.path().join("kept") };
        std::fs::write(folder.path().join("a.txt"), "one\ntwo").unwrap();
        std::fs::write(folder.path().join("b.bin"), [0xff, 0x00]).unwrap();
        let take = |path: &str| attachments.take(Attach::File(path.into()));
        assert_eq!(take("a.txt"), Attached::Text { path: "a.txt".into(), text: "one\ntwo".into() });
        assert!(matches!(take("b.bin"), Attached::Path { bytes: 2, .. }));
        let failed = |path: &str, why: &str| Attached::Failed { why: why.into(), command: format!("/attach {path}") };
        assert_eq!(take("c.txt"), failed("c.txt", "There is no file c.txt in the project."));
        assert_eq!(take("."), failed(".", ". cannot be read: it is no file."));
        let Attached::Path { path, .. } = attachments.take(Attach::Paste("long".into())) else { panic!() };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "long");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
