//! Quests with real processes: what their scripted agents play, gates at which a process waits without anybody's help, and waiting
//! for what becomes of steps.

use super::workshop::Workshop;
use rustix::fs::{Mode, OFlags};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The shortest way through a quest: one role for a step, nothing before and nothing after.
pub const SHORT: &str = "harness = 'scripted'\nstop_grace_ms = 300\n\
    [quests.paths]\nrequirements = []\nwork = ['codeweaver']\nreview = []\n";
/// The same with a ward.
pub const WARDED: &str = "harness = 'scripted'\nstop_grace_ms = 300\n\
    [quests.paths]\nrequirements = []\nwork = ['codeweaver', 'ward']\nreview = []\n";

/// The scripts of a quest's agents: a folder with a file for each part.
pub struct Playbook {
    pub folder: PathBuf,
}

impl Playbook {
    /// What `STEP.ROLE.N`, `STEP.ROLE`, `ROLE.N` or `ROLE` plays.
    pub fn play(self, part: &str, steps: &[Value]) -> Self {
        let lines: String = steps.iter().map(|step| format!("{step}\n")).collect();
        fs::write(self.folder.join(format!("{part}.jsonl")), lines).unwrap();
        self
    }
}

/// A place at which processes wait until a test lets them pass. They need neither the daemon nor the clock for it.
pub struct Gate {
    path: PathBuf,
    open: RefCell<Option<OwnedFd>>,
}

impl Gate {
    /// What a scripted agent does to wait there.
    pub fn pass(&self) -> Value {
        json!({ "write_file": { "path": self.path, "content": "." } })
    }

    /// What a ward does to wait there.
    pub fn command(&self) -> String {
        format!("echo . > '{}'", self.path.display())
    }

    /// Whoever writes waits for a reader: from now on there is one.
    pub fn open(&self) {
        let reader = rustix::fs::open(&self.path, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()).unwrap();
        self.open.replace(Some(reader));
    }
}

pub fn text(words: &str) -> Value {
    json!({ "text": words })
}

pub fn mcp(tool: &str, arguments: Value) -> Value {
    json!({ "mcp": { "tool": tool, "arguments": arguments } })
}

/// A signal about the agent's own step.
pub fn signal(kind: &str, mut fields: Value) -> Value {
    fields["signal"] = json!(kind);
    fields["stepId"] = json!("{{step}}");
    mcp("signal-back", fields)
}

pub fn done(summary: &str) -> Value {
    signal("complete", json!({ "summary": summary }))
}

pub fn write(path: &str, content: &str) -> Value {
    json!({ "write_file": { "path": path, "content": content } })
}

/// A step of a plan.
pub fn step(id: &str, after: &[&str]) -> Value {
    json!({ "id": id, "name": format!("Do {id}"), "depends_on": after })
}

impl Workshop {
    pub fn playbook(&self) -> Playbook {
        let folder = self.grounds.path().join("plays").join(number(&self.grounds.path().join("plays")));
        fs::create_dir_all(&folder).unwrap();
        Playbook { folder }
    }

    pub fn gate(&self) -> Gate {
        let folder = self.grounds.path().join("gates");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(number(&folder));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        Gate { path, open: RefCell::new(None) }
    }

    /// The branch of a quest in worktrees.
    pub fn branch(&self, quest: &str) -> String {
        self.quest(quest)["branch"].as_str().unwrap_or_else(|| panic!("quest {quest} has no branch")).to_owned()
    }

    /// The folder with the worktrees of a quest.
    pub fn worktrees(&self, quest: &str) -> PathBuf {
        let branch = self.branch(quest);
        self.grounds.data().join("worktrees").join(branch.strip_prefix("hatchery/").unwrap())
    }

    /// Makes a quest, in the project itself and without a ward unless it says otherwise, and gives its id.
    pub fn new_quest(&self, book: &Playbook, options: Value) -> String {
        let mut body = json!({
            "request": "a bridge", "isolation": "none", "ward": "", "with": { "script": book.folder },
        });
        for (name, value) in options.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = self.door().post("/api/quests", &body);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.id()
    }

