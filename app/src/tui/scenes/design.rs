//! The design's own screens, in `screens/design`. A drawn screen differs from its design only in the rows that stand in `NAME.differs` beside
//! it, and each of these differences has its reason there: `# reason`, then the design's rows after `- ` and ours after `+ `.

use similar::{ChangeTag, TextDiff};
use std::path::PathBuf;

/// Compares what was drawn with the design's screen of this name. A screen without a design, which we have added, has no file there.
pub(super) fn compare(name: &str, drawn: &str) {
    let Ok(design) = std::fs::read_to_string(file(name, "txt")) else { return };
    let accepted = std::fs::read_to_string(file(name, "differs")).unwrap_or_default();
    let found = differences(&design, drawn);
    let rows = |text: &str| text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
    assert!(
        rows(&accepted) == found,
        "{name} and its design differ in other rows than design/{name}.differs says. They differ in:\n{}\n",
        found.join("\n")
    );
    assert!(accepted.is_empty() || accepted.starts_with("# "), "design/{name}.differs gives no reason");
}

/// The design's rows that were not drawn, and the drawn rows that are not the design's, pane by pane from the top.
fn differences(design: &str, drawn: &str) -> Vec<String> {
    let (design, drawn) = (rows(design), rows(drawn));
    let columns: Vec<usize> = hairlines(&design).into_iter().filter(|at| hairlines(&drawn).contains(at)).collect();
    let (design, drawn) = (panes(&design, &columns), panes(&drawn, &columns));
    let mut found = Vec::new();
    for (design, drawn) in design.iter().zip(&drawn) {
        for change in TextDiff::from_lines(design, drawn).iter_all_changes() {
            let row = change.value().trim_end();
            match change.tag() {
                ChangeTag::Delete => found.push(format!("- {row}").trim_end().to_owned()),
                ChangeTag::Insert => found.push(format!("+ {row}").trim_end().to_owned()),
                ChangeTag::Equal => {}
            }
        }
    }
    found
}

/// The rows without blanks at their ends and without blank rows at the end.
fn rows(text: &str) -> Vec<Vec<char>> {
    let mut rows: Vec<Vec<char>> = text.lines().map(|row| row.trim_end().chars().collect()).collect();
    rows.truncate(rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
    rows
}

/// How many rows are above the separator.
fn above(rows: &[Vec<char>]) -> usize {
    rows.iter().position(|row| row.starts_with(&['─', '─'])).unwrap_or(0)
}

/// The columns that divide panes: a line from the first row to the separator.
fn hairlines(rows: &[Vec<char>]) -> Vec<usize> {
    let above = &rows[..above(rows)];
    let width = above.iter().map(Vec::len).max().unwrap_or(0);
    (0..width).filter(|at| above.iter().all(|row| row.get(*at) == Some(&'│'))).collect()
}

/// Each pane as a text of its own, and what is below them.
fn panes(rows: &[Vec<char>], columns: &[usize]) -> Vec<String> {
    let text = |rows: Vec<String>| rows.iter().map(|row| format!("{}\n", row.trim_end())).collect::<String>();
    let above = if columns.is_empty() { 0 } else { above(rows) };
    let edges: Vec<usize> = columns.iter().copied().chain([usize::MAX]).collect();
    let mut from = 0;
    let mut panes = Vec::new();
    for to in edges.into_iter().filter(|_| above > 0) {
        let cut = |row: &Vec<char>| row.iter().take(to).skip(from).collect::<String>();
        panes.push(text(rows[..above].iter().map(cut).collect()));
        from = to.saturating_add(1);
    }
    panes.push(text(rows[above..].iter().map(|row| row.iter().collect()).collect()));
    panes
}

fn file(name: &str, ending: &str) -> PathBuf {
    PathBuf::from(super::SCREENS).join("design").join(format!("{name}.{ending}"))
}

/// Each screen of the design is drawn by a test: a snapshot of the same name exists.
#[test]
fn every_screen_of_the_design_is_drawn() {
    let designs = std::fs::read_dir(PathBuf::from(super::SCREENS).join("design")).unwrap();
    for path in designs.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "txt"))
    {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let snapshot = PathBuf::from(super::SCREENS).join(format!("{name}.snap"));
        assert!(snapshot.exists(), "{name} is not drawn by any test");
    }
}

#[test]
fn a_row_that_is_not_the_designs_is_found() {
    assert_eq!(differences("one\ntwo  \n\n", "one\ntwo"), Vec::<String>::new());
    assert_eq!(differences("one\ntwo\nthree", "one\n2\nthree"), ["- two", "+ 2"]);
    let panes = ["a │ 1\nb │ 2\n── x", "a │ 1\nc │ 2\n── y"];
    assert_eq!(differences(panes[0], panes[1]), ["- b", "+ c", "- ── x", "+ ── y"]);
}
