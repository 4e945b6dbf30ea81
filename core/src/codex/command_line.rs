//! The command inside a shell command line. Codex shows `/bin/bash -lc 'cargo test'`, and permissions are about `cargo test`.

/// The shells that codex starts, each with the option before the command.
const SHELLS: [&str; 6] =
    ["/bin/bash -lc ", "/bin/bash -c ", "/usr/bin/bash -lc ", "/bin/sh -lc ", "/bin/sh -c ", "/bin/zsh -lc "];

/// The command inside the shell command line. If the command is not clearly one quoted word, the whole line is returned, because a wrong
/// guess could allow another command than the one that was requested.
pub(super) fn inner(shown: &str) -> String {
    let quoted = SHELLS.iter().find_map(|shell| shown.strip_prefix(shell));
    quoted.and_then(unquoted).unwrap_or_else(|| shown.to_owned())
}

/// The text of a shell word, if the input is exactly one word.
fn unquoted(word: &str) -> Option<String> {
    let mut plain = String::with_capacity(word.len());
    let mut rest = word;
    if rest.is_empty() {
        return None;
    }
    while let Some(first) = rest.chars().next() {
        match first {
            '\'' => {
                let (inside, after) = rest.get(1..)?.split_once('\'')?;
                plain.push_str(inside);
                rest = after;
            }
            '"' => {
                let (inside, after) = rest.get(1..)?.split_once('"')?;
                // Inside double quotes a shell replaces variables, commands and escapes.
                if inside.contains(['$', '`', '\\', '!']) {
                    return None;
                }
                plain.push_str(inside);
                rest = after;
            }
            '\\' => {
                let escaped = rest.chars().nth(1).filter(|it| *it != '\n')?;
                plain.push(escaped);
                rest = rest.get(1 + escaped.len_utf8()..)?;
            }
            it if it.is_alphanumeric() || "-_./=:,@+%".contains(it) => {
                plain.push(it);
                rest = rest.get(it.len_utf8()..)?;
            }
            _ => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::inner;

    #[test]
    fn only_what_is_plainly_one_word_is_taken_out_of_its_shell() {
        assert_eq!(inner("/bin/bash -lc 'echo a > b && cat b'"), "echo a > b && cat b");
        assert_eq!(inner("/bin/bash -lc ls"), "ls");
        assert_eq!(inner(r#"/bin/bash -lc "echo 'it'""#), "echo 'it'");
        assert_eq!(inner(r"/bin/bash -lc 'echo it'\''s'"), "echo it's");
        for kept in [
            "/bin/bash -lc 'ls' ; rm x",
            "/bin/bash -lc ls x",
            r#"/bin/bash -lc "echo $HOME""#,
            "/bin/bash -lc 'open",
            "/bin/bash -lc ",
            "python3 -c 'x'",
        ] {
            assert_eq!(inner(kept), kept);
        }
    }
}
