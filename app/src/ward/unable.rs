//! Finds in what a ward has said that it could not look at the work at all: its program or its modules are missing, or it found no tests. Pure,
//! like [`findings`](super::findings).

/// Why a green ward says nothing about the work: the line in which it tells that it has found no tests. None if one test ran.
pub fn untested(output: &str) -> Option<String> {
    let plain = anstream::adapter::strip_str(output).to_string();
    let mut empty = None;
    for line in plain.lines().map(str::trim) {
        match ran_tests(line) {
            Some(true) => return None,
            Some(false) => empty = empty.or_else(|| Some(line.to_owned())),
            None => {}
        }
    }
    empty
}

/// Whether a line says that tests ran, or that there are none. Other lines say neither.
fn ran_tests(line: &str) -> Option<bool> {
    // Go has a line for each package.
    if line.ends_with("[no test files]") || line.starts_with("ok ") && line.ends_with("[no tests to run]") {
        return Some(false);
    }
    if line.starts_with("ok ") {
        return Some(true);
    }
    // Jest and Vitest, when they are told that this is fine.
    if ["No tests found, exiting with code 0", "No test files found, exiting with code 0"].contains(&line) {
        return Some(false);
    }
    // Cargo has a line for each file, unittest and Node have one for all.
    let counts = [("running ", " test"), ("Ran ", " test"), ("# tests ", ""), ("\u{2139} tests ", "")];
    counts.iter().find_map(|(before, after)| {
        let (number, rest) = split_number(line.strip_prefix(before)?)?;
        let ends = if after.is_empty() { rest.is_empty() } else { rest.starts_with(after) };
        ends.then_some(number > 0)
    })
}

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Why a red ward says nothing about the work, with the line that shows it. Only for a commit on which no agent has worked yet: later the same
/// line can be a mistake of an agent.
pub fn unable(output: &str) -> Option<String> {
    let plain = anstream::adapter::strip_str(output).to_string();
    plain.lines().map(str::trim).find_map(|line| Some(format!("{} ({line})", sign(line)?)))
}

/// A module of the project itself that is missing is no sign: a test may be there before its module.
fn sign(line: &str) -> Option<&'static str> {
    let after = |words: &str| line.split_once(words).map(|(_, after)| after);
    let shell = ["sh: ", "/bin/sh: "].iter().any(|shell| line.starts_with(shell));
    if shell && line.ends_with(": not found") || line.ends_with(": command not found") {
        return Some("a program is missing");
    }
    // The interpreter itself says so, before a test is read.
    if line.split_once(": No module named ").is_some_and(|(program, _)| program.contains("python")) {
        return Some("a Python module is missing");
    }
    if after("Error: Cannot find module '").is_some_and(|module| !module.starts_with(['.', '/'])) {
        return Some("a package of Node is missing");
    }
    // Before version 10, npm began its errors otherwise.
    if ["npm error Missing script: ", "npm ERR! Missing script: "].iter().any(|words| line.starts_with(words)) {
        return Some("package.json has no such script");
    }
    // What `npm init` writes as the script `test`.
    if line == "Error: no test specified" {
        return Some("there are no tests");
    }
    (line == "NO TESTS RAN" || line.contains(" no tests ran in ")).then_some("there are no tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_or_module_and_missing_tests_are_told_from_red_tests() {
        let why = |output: &str| unable(output).unwrap_or_default();
        assert_eq!(
            why("/usr/bin/python3: No module named pytest\n"),
            "a Python module is missing (/usr/bin/python3: No module named pytest)"
        );
        assert!(why("> test\n> jest\n\nsh: 1: jest: not found\n").starts_with("a program is missing"));
        assert!(why("Error: Cannot find module 'express'\n").starts_with("a package of Node is missing"));
        assert!(why("===== no tests ran in 0.01s =====\n").starts_with("there are no tests"));
        assert!(why("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n").starts_with("there are no tests"));
        assert!(why("> x@1.0.0 test\nError: no test specified\n").starts_with("there are no tests"));
        assert!(why("npm ERR! Missing script: \"test\"\n").starts_with("package.json has no such script"));
        // Tests that are there before what they test are red.
        for red in
            ["ModuleNotFoundError: No module named 'mul'", "Error: Cannot find module './mul'", "page: not found"]
        {
            assert_eq!(unable(red), None);
        }
        assert_eq!(unable("FAILED test_calc.py::test_add - assert 3 == 4\n1 failed in 0.02s\n"), None);
    }

    #[test]
    fn a_green_ward_without_tests_is_told_from_one_with_tests() {
        for empty in [
            "running 0 tests\n\ntest result: ok. 0 passed\n\n   Doc-tests x\n\nrunning 0 tests\n",
            "?   \texample.com/x\t[no test files]\n",
            "ok  \texample.com/x\t0.002s [no tests to run]\n",
            "Ran 0 tests in 0.000s\n\nOK\n",
            "No tests found, exiting with code 0\n",
            "\u{2139} tests 0\n\u{2139} suites 0\n",
        ] {
            assert!(untested(empty).is_some_and(|line| empty.contains(&line)), "{empty}");
        }
        for tested in [
            "running 0 tests\n\nrunning 1 test\n",
            "?   \texample.com/x\t[no test files]\nok  \texample.com/y\t0.002s\n",
            "Ran 3 tests in 0.001s\n",
            "# tests 12\n",
            "all is well\n",
            "",
        ] {
            assert_eq!(untested(tested), None, "{tested}");
        }
    }
}
