//! The sections of a project's spec (`.fctry/spec.md`) and a fingerprint of each, so that a build can tell which of them have changed since
//! a chunk was built.

use crate::state_file::{StatusFolder, read_bounded};
use hatchery_core::status::Document;
use std::collections::BTreeMap;

const MAX_SPEC_BYTES: usize = 16 * 1024 * 1024;
const MAX_CONFIG_BYTES: usize = 1024 * 1024;

/// The fingerprint of each section that has an alias, by `#alias`.
pub type Fingerprints = BTreeMap<String, String>;

/// The fingerprints of the spec as it is now. None if there is no spec that can be read.
pub fn fingerprints(folder: &StatusFolder) -> Option<Fingerprints> {
    let spec = read_bounded(&folder.path().join("spec.md"), MAX_SPEC_BYTES).ok().flatten()?;
    Some(of_text(&String::from_utf8_lossy(&spec)))
}

/// The version of the spec that the registry of versions (`.fctry/config.json`) names.
pub fn registered_version(folder: &StatusFolder) -> Option<String> {
    let config = read_bounded(&folder.path().join("config.json"), MAX_CONFIG_BYTES).ok().flatten()?;
    let config = Document::parse(&String::from_utf8_lossy(&config)).ok()?;
    config.get(&"versions.spec.current".parse().ok()?)?.words()
}

/// A section begins with a heading `### 2.2 Core flow {#core-flow}` and ends before the next heading of its level or above.
fn of_text(spec: &str) -> Fingerprints {
    let mut open: Vec<(usize, String, crc32fast::Hasher)> = Vec::new();
    let mut found = Fingerprints::new();
    let mut close = |open: &mut Vec<(usize, String, crc32fast::Hasher)>, level: usize| {
        while open.last().is_some_and(|(known, ..)| *known >= level) {
            if let Some((_, alias, hash)) = open.pop() {
                found.insert(alias, format!("{:08x}", hash.finalize()));
            }
        }
    };
    for line in spec.lines() {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && line[level..].starts_with(' ') {
            close(&mut open, level);
            if let Some(alias) = line.rsplit_once("{#").and_then(|(_, rest)| rest.trim_end().strip_suffix('}')) {
                open.push((level, format!("#{alias}"), crc32fast::Hasher::new()));
            }
        }
        for (.., hash) in &mut open {
            hash.update(line.trim_end().as_bytes());
            hash.update(b"\n");
        }
    }
    close(&mut open, 0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_changes_with_its_own_text_and_that_of_its_parts() {
        let spec = "# A\n## 2 Flows {#flows}\nfirst\n### 2.1 Core {#core}\ncore\n## 3 Rules {#rules}\nrules\n";
        let before = of_text(spec);
        assert_eq!(before.keys().collect::<Vec<_>>(), ["#core", "#flows", "#rules"]);
        let after = of_text(&spec.replace("\ncore\n", "\ncore, but faster\n"));
        let changed: Vec<_> = before.keys().filter(|alias| before[*alias] != after[*alias]).collect();
        assert_eq!(changed, ["#core", "#flows"]);
        assert_eq!(of_text(&spec.replace('\n', "  \n")), before, "white space at the end of a line is no change");
    }
}
