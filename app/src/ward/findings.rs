//! Finds in what a ward has said the lines that say what is wrong, for a prompt. Pure: knows the shapes in which common tools complain, and
//! nothing of how they were run.

/// As many as a model can make use of; the first are the ones that count.
const MAX_LINES: usize = 50;
/// Longer lines are cut: what is wrong stands at their beginning.
const MAX_CHARS: usize = 400;
/// When no shape is known: the end of the output, where most tools sum up.
const LAST_LINES: usize = 30;
/// How many of the lines after a panic belong to it: its message, and what was left and right of it.
const PANIC_LINES: usize = 4;

/// The lines that say what is wrong, in their order and each once. Empty only if the output is.
pub fn findings(output: &str) -> Vec<String> {
    let plain = anstream::adapter::strip_str(output).to_string();
    // A progress bar writes over its own line.
    let lines: Vec<&str> = plain.lines().map(|line| line.trim_end().rsplit('\r').next().unwrap_or_default()).collect();
    let mut found = Vec::new();
    let mut file = None;
    for (at, line) in lines.iter().enumerate() {
        let after = &lines[at + 1..];
        match shape(line) {
            LineShape::Alone => note(&mut found, line),
            LineShape::Located => {
                note(&mut found, line);
                after
                    .iter()
                    .take(1)
                    .filter(|next| next.trim_start().starts_with("--> "))
                    .for_each(|next| note(&mut found, next));
            }
            LineShape::Panic => {
                note(&mut found, line);
                let is_part = |next: &&&str| !next.is_empty() && !next.starts_with("note: ");
                after.iter().take(PANIC_LINES).take_while(is_part).for_each(|next| note(&mut found, next));
            }
            LineShape::OfFile => {
                file.into_iter().for_each(|file| note(&mut found, file));
                note(&mut found, line);
            }
            LineShape::Other if !line.is_empty() && !line.starts_with([' ', '\t']) => file = Some(line),
            LineShape::Other => {}
        }
    }
    if found.is_empty() {
        let said: Vec<&&str> = lines.iter().filter(|line| !line.trim().is_empty()).collect();
        said[said.len().saturating_sub(LAST_LINES)..].iter().for_each(|line| note(&mut found, line));
    }
    found.truncate(MAX_LINES);
    found
}

/// What a line says by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineShape {
    /// All of a complaint.
    Alone,
    /// A complaint of rustc, whose place is in the next line.
    Located,
    /// A panic, with what it said in the next lines.
    Panic,
    /// A complaint under the name of its file, as eslint has them.
    OfFile,
    Other,
}

fn shape(line: &str) -> LineShape {
    let text = line.trim_start();
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    let holds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    // What cargo says at the end repeats what stands above.
    if begins(&["error: could not compile", "error: aborting due to", "error: test failed, to rerun"]) {
        return LineShape::Other;
    }
    if line.starts_with("error[") || line.starts_with("error: ") {
        return LineShape::Located;
    }
    if text.starts_with("thread '") && text.contains("panicked at") || text.starts_with("panic: ") {
        return LineShape::Panic;
    }
    if is_place(text) && text.split_whitespace().nth(1) == Some("error") {
        return LineShape::OfFile;
    }
    let rust = text.starts_with("test ") && text.ends_with("... FAILED");
    let typescript = holds(&["): error TS", " - error TS"]);
    let pytest = line.starts_with("E   ") || begins(&["FAILED ", "ERROR "]) && holds(&[".py", "::"]);
    let unittest = ["FAIL: ", "ERROR: "].iter().any(|word| line.starts_with(word));
    let python = pytest || unittest || is_exception(line);
    let go = begins(&["--- FAIL", "FAIL\t"]) || has_go_place(text);
    let c = holds(&[": error:", ": fatal error:", ": undefined reference to "]);
    let npm = begins(&["npm ERR!", "npm error"]);
    let others = begins(&["not ok ", "● ", "✕ ", "✖ ", "AssertionError", "make: ***"]);
    match rust || typescript || python || go || c || npm || others {
        true => LineShape::Alone,
        false => LineShape::Other,
    }
}

/// `ImportError: …` or `json.decoder.JSONDecodeError: …`: the last line of a traceback, which says what happened.
fn is_exception(line: &str) -> bool {
    let Some((name, _)) = line.split_once(": ") else { return false };
    let is_name = name.chars().all(|char| char.is_ascii_alphanumeric() || "._".contains(char));
    is_name && ["Error", "Exception"].iter().any(|end| name.len() > end.len() && name.ends_with(end))
}

