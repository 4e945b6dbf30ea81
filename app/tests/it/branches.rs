//! One agent in a worktree of its own, and taking its work over: `run --worktree`, `diff`, `merge`, `pr`.

use crate::support::daemon::wait_until;
use crate::support::program::write_program;
use crate::support::quest::{SHORT, done, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

/// Runs an agent in a worktree to its end, and gives its view of the branch.
fn worked(shop: &Workshop, name: &str, steps: &[Value]) -> Value {
    let agent = begun(shop, name, steps);
    assert_eq!(shop.end(&agent), "completed");
    shop.door().get(&format!("/api/branches/{name}")).json()
}

fn begun(shop: &Workshop, name: &str, steps: &[Value]) -> String {
    let with = json!({ "script": shop.script(steps) });
    let body =
        json!({ "prompt": format!("Work on {name}\n\nDo it well."), "name": name, "worktree": true, "with": with });
    let answer = shop.door().post("/api/runs", &body);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.id()
}

fn shop() -> Workshop {
    let shop = Workshop::open();
    shop.repository();
    shop
}

fn branches(shop: &Workshop) -> String {
    shop.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"])
}

#[test]
fn an_agent_works_on_a_branch_with_a_readable_name_and_merge_takes_it_over() {
    let shop = shop();
    let script =
        shop.script(&[write("src/flag.txt", "verbose\n"), write("__pycache__/x.pyc", "x"), text("The flag is there.")]);
    let head = shop.git(&["rev-parse", "HEAD"]);
    let run = ["run", "--worktree", "--script", script.to_str().unwrap(), "Add a --verbose flag"];
    let ran = shop.grounds.run(&run);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("1 file changed on hatchery/add-verbose-flag-"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(!shop.grounds.path().join("src/flag.txt").exists(), "the checkout is the user's");

    let diff = shop.grounds.run(&["diff"]).good();
    assert!(diff.contains("+verbose") && !diff.contains("pycache"), "{diff}");
    let stat = shop.grounds.run(&["diff", "--stat"]).good();
    assert_eq!(stat, "A  src/flag.txt  +1 -0\n");

    let merged = shop.grounds.run(&["merge"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert!(merged.stderr.contains("main has the work of hatchery/add-verbose-flag-"), "{}", merged.stderr);
    assert!(merged.stderr.contains("by-products: __pycache__/"), "{}", merged.stderr);
    assert_eq!(fs::read_to_string(shop.grounds.path().join("src/flag.txt")).unwrap(), "verbose\n");
    assert!(!shop.grounds.path().join("__pycache__").exists());
    assert_eq!(shop.git(&["log", "-1", "--format=%s%n%n%b", "HEAD"]), "Add a --verbose flag\n\nThe flag is there.");
    assert_eq!(shop.git(&["rev-parse", "HEAD^"]), head);
    assert_eq!(branches(&shop), "main");
    assert_eq!(shop.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    let nothing = shop.grounds.run(&["merge"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(nothing.stderr.contains("no agent and no quest has a branch"), "{}", nothing.stderr);
}

#[test]
fn a_squash_is_one_commit_and_the_single_ones_are_kept() {
    let shop = shop();
    worked(&shop, "flag", &[write("new.txt", "new\n"), text("Done.")]);
    shop.git(&["commit", "--quiet", "--allow-empty", "--message=the user goes on"]);
    let merged = shop.grounds.run(&["merge", "flag", "--squash"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(shop.git(&["log", "--format=%s", "-2"]), "Work on flag\nthe user goes on");
    assert_eq!(shop.git(&["log", "-1", "--format=%b"]), "Do it well.\n\nDone.");
    assert_eq!(branches(&shop), "main");
    let kept = shop.grounds.run(&["rescue", "list", "--json"]).good();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let name = kept["rescued"][0]["name"].as_str().unwrap();
    assert!(merged.stderr.contains(name), "{}", merged.stderr);
    // The next task of the agent begins where the user is now.
    let again = shop.say("flag", "go on");
    assert_eq!(again.status, 200);
    let agent = again.id();
    shop.wait("its second end", |event| {
        event["type"] == "run_ended" && event["agent"] == agent.as_str() && event["run"] == 2
    });
    let view = shop.door().get("/api/branches/flag").json();
    assert_eq!(view["base"], shop.git(&["rev-parse", "HEAD"]).as_str(), "{view:#}");
}

/// As after a squash: the branch is not merged for git, and a merge would add a commit without a change.
#[test]
fn work_that_the_user_has_already_is_not_merged_again() {
    let shop = shop();
    worked(&shop, "flag", &[write("new.txt", "new\n"), text("Done.")]);
    fs::write(shop.grounds.path().join("new.txt"), "new\n").unwrap();
    shop.git(&["add", "new.txt"]);
    shop.git(&["commit", "--quiet", "--message=the same by hand"]);
    let before = shop.git(&["rev-parse", "HEAD"]);
    let merged = shop.grounds.run(&["merge", "flag"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert!(merged.stderr.contains("already"), "{}", merged.stderr);
    assert_eq!(shop.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn a_merge_leaves_the_worktree_to_an_agent_that_stays() {
    let shop = shop();
    let with = json!({ "stays": true, "script": shop.script(&[write("a.txt", "1\n"), text("first"), json!("turn"), write("b.txt", "2\n"), text("second")]) });
    let body = json!({ "prompt": "Write", "name": "flag", "worktree": true, "with": with });
    let agent = shop.door().post("/api/runs", &body).id();
    shop.wait_said(&agent, "first");
    shop.wait_for(&agent, "turn_ended");
    let merged = shop.grounds.run(&["merge", "flag"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert!(merged.stderr.contains("stay while flag listens there"), "{}", merged.stderr);
    shop.grounds.run(&["say", "flag", "Go on"]).good();
    shop.wait_said(&agent, "second");
    shop.grounds.run(&["stop", "flag"]).good();
    assert_eq!(shop.end(&agent), "user_ended");
    let merged = shop.grounds.run(&["merge", "flag"]);
    assert!(merged.stderr.contains("the branch and its worktree are removed"), "{}", merged.stderr);
    assert_eq!(fs::read_to_string(shop.grounds.path().join("b.txt")).unwrap(), "2\n");
    assert_eq!(branches(&shop), "main");
}

/// Git would put them into their places, because they are ignored.
#[test]
fn a_branch_that_brings_files_of_the_data_folder_is_not_merged() {
    let shop = shop();
    worked(&shop, "flag", &[write("new.txt", "new\n"), text("Done.")]);
    let worktrees = shop.git(&["worktree", "list", "--porcelain"]);
    let worktree = worktrees.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap();
    let bring = |file: &str| {
        let path = format!("{worktree}/.hatchery/{file}");
        fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, "{}").unwrap();
        shop.git(&["-C", worktree, "add", "--force", &path]);
        shop.git(&["-C", worktree, "commit", "--quiet", "--message=a present"]);
    };
    bring("prompts/birth.md");
    bring("trust.json");
    let token = fs::read(shop.grounds.data().join("token")).unwrap();
    let refused = shop.grounds.run(&["merge", "flag"]);
    assert!(refused.code == Some(1) && refused.stderr.contains(".hatchery/trust.json"), "{refused:?}");
    assert!(!refused.stderr.contains("birth.md"), "{refused:?}");
    assert!(!shop.grounds.path().join("new.txt").exists(), "nothing was merged");
    assert_eq!(fs::read(shop.grounds.data().join("token")).unwrap(), token);
    shop.git(&["-C", worktree, "rm", "-r", "--quiet", "--cached", ".hatchery/trust.json"]);
    shop.git(&["-C", worktree, "commit", "--quiet", "--message=without it"]);
    shop.grounds.run(&["merge", "flag"]).good();
    assert!(shop.grounds.data().join("prompts/birth.md").exists());
}

#[test]
fn a_dirty_checkout_and_a_conflict_are_left_as_they_are() {
    let shop = shop();
    let view = worked(&shop, "one", &[write("a.txt", "of the agent\n"), text("Done.")]);
    let path = shop.grounds.path().join("a.txt");
    fs::write(&path, "of the user\n").unwrap();
    let before = (shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"]));
    let dirty = shop.grounds.run(&["merge", "one"]);
    assert_eq!(dirty.code, Some(1), "{dirty:?}");
    assert!(dirty.stderr.contains("uncommitted changes") && dirty.stderr.contains("a.txt"), "{}", dirty.stderr);
    assert_eq!((shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"])), before);

    shop.git(&["commit", "--quiet", "--all", "--message=of the user"]);
    let before = (shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"]));
    for how in [&["merge", "one"][..], &["merge", "one", "--squash"]] {
        let conflict = shop.grounds.run(how);
        assert_eq!(conflict.code, Some(1), "{conflict:?}");
        assert!(conflict.stderr.contains("The conflicts are in: a.txt"), "{}", conflict.stderr);
        assert!(conflict.stderr.contains("hatchery run --agent one"), "{}", conflict.stderr);
    }
    assert_eq!((shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"])), before);
    assert!(branches(&shop).contains(view["branch"].as_str().unwrap()));
    assert_eq!(fs::read_to_string(path).unwrap(), "of the user\n");
}

#[test]
fn a_hook_that_refuses_leaves_the_checkout_clean() {
    let shop = shop();
    worked(&shop, "one", &[write("a.txt", "of the agent\n"), text("Done.")]);
    write_program(&shop.grounds.path().join(".git/hooks/commit-msg"), "#!/bin/sh\necho no such message >&2\nexit 1\n");
    let before = (shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"]));
    let refused = shop.grounds.run(&["merge", "one", "--squash"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no such message"), "{}", refused.stderr);
    assert_eq!((shop.git(&["rev-parse", "HEAD"]), shop.git(&["status", "--porcelain"])), before);
}

/// What a hook does may as well be the user's work while the hook runs.
#[test]
fn a_merge_that_a_hook_refuses_drops_nothing_that_was_changed_meanwhile() {
    let shop = shop();
    worked(&shop, "one", &[write("a.txt", "of the agent\n"), write("new.txt", "new\n"), text("Done.")]);
    shop.git(&["commit", "--quiet", "--allow-empty", "--message=the user goes on"]);
    let read = |file: &str| fs::read_to_string(shop.grounds.path().join(file)).unwrap();
    let (head, untouched) = (shop.git(&["rev-parse", "HEAD"]), read("a.txt"));
    let hooks = shop.grounds.path().join(".git/hooks");
    let ways: [(&[&str], &str); 2] =
        [(&["merge", "one"], "pre-merge-commit"), (&["merge", "one", "--squash"], "pre-commit")];
    for (how, hook) in ways {
        write_program(&hooks.join(hook), "#!/bin/sh\necho mine > mine.txt; git add mine.txt; touch a.txt; exit 1\n");
        let refused = shop.grounds.run(how);
        assert_eq!(shop.git(&["status", "--porcelain", "--untracked-files=no"]), "A  mine.txt");
        assert_eq!(
            (read("mine.txt"), read("a.txt"), shop.git(&["rev-parse", "HEAD"])),
            ("mine\n".into(), untouched.clone(), head.clone())
        );
        assert!(!["MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG"].iter().any(|left| hooks.with_file_name(left).exists()));
        assert!(refused.code == Some(1) && refused.stderr.contains("the merge was undone"), "{refused:?}");
        shop.git(&["rm", "--quiet", "--force", "mine.txt"]);
    }
}

/// A hook that formats the files, adds them or not, and refuses the commit, as many do.
#[test]
fn a_hook_that_formats_and_refuses_leaves_the_checkout_as_it_was() {
    let shop = shop();
    worked(&shop, "one", &[write("a.txt", "of the agent\n"), write("new.txt", "new\n"), text("Done.")]);
    shop.git(&["commit", "--quiet", "--allow-empty", "--message=the user goes on"]);
    let hooks = shop.grounds.path().join(".git/hooks");
    let untracked = || shop.git(&["status", "--porcelain", "--untracked-files=no"]);
    let before = (shop.git(&["rev-parse", "HEAD"]), fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap());
    for (how, hook) in [(&["merge", "one"][..], "pre-merge-commit"), (&["merge", "one", "--squash"], "pre-commit")] {
        for then in ["", "git add --update;"] {
            let formats =
                format!("#!/bin/sh\necho formatted >> a.txt; rm new.txt; {then} echo tabs are wrong >&2; exit 1\n");
            write_program(&hooks.join(hook), &formats);
            let refused = shop.grounds.run(how);
            assert!(refused.code == Some(1) && refused.stderr.contains("tabs are wrong"), "{refused:?}");
            assert!(refused.stderr.contains("the merge was undone"), "{refused:?}");
            assert_eq!(untracked(), "", "{refused:?}");
            let now =
                (shop.git(&["rev-parse", "HEAD"]), fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap());
            assert_eq!(now, before);
            assert!(!shop.grounds.path().join("new.txt").exists());
            assert!(!["MERGE_HEAD", "MERGE_MSG", "SQUASH_MSG"].iter().any(|left| hooks.with_file_name(left).exists()));
            // What the hook has made of the files may be the user's.
            let name = refused.stderr.split("rescue restore ").nth(1).unwrap().split('`').next().unwrap();
            let kept = shop.git(&["show", &format!("refs/hatchery/rescue/{name}:a.txt")]);
            assert_eq!(kept, "of the agent\nformatted");
        }
        fs::remove_file(hooks.join(hook)).unwrap();
    }
    shop.grounds.run(&["merge", "one"]).good();
    assert_eq!(fs::read_to_string(shop.grounds.path().join("a.txt")).unwrap(), "of the agent\n");
}

#[test]
fn a_merge_that_cannot_clear_up_says_what_was_done_and_what_is_left() {
    let shop = shop();
    let view = worked(&shop, "one", &[write("b.txt", "of the agent\n"), text("Done.")]);
    let worktree = shop.grounds.data().join("worktrees").join(view["slug"].as_str().unwrap()).join("trunk");
    // A repository of its own, which would be lost with the worktree.
    shop.git(&["init", "--quiet", worktree.join("inner").to_str().unwrap()]);
    fs::write(worktree.join("inner/file"), "x").unwrap();
    let half = shop.grounds.run(&["merge", "one"]);
    assert_eq!(half.code, Some(1), "{half:?}");
    assert!(half.stderr.contains("main has the work of hatchery/one-"), "{half:?}");
    assert!(half.stderr.contains("could not be removed") && half.stderr.contains("inner"), "{half:?}");
    assert!(
        half.stderr.contains(&format!("`hatchery merge {}` removes them", view["slug"].as_str().unwrap())),
        "{half:?}"
    );
    assert_eq!(fs::read_to_string(shop.grounds.path().join("b.txt")).unwrap(), "of the agent\n");
    let again = shop.grounds.run(&["--json", "merge", "one"]);
    let error: Value = serde_json::from_str(&again.stderr).unwrap();
    assert_eq!(error["error"]["code"], "not_cleared", "{error}");
    let head = shop.git(&["rev-parse", "HEAD"]);
    fs::remove_dir_all(worktree.join("inner")).unwrap();
    let cleared = shop.grounds.run(&["merge", "one"]);
    assert!(cleared.code == Some(0) && cleared.stderr.contains("are removed"), "{cleared:?}");
    assert_eq!((shop.git(&["rev-parse", "HEAD"]), branches(&shop)), (head, "main".to_owned()));
}

#[test]
fn merges_at_once_follow_each_other() {
    let shop = shop();
    let names = ["one", "two", "three", "four"];
    for name in names {
        worked(&shop, name, &[write(&format!("{name}.txt"), name), text("Done.")]);
    }
    // The first merge is held until another one waits for it.
    let gate = shop.grounds.path().join(".git/gate");
    let hook = format!("#!/bin/sh\nwhile [ ! -e '{}' ]; do sleep 0.02; done\n", gate.display());
    write_program(&shop.grounds.path().join(".git/hooks/commit-msg"), &hook);
    let mut merging = names.map(|name| {
        let mut command = shop.grounds.command(&["merge", name, "--squash"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    });
    let (waits, heard) = std::sync::mpsc::channel();
    let readers = merging.each_mut().map(|merging| {
        let (mut stderr, waits) = (BufReader::new(merging.stderr.take().unwrap()), waits.clone());
        std::thread::spawn(move || {
            let mut said = String::new();
            while stderr.read_line(&mut said).unwrap() > 0 {
                if said.contains("another `hatchery merge` works in your checkout") {
                    // The test hears only the first.
                    waits.send(()).ok();
                }
            }
            said
        })
    });
    heard.recv().unwrap();
    fs::write(&gate, "").unwrap();
    for (merging, reader) in merging.iter_mut().zip(readers) {
        let said = reader.join().unwrap();
        assert_eq!(merging.wait().unwrap().code(), Some(0), "{said}");
    }
    assert_eq!(names.map(|name| fs::read_to_string(shop.grounds.path().join(format!("{name}.txt"))).unwrap()), names);
    assert_eq!(branches(&shop), "main");
}

/// A git of the user may work at the same time, or one that was killed has left its lock.
#[test]
fn a_checkout_in_which_git_works_is_told_in_our_words() {
    let shop = shop();
    worked(&shop, "one", &[write("b.txt", "of the agent\n"), text("Done.")]);
    let lock = shop.grounds.path().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let refused = shop.grounds.run(&["--json", "merge", "one", "--squash"]);
    let error: Value = serde_json::from_str(&refused.stderr).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(error["error"]["code"], "checkout_in_use", "{error}");
    assert!(message.contains("another git works in your checkout") && message.contains("index.lock"), "{message}");
    fs::remove_file(&lock).unwrap();
    shop.grounds.run(&["merge", "one", "--squash"]).good();
}

#[test]
fn nothing_is_merged_while_the_agent_works_and_the_worktree_of_a_killed_one_is_rescued() {
    let shop = shop();
    let agent = begun(&shop, "slow", &[write("a.txt", "half done\n"), text("written"), json!({ "sleep_ms": 600_000 })]);
    shop.wait_said(&agent, "written");
    let diff = shop.grounds.run(&["diff", "slow"]).good();
    assert!(diff.contains("+half done"), "{diff}");
    let busy = shop.grounds.run(&["merge", "slow"]);
    assert_eq!(busy.code, Some(1), "{busy:?}");
    assert!(busy.stderr.contains("slow is working on the branch"), "{}", busy.stderr);
    shop.grounds.run(&["kill", "slow"]).good();
    assert_eq!(shop.end(&agent), "killed");
    let worktrees = shop.grounds.data().join("worktrees");
    crate::quests::wait_until("the worktree is gone", || {
        !fs::read_dir(&worktrees)
            .unwrap()
            .flatten()
            .any(|entry| entry.file_name().to_str().unwrap().starts_with("slow-"))
    });
    assert_eq!(branches(&shop), "main");
    let kept: Value = serde_json::from_str(&shop.grounds.run(&["rescue", "list", "--json"]).good()).unwrap();
    let name = kept["rescued"][0]["name"].as_str().unwrap();
    let folder = shop.grounds.run(&["rescue", "restore", name]).good();
    assert_eq!(fs::read_to_string(format!("{}/a.txt", folder.trim())).unwrap(), "half done\n");
    shop.expect_nothing_left();
}

#[test]
fn a_branch_on_which_a_fork_works_is_one_branch_and_is_not_merged() {
    let shop = shop();
    let first = [write("a.txt", "half done\n"), text("written"), json!("turn")];
    let script = [first.as_slice(), &[text("on it"), json!({ "sleep_ms": 600_000 })]].concat();
    let agent = begun(&shop, "parent", &script);
    assert_eq!(shop.end(&agent), "completed");
    shop.grounds.run(&["fork", "parent", "--name", "kid", "go on"]).good();
    let said = shop.wait("the fork", |event| event["content"] == "on it");
    let busy = shop.grounds.run(&["merge", "parent"]);
    assert!(
        busy.code == Some(1) && busy.stderr.contains("kid, a fork of parent, is working on the branch"),
        "{busy:?}"
    );
    assert!(busy.stderr.contains("`hatchery wait kid`") && busy.stderr.contains("`hatchery stop kid`"), "{busy:?}");
    let busy = shop.grounds.run(&["merge", "kid"]);
    assert!(
        busy.code == Some(1) && busy.stderr.contains("kid, a fork of parent, is working on the branch"),
        "{busy:?}"
    );
    let diff = shop.grounds.run(&["diff"]).good();
    assert!(diff.contains("+half done"), "{diff}");
    shop.grounds.run(&["kill", "kid"]).good();
    assert_eq!(shop.end(said["agent"].as_str().unwrap()), "killed");
    shop.grounds.run(&["merge", "parent"]).good();
    shop.expect_nothing_left();
}

#[test]
fn a_setting_gives_every_agent_a_worktree_and_a_flag_takes_it_away() {
    let shop = Workshop::with("harness = 'scripted'\nstop_grace_ms = 300\n[worktrees]\nruns = true\n", Vec::new());
    shop.repository();
    fs::write(shop.grounds.path().join("a.txt"), "not committed\n").unwrap();
    let ran = shop.grounds.run(&["run", "hello there"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("nothing is changed on hatchery/hello-there-"), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning:") && ran.stderr.contains("a.txt"), "{}", ran.stderr);
    let plain = shop.grounds.run(&["run", "--no-worktree", "hello there"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(!plain.stderr.contains("hatchery/hello"), "{}", plain.stderr);
    let refused = shop.grounds.run(&["run", "--worktree", "--folder", ".", "hello"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn without_a_repository_a_worktree_is_refused_before_anything_is_made() {
    let shop = Workshop::open();
    let ran = shop.grounds.run(&["run", "--worktree", "hello"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("agents cannot have worktrees: the project is not in a git repository"),
        "{}",
        ran.stderr
    );
    assert_eq!(shop.door().get("/api/agents").json()["agents"].as_array().unwrap().len(), 1, "only agent 0");
}

#[test]
fn a_pull_request_has_a_branch_a_title_and_a_body_and_gh_is_called_if_it_is_there() {
    let shop = shop();
    let view = worked(&shop, "flag", &[write("new.txt", "new\n"), text("It is done.")]);
    let branch = view["branch"].as_str().unwrap();
    let bare = shop.grounds.path().join("home/elsewhere.git");
    shop.git(&["init", "--quiet", "--bare", bare.to_str().unwrap()]);
    shop.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    let printed = shop.grounds.run(&["pr", "--print"]).good();
    assert_eq!(printed, format!("branch  {branch}\ntitle   Work on flag\n\nDo it well.\n\nIt is done.\n"));
    let bin = shop.grounds.path().join("home/bin");
    write_program(&bin.join("gh"), "#!/bin/sh\nprintf '%s|' \"$@\" > \"$HOME/gh-called\"\n");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ran = shop.grounds.command(&["pr", "flag", "--draft"]).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let called = fs::read_to_string(shop.grounds.path().join("home/gh-called")).unwrap();
    let words = format!("pr|create|--head|{branch}|--title|Work on flag|--body|Do it well.\n\nIt is done.|--draft|");
    assert_eq!(called, words);
    let pushed = shop.git(&["ls-remote", "--heads", "origin"]);
    assert!(pushed.contains(&format!("refs/heads/{branch}")), "{pushed}");
}

#[test]
fn several_branches_are_listed_and_a_name_or_a_slug_chooses() {
    let shop = shop();
    let one = worked(&shop, "one", &[write("one.txt", "1\n"), text("Done.")]);
    worked(&shop, "two", &[write("two.txt", "2\n"), text("Done.")]);
    let several = shop.grounds.run(&["diff"]);
    assert_eq!(several.code, Some(2), "{several:?}");
    assert!(several.stderr.contains("2 branches could be meant"), "{}", several.stderr);
    assert!(several.stderr.contains(one["branch"].as_str().unwrap()), "{}", several.stderr);
    for reference in
        ["one", one["slug"].as_str().unwrap(), one["branch"].as_str().unwrap(), one["id"].as_str().unwrap()]
    {
        let diff = shop.grounds.run(&["diff", reference]).good();
        assert!(diff.contains("+1") && !diff.contains("+2"), "{diff}");
    }
    let nobody = shop.grounds.run(&["diff", "nobody"]);
    assert_eq!(nobody.code, Some(1), "{nobody:?}");
    let root = shop.grounds.run(&["merge", &shop.door().root()]);
    assert!(root.stderr.contains("works in the project itself"), "{}", root.stderr);
}

/// An agent without a worktree works in the user's files.
#[test]
fn the_changes_of_a_shared_folder_are_called_so() {
    let shop = shop();
    let agent = shop.run(&[text("I changed nothing.")]);
    assert_eq!(shop.end(&agent), "completed");
    worked(&shop, "own", &[write("own.txt", "1\n"), text("Done.")]);
    fs::write(shop.grounds.path().join("a.txt"), "mine\n").unwrap();
    let diff = shop.grounds.run(&["diff", &agent, "--stat"]);
    assert_eq!(diff.stdout, "M  a.txt  +1 -3\n", "{diff:?}");
    assert!(diff.stderr.starts_with("note: the agent has no worktree of its own"), "{diff:?}");
    let shared = |who: &str| shop.door().get(&format!("/api/agents/{who}/changes")).json()["shared"].clone();
    assert_eq!((shared(&agent), shared("own")), (json!(true), json!(false)));
    let own = shop.grounds.run(&["diff", "own", "--stat"]);
    assert!(!own.stderr.contains("note:"), "{own:?}");
}

#[test]
fn a_merge_over_an_untracked_file_is_refused_with_its_name() {
    let shop = shop();
    worked(&shop, "one", &[write("new.txt", "of the agent\n"), text("Done.")]);
    fs::write(shop.grounds.path().join("new.txt"), "of the user\n").unwrap();
    for how in [&["merge", "one"][..], &["merge", "one", "--squash"]] {
        let refused = shop.grounds.run(how);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("git does not know, so nothing was merged: new.txt"), "{}", refused.stderr);
        assert!(!refused.stderr.contains("git merge"), "{}", refused.stderr);
    }
    assert_eq!(fs::read_to_string(shop.grounds.path().join("new.txt")).unwrap(), "of the user\n");
}

/// Git would overwrite them without a word.
#[test]
fn a_merge_over_an_ignored_file_is_refused_with_its_name() {
    let shop = shop();
    worked(&shop, "one", &[write("local.cfg", "of the agent\n"), write("place/a.txt", "1\n"), text("Done.")]);
    // What is ignored is not committed, so the file of patterns comes after the commit.
    let worktree = shop.git(&["worktree", "list", "--porcelain"]);
    let worktree = worktree.lines().filter_map(|line| line.strip_prefix("worktree ")).nth(1).unwrap();
    shop.git(&["-C", worktree, "add", "--all"]);
    shop.git(&["-C", worktree, "commit", "--quiet", "--message=of the agent"]);
    fs::write(shop.grounds.path().join(".git/info/exclude"), ".hatchery/\nlocal.cfg\nplace\n").unwrap();
    for file in ["local.cfg", "place"] {
        fs::write(shop.grounds.path().join(file), "of the user\n").unwrap();
        for how in [&["merge", "one"][..], &["merge", "one", "--squash"]] {
            let refused = shop.grounds.run(how);
            assert!(refused.code == Some(1), "{refused:?}");
            assert!(refused.stderr.contains(&format!("nothing was merged: {file}\n")), "{}", refused.stderr);
        }
        assert_eq!(fs::read_to_string(shop.grounds.path().join(file)).unwrap(), "of the user\n");
        fs::remove_file(shop.grounds.path().join(file)).unwrap();
    }
    shop.grounds.run(&["merge", "one"]).good();
}

/// The user's branch says for which quest a merge was, and the quest is not offered for a merge again.
#[test]
fn a_merged_quest_is_known_as_merged() {
    for squash in [false, true] {
        let shop = Workshop::with(SHORT, Vec::new());
        shop.repository();
        let book = shop.playbook().play("codeweaver", &[write("new.txt", "new\n"), done("built")]);
        let steps = json!([step("a", &[])]);
        let quest =
            shop.new_quest(&book, json!({ "request": "Build a bridge", "isolation": "worktree", "steps": steps }));
        shop.wait_quest(&quest, "quest_completed");
        let branch = shop.branch(&quest);
        let shown = shop.grounds.run(&["quest", "show", &quest]).good();
        assert!(shown.contains("merges it into your branch"), "{shown}");
        let how: &[&str] = if squash { &["merge", "--squash"] } else { &["merge"] };
        shop.grounds.run(how).good();
        let subject = shop.git(&["log", "-1", "--format=%s"]);
        assert_eq!(subject, if squash { "Build a bridge" } else { "Merge quest: Build a bridge" });
        let shown = shop.grounds.run(&["quest", "show", &quest]).good();
        assert!(shown.contains("the work is merged") && !shown.contains("merges it into your branch"), "{shown}");
        // As people do after a merge, with the command that is shown. Then nothing is left to take over.
        let again = shop.grounds.run(&["merge", &branch]);
        assert!(again.stderr.contains(&format!("`git branch -D {branch}` removes it")), "{again:?}");
        let head = shop.git(&["rev-parse", &branch]);
        // The daemon removes the worktree of a complete quest a moment later.
        wait_until("the removal of the worktree", || !shop.git(&["worktree", "list"]).contains("/trunk"));
        shop.git(&["branch", "-D", &branch]);
        let shown = shop.grounds.run(&["quest", "show", &quest]).good();
        assert!(shown.contains("which was deleted") && !shown.contains("merges it into your branch"), "{shown}");
        let refused = shop.grounds.run(&["merge", &branch]);
        assert!(refused.code == Some(1) && refused.stderr.contains("there is no branch"), "{refused:?}");
        shop.git(&["branch", &branch, &head]);
        let list = shop.door().get("/api/branches").json();
        assert_eq!((&list["branches"][0]["branch"], &list["branches"][0]["merged"]), (&json!(branch), &json!(true)));
        // The only other branch is meant without being named.
        worked(&shop, "one", &[write("one.txt", "1\n"), text("Done.")]);
        let diff = shop.grounds.run(&["diff", "--stat"]).good();
        assert_eq!(diff, "A  one.txt  +1 -0\n");
    }
}
