//! What must hold for the reader of every agent program: no damaged line brings it down, and its outputs can be stored.

use hatchery_core::output::Output;
use proptest::sample::Index;

/// A line that is cut off at a byte, or has another byte there.
pub fn damaged(line: String, at: Index, byte: u8, cut: bool) -> String {
    let mut bytes = line.into_bytes();
    let at = at.index(bytes.len());
    if cut {
        bytes.truncate(at);
    } else {
        bytes[at] = byte;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a reader has noticed a cut. A line of which nothing is left is no error.
pub fn is_noticed<T, E>(cut: bool, damaged: &str, read: &Result<T, E>) -> bool {
    !cut || damaged.is_empty() || read.is_err()
}

pub fn are_stored(outputs: impl IntoIterator<Item = Output>) {
    for output in outputs {
        let written = serde_json::to_string(&output).unwrap();
        assert_eq!(serde_json::from_str::<Output>(&written).unwrap(), output, "{written}");
    }
}