    /// A quest as its file and its export show it: without `head`, which only the API's answer has.
    pub fn quest(&self, quest: &str) -> Value {
        let answer = self.door().get(&format!("/api/quests/{quest}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut document = answer.json();
        assert!(document.as_object_mut().unwrap().remove("head").is_some(), "{document}");
        document
    }

    /// A step, as the quest shows it.
    pub fn step(&self, quest: &str, step: &str) -> Value {
        let quest = self.quest(quest);
        let found = quest["steps"].as_array().unwrap().iter().find(|it| it["id"] == step);
        found.unwrap_or_else(|| panic!("there is no step {step} in {quest:#}")).clone()
    }

    pub fn status(&self, quest: &str, step: &str) -> String {
        self.step(quest, step)["status"].as_str().unwrap().to_owned()
    }

    /// Does something to a quest: pause, resume, abandon.
    #[track_caller]
    pub fn tell(&self, quest: &str, what: &str) {
        let answer = self.door().post(&format!("/api/quests/{quest}/{what}"), &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Waits for an event of a quest.
    #[track_caller]
    pub fn wait_quest(&self, quest: &str, kind: &str) -> Value {
        self.wait(kind, |event| event["quest"] == quest && event["type"] == kind)
    }

    /// Waits for an event of a step.
    #[track_caller]
    pub fn wait_step(&self, quest: &str, step: &str, kind: &str) -> Value {
        self.wait_nth(quest, step, kind, 1)
    }

    /// Waits for the how manieth event of a kind of a step.
    #[track_caller]
    pub fn wait_nth(&self, quest: &str, step: &str, kind: &str, nth: u32) -> Value {
        let mut met = 0;
        self.wait(&format!("{kind} of {step} for the {nth}. time"), |event| {
            met += u32::from(event["quest"] == quest && event["step"] == step && event["type"] == kind);
            met == nth
        })
    }

    /// Waits until somebody has begun in a role, and gives the agent.
    #[track_caller]
    pub fn hired(&self, quest: &str, step: &str, role: &str) -> String {
        let is_it = |event: &Value| event["quest"] == quest && event["step"] == step && event["role"] == role;
        let begun = self.wait(&format!("the {role} of {step}"), |it| it["type"] == "step_begun" && is_it(it));
        begun["agent"].as_str().unwrap().to_owned()
    }

    /// Waits until an agent has said something.
    #[track_caller]
    pub fn wait_said(&self, agent: &str, words: &str) {
        self.wait(words, |event| event["agent"] == agent && event["content"] == words);
    }

    /// Waits until a quest asks something, and gives the question's number and text.
    #[track_caller]
    pub fn asked(&self, quest: &str, nth: u32) -> (u64, String) {
        let mut met = 0;
        let asked = self.wait("a question", |event| {
            let about = &event["about"];
            let is_it = about["step"]["quest"] == quest || about["quest_budget"]["quest"] == quest;
            met += u32::from(event["type"] == "question_asked" && is_it);
            met == nth
        });
        (asked["id"].as_u64().unwrap(), asked["text"].as_str().unwrap().to_owned())
    }

    #[track_caller]
    pub fn answer(&self, question: u64, words: &str) {
        let answer = self.door().post(&format!("/api/questions/{question}/answer"), &json!({ "answer": words }));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Waits until a quest is complete, and expects that nobody is left.
    #[track_caller]
    pub fn complete(&self, quest: &str) {
        self.wait("the end of the quest", |event| {
            assert!(!(event["type"] == "step_failed" && event["quest"] == quest), "{event}");
            event["type"] == "quest_completed" && event["quest"] == quest
        });
        self.expect_nothing_left();
    }

    /// What happened to a step, a word for each.
    pub fn story(&self, quest: &str, step: &str) -> Vec<String> {
        let events = self.events();
        let mut met = Vec::new();
        let mut of_step = Vec::new();
        for event in events.iter().filter(|event| event["quest"] == quest && event["step"] == step) {
            let word = |value: &Value| match value {
                Value::String(word) => word.clone(),
                other => other.as_object().unwrap().keys().next().unwrap().clone(),
            };
            of_step.push(match event["type"].as_str().unwrap() {
                "step_begun" => {
                    let role = event["role"].as_str().unwrap();
                    let again = if met.contains(&&event["agent"]) { " again" } else { "" };
                    met.push(&event["agent"]);
                    format!("{role}{again}")
                }
                "signal_given" => word(&event["signal"]),
                "ward_ended" => format!("ward {}", word(&event["verdict"])),
                "merge_ended" => format!("merge {}", word(&event["merge"])),
                "step_queued" | "ward_begun" | "merge_begun" => continue,
                other => other.strip_prefix("step_").unwrap_or(other).to_owned(),
            });
        }
        of_step
    }

    /// The first message of an agent.
    pub fn brief(&self, agent: &str) -> String {
        self.door().history(agent)[0]["content"].as_str().unwrap().to_owned()
    }

    /// The conversation of an agent, as its harness knows it.
    pub fn conversation(&self, agent: &str) -> Vec<String> {
        let spawned = self.of(agent).into_iter().filter(|event| event["type"] == "run_spawned");
        spawned.map(|event| event["session"].as_str().unwrap().to_owned()).collect()
    }

    /// What the tools answered an agent.
    pub fn results(&self, agent: &str) -> Vec<String> {
        let history = self.door().history(agent);
        let results = history.iter().filter(|message| message["kind"] == "tool_result");
        let content =
            |message: &Value| -> Value { serde_json::from_str(message["content"].as_str().unwrap()).unwrap() };
        results.map(|message| content(message)["content"].as_str().unwrap().to_owned()).collect()
    }

    /// How many events of a kind a quest has.
    pub fn count(&self, quest: &str, kind: &str) -> usize {
        self.events().iter().filter(|event| event["quest"] == quest && event["type"] == kind).count()
    }

    /// Makes the project a git repository with a commit, whose checkout shows nothing of what the tests put there.
    pub fn repository(&self) {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["config", "user.name", "Somebody"]);
        self.git(&["config", "user.email", "somebody@localhost"]);
        let ours = "/home/\n/plays/\n/gates/\n/said\n/.hatchery/\n/script-*\n";
        fs::write(self.grounds.path().join(".git/info/exclude"), ours).unwrap();
        fs::write(self.grounds.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=begin"]);
    }

    /// In the user's checkout.
    pub fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(words).current_dir(self.grounds.path()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.grounds.path().join("home"));
        let said = command.output().unwrap();
        assert!(said.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim_end().to_owned()
    }
}

/// A name that nothing in a folder has yet.
fn number(folder: &Path) -> String {
    fs::read_dir(folder).map_or(0, Iterator::count).to_string()
}
