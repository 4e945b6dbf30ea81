//! Recognises tool calls with which an agent program writes a whole file. Agent programs use different names for their tools, so a call is
//! recognised by its arguments.

use serde_json::Value;

/// The names of the arguments for the path and the content, as the recorded sessions of agent programs have them.
const ARGUMENTS: [[&str; 2]; 3] = [["file_path", "content"], ["filePath", "content"], ["path", "file_text"]];
/// Texts in a tool result if the file is new.
const CREATED: [&str; 2] = ["File created", "Successfully created"];
/// Texts in a tool result if the file existed before.
const REPLACED: [&str; 3] = ["has been updated", "has been overwritten", "Successfully overwrote"];

/// A file and its new content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileWrite<'a> {
    pub path: &'a str,
    pub content: &'a str,
}

impl<'a> FileWrite<'a> {
    /// The files that a call with this input writes as a whole.
    pub fn all(input: &'a Value) -> impl Iterator<Item = Self> {
        let text = |name: &str| input[name].as_str();
        let whole = ARGUMENTS.into_iter().find_map(|[path, content]| Self::of(text(path), text(content)));
        // In a patch of codex, the diff of a new file is its content.
        let changes = input["changes"].as_array().into_iter().flatten().filter(|change| change["kind"] == "add");
        whole.into_iter().chain(changes.filter_map(|change| Self::of(change["path"].as_str(), change["diff"].as_str())))
    }

    fn of(path: Option<&'a str>, content: Option<&'a str>) -> Option<Self> {
        Some(Self { path: path?, content: content? })
    }
}

/// Whether the file is new, if the result of the call says so.
pub(crate) fn is_new(result: &str) -> Option<bool> {
    if CREATED.iter().any(|words| result.starts_with(words)) {
        return Some(true);
    }
    REPLACED.iter().any(|words| result.contains(words)).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_whole_file_is_recognised_by_the_arguments_of_each_program() {
        for (input, expected) in [
            (json!({ "file_path": "memory/a.html", "content": "x" }), vec![("memory/a.html", "x")]),
            (json!({ "filePath": "memory/a.html", "content": "" }), vec![("memory/a.html", "")]),
            (json!({ "command": "write", "path": "a", "file_text": "x" }), vec![("a", "x")]),
            (
                json!({ "changes": [{ "path": "a", "kind": "add", "diff": "x\n" }, { "path": "b", "kind": "update", "diff": "" }] }),
                vec![("a", "x\n")],
            ),
            (json!({ "file_path": "a", "old_string": "x", "new_string": "y" }), vec![]),
            (json!({ "file_path": "a" }), vec![]),
            (json!(null), vec![]),
        ] {
            let found: Vec<_> = FileWrite::all(&input).map(|write| (write.path, write.content)).collect();
            assert_eq!(found, expected, "{input}");
        }
    }

    #[test]
    fn a_result_says_whether_the_file_is_new() {
        assert_eq!(is_new("File created successfully at: a"), Some(true));
        assert_eq!(is_new("The file a has been updated."), Some(false));
        assert_eq!(is_new("completed"), None);
    }
}
