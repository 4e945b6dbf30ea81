//! A git repository with a project in it, and git as its user would call it: with no settings but its own.

use super::daemon::Grounds;
use super::program::write_program;
use hatchery::project::Project;
use hatchery::worktree::Repository;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Ids are as unfriendly as they may be.
pub const QUEST: &str = "-_9AzbqS0mTzWk1n0pQrsT";

pub struct Checkout {
    pub grounds: Grounds,
    /// Where the project is in the repository.
    within: PathBuf,
}

impl Checkout {
    /// With one commit that has `a.txt` and `.gitignore`.
    pub fn new() -> Self {
        Self::within("")
    }

    /// The project is a folder of the repository.
    pub fn within(folder: &str) -> Self {
        let checkout = Self { grounds: Grounds::new(), within: PathBuf::from(folder) };
        checkout.git(&["init", "--quiet", "--initial-branch=main"]);
        checkout.git(&["config", "user.name", "Somebody"]);
        checkout.git(&["config", "user.email", "somebody@localhost"]);
        let root = checkout.root();
        fs::create_dir_all(root.join(".hatchery")).unwrap();
        if !folder.is_empty() {
            fs::remove_dir_all(checkout.grounds.data()).unwrap();
        }
        write(&root, "a.txt", "one\ntwo\nthree\n");
        write(&checkout.top(), ".gitignore", "*.ignored\n/home/\n.hatchery/\n");
        checkout.git(&["add", "--all"]);
        checkout.git(&["commit", "--quiet", "--message=begin"]);
        checkout
    }

    /// The user's checkout.
    pub fn top(&self) -> PathBuf {
        self.grounds.path().canonicalize().unwrap()
    }

    pub fn root(&self) -> PathBuf {
        self.top().join(&self.within)
    }

    pub fn project(&self) -> Project {
        Project::find(&self.root()).unwrap()
    }

    pub fn repository(&self) -> Repository {
        Repository::find(&self.project(), self.environment().into_iter()).unwrap().unwrap()
    }

    /// The same, but among the gits that change something, the one whose number this is ends as if it had been killed when it
    /// has done its work.
    pub fn killed_repository(&self, number: u32) -> Repository {
        let folder = self.top().join("home/bin");
        let script = r#"#!/bin/sh
PATH=${PATH#*:}
case " $* " in
*" add "* | *" commit "* | *" update-ref "* | *" lock "* | *" remove "* | *" merge "* | *" branch "* | *" write-tree "* | *" commit-tree "*) ;;
*) exec git "$@" ;;
esac
count=$(cat FOLDER/count)
echo $((count + 1)) > FOLDER/count
test $count -ne NUMBER && exec git "$@"
git "$@"
kill -9 $$
"#;
        let script = script.replace("FOLDER", folder.to_str().unwrap()).replace("NUMBER", &number.to_string());
        write_program(&folder.join("git"), &script);
        write(&folder, "count", "0");
        let mut environment = self.environment();
        environment[0].1 = format!("{}:{}", folder.display(), environment[0].1);
        Repository::find(&self.project(), environment.into_iter()).unwrap().unwrap()
    }

    pub fn environment(&self) -> Vec<(String, String)> {
        let home = self.grounds.path().join("home");
        let value = |path: &Path| path.to_str().unwrap().to_owned();
        vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), value(&home)),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
            ("GIT_CONFIG_GLOBAL".to_owned(), value(&home.join("gitconfig"))),
        ]
    }

    /// In the user's checkout.
    pub fn git(&self, words: &[&str]) -> String {
        self.git_in(&self.top(), words)
    }

    pub fn git_in(&self, folder: &Path, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(words).current_dir(folder).env_clear().envs(self.environment()).stdin(Stdio::null());
        let said = command.output().unwrap();
        assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim_end().to_owned()
    }

    /// What the user sees of their own checkout. Nothing that we do may change it.
    pub fn users_view(&self) -> (String, String, String) {
        let status = self.git(&["status", "--porcelain", "--untracked-files=all"]);
        (self.git(&["rev-parse", "HEAD"]), self.git(&["symbolic-ref", "HEAD"]), status)
    }
}

pub fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}
