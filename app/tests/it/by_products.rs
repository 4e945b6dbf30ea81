//! What tools, tests and wards leave in the worktree of a step: it is not the work of an agent, so it is neither committed nor rescued.

use crate::support::repository::{Checkout, QUEST, read, write};
use crate::worktree::{CLEAN, worked};
use std::fs;
use std::path::PathBuf;

#[test]
fn by_products_are_neither_committed_nor_rescued() {
    let checkout = Checkout::new();
    let repository = checkout.repository().with_by_products(&["dist/".to_owned()]);
    let step = repository.isolate(QUEST, "one").unwrap();
    for by_product in [
        "pkg/__pycache__/a.cpython-312.pyc",
        "web/node_modules/x/index.js",
        "web/node_modules/x/.git/HEAD",
        "crate/target/debug/out",
        "crate/target/CACHEDIR.TAG",
        "environment/pyvenv.cfg",
        "java/target/a.class",
        "dist/bundle.js",
        ".DS_Store",
    ] {
        write(step.folder(), by_product, "x");
    }
    for work in ["java/pom.xml", "crate/src/target/mod.rs", "pkg/a.py", "build.py"] {
        write(step.folder(), work, "work\n");
    }
    let settled = repository.settle(&step, "work").unwrap();
    let committed = checkout.git_in(step.top(), &["show", "--name-only", "--format="]);
    assert_eq!(committed, "build.py\ncrate/src/target/mod.rs\njava/pom.xml\npkg/a.py");
    let left_out: Vec<&str> = settled.left_out.iter().filter_map(|path| path.to_str()).collect();
    let expected = [".DS_Store", "crate/target/", "dist/", "environment/", "java/target/", "pkg/__pycache__/", "web/"];
    assert_eq!(left_out, expected);
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
    assert_eq!(repository.remove(&step).unwrap(), None, "there is nothing to rescue");
}

#[test]
fn what_a_ward_leaves_is_a_by_product_unless_it_is_added() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "src.txt", "1\n");
    write(step.folder(), "report [1].xml", "made by the ward");
    write(step.folder(), "snapshots/a.snap", "made by the ward");
    repository.ward_ended(&step).unwrap();
    write(step.folder(), "later.txt", "made by an agent\n");
    repository.settle(&step, "after the ward").unwrap();
    let committed = checkout.git_in(step.top(), &["show", "--name-only", "--format="]);
    assert_eq!(committed, "later.txt");
    assert_eq!(repository.left_out(QUEST, "one").unwrap(), ["report [1].xml", "snapshots/"]);
    checkout.git_in(step.top(), &["add", "--force", "snapshots/a.snap"]);
    repository.settle(&step, "wanted").unwrap();
    assert_eq!(checkout.git_in(step.top(), &["show", "--name-only", "--format="]), "snapshots/a.snap");
}

#[test]
fn what_a_ward_does_to_tracked_files_is_undone_and_told() {
    let checkout = Checkout::new();
    let repository = checkout.repository();
    let step = worked(&repository, "one", "src.txt", "1\n");
    let head = checkout.git_in(step.top(), &["rev-parse", "HEAD"]);
    assert!(repository.ward_ended(&step).unwrap().is_empty());
    // Changed, deleted, staged, and a folder in the place of a file.
    write(step.folder(), "src.txt", "reformatted by the ward\n");
    checkout.git_in(step.top(), &["rm", "--quiet", "--force", ".gitignore"]);
    fs::remove_file(step.folder().join("a.txt")).unwrap();
    write(step.folder(), "a.txt/inner", "x");
    write(step.folder(), "report.xml", "made by the ward");
    checkout.git_in(step.top(), &["add", "report.xml"]);
    let restored = repository.ward_ended(&step).unwrap();
    let all = [".gitignore", "a.txt", "src.txt"];
    assert!(all.iter().all(|file| restored.contains(&PathBuf::from(file))), "{restored:?}");
    assert_eq!(
        (read(step.folder(), "src.txt"), read(step.folder(), "a.txt")),
        ("1\n".into(), "one\ntwo\nthree\n".into())
    );
    assert_eq!(repository.settle(&step, "nothing of it is work").unwrap().commit, None);
    // Everything, with or without the worktree itself, and a branch of its own.
    let empty = || {
        fs::read_dir(step.top()).unwrap().flatten().for_each(|entry| match entry.path() {
            folder if folder.is_dir() => fs::remove_dir_all(folder).unwrap(),
            file => fs::remove_file(file).unwrap(),
        })
    };
    let damages: [&dyn Fn(); 3] = [&empty, &|| fs::remove_dir_all(step.top()).unwrap(), &|| {
        checkout.git_in(step.top(), &["checkout", "--quiet", "-b", "elsewhere", "HEAD^"]);
    }];
    for damage in damages {
        damage();
        let restored = repository.ward_ended(&step).unwrap();
        assert!(restored.contains(&PathBuf::from("src.txt")), "{restored:?}");
        assert_eq!(repository.settle(&step, "nothing of it is work").unwrap().commit, None);
        assert_eq!(checkout.git_in(step.top(), &["rev-parse", &step.branch()]), head);
        assert_eq!(read(step.folder(), "src.txt"), "1\n");
    }
    // Commits of the ward, and a branch that it has moved or deleted.
    let histories: [&[&[&str]]; 4] = [
        &[&["commit", "--quiet", "--allow-empty", "-m", "of the ward"]],
        &[&["commit", "--quiet", "--amend", "--allow-empty", "-m", "of the ward"]],
        &[&["reset", "--quiet", "--hard", "HEAD^"]],
        &[&["checkout", "--quiet", "--detach"], &["update-ref", "-d", &format!("refs/heads/{}", step.branch())]],
    ];
    for history in histories {
        repository.ward_begins(&step).unwrap();
        history.iter().for_each(|command| drop(checkout.git_in(step.top(), command)));
        repository.ward_ended(&step).unwrap();
        assert_eq!(checkout.git_in(step.top(), &["rev-parse", &step.branch(), "HEAD"]), format!("{head}\n{head}"));
        assert_eq!(read(step.folder(), "src.txt"), "1\n");
    }
    assert_eq!(checkout.git(&["for-each-ref", "refs/hatchery/before-ward"]), "");
    assert_eq!(repository.merge(QUEST, "one").unwrap(), CLEAN);
}

#[test]
fn the_project_can_say_that_a_by_product_is_work() {
    let checkout = Checkout::new();
    write(&checkout.top(), ".gitignore", ".hatchery/\n/home/\n!node_modules/\n");
    checkout.git(&["commit", "--quiet", "--all", "--message=node_modules is ours"]);
    let repository = checkout.repository();
    let step = worked(&repository, "one", "node_modules/patched.js", "1\n");
    assert_eq!(checkout.git_in(step.top(), &["show", "--name-only", "--format="]), "node_modules/patched.js");
}
