//! Finds in what a ward has said that it could not look at the work at all: its program or its modules are missing, or it found no tests. Pure,
//! like [`findings`](super::findings).

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
    if line.starts_with("npm error Missing script: ") {
        return Some("package.json has no such script");
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
        // Tests that are there before what they test are red.
        for red in
            ["ModuleNotFoundError: No module named 'mul'", "Error: Cannot find module './mul'", "page: not found"]
        {
            assert_eq!(unable(red), None);
        }
        assert_eq!(unable("FAILED test_calc.py::test_add - assert 3 == 4\n1 failed in 0.02s\n"), None);
    }
}
