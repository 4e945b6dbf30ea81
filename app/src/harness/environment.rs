//! The environment of a child process: what any program needs, what the harness needs, and what the settings name. Everything else is left
//! out, because a daemon may have been started from anywhere.

use std::collections::BTreeMap;

/// What any program needs.
const USUAL: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSH_AUTH_SOCK",
    "LC_ALL",
];

/// The variables that are passed on: the usual ones, those that begin with one of `prefixes`, and those in `named`.
pub fn clean(
    from: impl Iterator<Item = (String, String)>,
    prefixes: &[&str],
    named: &[String],
) -> BTreeMap<String, String> {
    let passes = |name: &str| {
        USUAL.contains(&name)
            || name.starts_with("LC_")
            || prefixes.iter().any(|prefix| name.starts_with(prefix))
            || named.iter().any(|it| it == name)
    };
    from.filter(|(name, _)| passes(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_passes() {
        let ours = ["PATH", "SECRET", "ANTHROPIC_API_KEY", "CLAUDECODE", "MY_TOOL", "LC_TIME"];
        let from = ours.iter().map(|name| ((*name).to_owned(), "x".to_owned()));
        let passed = clean(from, &["ANTHROPIC_"], &["MY_TOOL".to_owned()]);
        assert_eq!(passed.keys().collect::<Vec<_>>(), ["ANTHROPIC_API_KEY", "LC_TIME", "MY_TOOL", "PATH"]);
    }
}