/// `12:3` at the beginning.
fn is_place(text: &str) -> bool {
    let place = text.split_whitespace().next().and_then(|word| word.split_once(':'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    place.is_some_and(|(line, column)| is_number(line) && is_number(column))
}

/// `file.go:12:3: ` or `file_test.go:12: `.
fn has_go_place(text: &str) -> bool {
    let place = text.split_once(".go:").map(|(file, rest)| (file, rest.split_once(": ").unwrap_or_default().0));
    place.is_some_and(|(file, place)| {
        !file.contains(' ') && !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    })
}

fn note(found: &mut Vec<String>, line: &str) {
    let line: String = line.chars().take(MAX_CHARS).collect();
    // The list is short once it is full, so looking through it costs little.
    if found.len() < MAX_LINES && !found.contains(&line) {
        found.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, expected: &[&str]) {
        assert_eq!(findings(output), expected, "{output}");
    }

    #[test]
    fn the_complaints_of_rust() {
        check(
            "   Compiling x v0.1.0\n\u{1b}[1m\u{1b}[91merror[E0308]\u{1b}[0m: mismatched types\n  \u{1b}[94m--> \u{1b}[0msrc/lib.rs:3:5\n   |\n3  |     1\n   |     ^ expected `()`\n\nerror: could not compile `x` (lib) due to 1 previous error\n",
            &["error[E0308]: mismatched types", "  --> src/lib.rs:3:5"],
        );
        check(
            "error: this `if` has identical blocks\n --> src/a.rs:1:2\n",
            &["error: this `if` has identical blocks", " --> src/a.rs:1:2"],
        );
        check(
            "running 2 tests\ntest good ... ok\ntest bad ... FAILED\n\nfailures:\n\n---- bad stdout ----\n\nthread 'bad' (123) panicked at src/lib.rs:9:5:\nassertion `left == right` failed\n  left: 1\n right: 2\nnote: run with `RUST_BACKTRACE=1`\n\nfailures:\n    bad\n\ntest result: FAILED. 1 passed; 1 failed\n\nerror: test failed, to rerun pass `--lib`\n",
            &[
                "test bad ... FAILED",
                "thread 'bad' (123) panicked at src/lib.rs:9:5:",
                "assertion `left == right` failed",
                "  left: 1",
                " right: 2",
            ],
        );
    }

    #[test]
    fn the_complaints_of_others() {
        check(
            "src/a.ts(12,3): error TS2322: Type 'string' is not assignable.\nsrc/b.ts:1:2 - error TS1005: ';' expected.\nFound 2 errors.\n",
            &[
                "src/a.ts(12,3): error TS2322: Type 'string' is not assignable.",
                "src/b.ts:1:2 - error TS1005: ';' expected.",
            ],
        );
        check(
            "\n/p/a.js\n  1:2  warning  meh  no-meh\n  12:3  error  'x' is not defined  no-undef\n  13:3  error  'y' is not defined  no-undef\n\n✖ 3 problems\n",
            &[
                "/p/a.js",
                "  12:3  error  'x' is not defined  no-undef",
                "  13:3  error  'y' is not defined  no-undef",
                "✖ 3 problems",
            ],
        );
        check(
            "    def test_a():\n>       assert 1 == 2\nE       assert 1 == 2\n\ntest_a.py:2: AssertionError\n=== short test summary ===\nFAILED test_a.py::test_a - assert 1 == 2\n",
            &["E       assert 1 == 2", "FAILED test_a.py::test_a - assert 1 == 2"],
        );
        check(
            "Traceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run\n    raise ImportError('Start')\nImportError: Start is not importable\n",
            &["ImportError: Start is not importable"],
        );
        check(
            "F.\n======\nFAIL: test_add (test_calc.T.test_add)\n------\nTraceback (most recent call last):\n  File \"t.py\", line 4\nAssertionError: 4 != 3\n\nFAILED (failures=1)\n",
            &["FAIL: test_add (test_calc.T.test_add)", "AssertionError: 4 != 3"],
        );
        check(
            "=== RUN   TestA\n    a_test.go:7: got 1\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/a\t0.002s\n./b.go:3:2: undefined: x\nsee x.go: it is fine\n",
            &[
                "    a_test.go:7: got 1",
                "--- FAIL: TestA (0.00s)",
                "FAIL\texample.com/a\t0.002s",
                "./b.go:3:2: undefined: x",
            ],
        );
        check(
            "a.c:3:5: warning: unused\na.c:4:1: error: expected ';'\na.c:1:10: fatal error: no.h: No such file\nmake: *** [Makefile:2: a] Error 1\n",
            &[
                "a.c:4:1: error: expected ';'",
                "a.c:1:10: fatal error: no.h: No such file",
                "make: *** [Makefile:2: a] Error 1",
            ],
        );
        check(
            "npm ERR! code ELIFECYCLE\nnpm error Missing script: \"test\"\n",
            &["npm ERR! code ELIFECYCLE", "npm error Missing script: \"test\""],
        );
    }

    #[test]
    fn what_has_no_known_shape_is_told_by_its_end() {
        check("", &[]);
        check("\n \n", &[]);
        check("it went wrong\n\nbadly\n", &["it went wrong", "badly"]);
        check("10%\r50%\r100% and broken", &["100% and broken"]);
        let long: String = (0..100).map(|number| format!("line {number}\n\n")).collect();
        let found = findings(&long);
        assert_eq!((found.len(), found[0].as_str(), found[29].as_str()), (30, "line 70", "line 99"));
    }

    #[test]
    fn a_flood_is_bounded_and_said_once() {
        let flood: String = (0..1_000).map(|number| format!("error: {number} {}\n", "ä".repeat(1_000))).collect();
        let found = findings(&flood);
        assert_eq!(found.len(), MAX_LINES);
        assert!(found.iter().all(|line| line.chars().count() == MAX_CHARS));
        check(&"test a ... FAILED\n".repeat(10), &["test a ... FAILED"]);
    }
}
