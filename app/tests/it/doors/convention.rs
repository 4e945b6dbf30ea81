//! One convention for JSON, in answers of the API, in what commands print, and in the examples of the documents: names in camelCase, a list in an object with `head`, money
//! with dollars. What is exempt is named here: parts of events, and documents whose form other programs fix.

use crate::support::quest::{SHORT, done, step, text, write};
use crate::support::workshop::Workshop;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The schemas of documents that other programs read or write: the events of the other dialect, identity documents, and the status files.
const FIXED_ELSEWHERE: [&str; 3] = ["DialectEvent", "IdentityDocument", "BuildEventObject"];
/// A command that changes the status takes the change as the log has it.
const CHANGES: [&str; 2] = ["StatusChange", "IdeaChange"];
/// The fields in which an answer has parts of events, as the log has them: 0060 names each.
const PARTS_OF_EVENTS: [&str; 7] = ["events", "messages", "about", "permission", "signals", "ward", "history"];
/// Numbers of tokens stand beside the money that they cost.
const USAGE: [&str; 5] = ["cost", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];
/// The fields that are money or usage, wherever they are.
const SPENT: [&str; 5] = ["spent", "total", "limit", "budget", "cost"];

fn is_convention(name: &str) -> bool {
    !name.contains(['_', '-']) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

fn document() -> Value {
    serde_json::to_value(hatchery::http::openapi()).unwrap()
}

/// The names of all schemas that a part of the document refers to, directly or not.
fn reached(document: &Value, from: &Value, found: &mut BTreeSet<String>) {
    match from {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "$ref" {
                    let schema = value.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
                    if found.insert(schema.clone()) {
                        reached(document, &document["components"]["schemas"][&schema], found);
                    }
                } else {
                    reached(document, value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| reached(document, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn properties<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("properties").and_then(Value::as_object);
            found.extend(own.into_iter().flat_map(Map::keys).map(String::as_str));
            fields.values().for_each(|value| properties(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| properties(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_names_of_the_api_are_in_camel_case() {
    let document = document();
    let mut exempt = BTreeSet::new();
    for schema in ["EventObject"].into_iter().chain(FIXED_ELSEWHERE).chain(CHANGES) {
        exempt.insert(schema.to_owned());
        reached(&document, &document["components"]["schemas"][schema], &mut exempt);
    }
    let mut used = BTreeSet::new();
    reached(&document, &document["paths"], &mut used);
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for schema in used.difference(&exempt) {
        let mut names = Vec::new();
        properties(&document["components"]["schemas"][schema], &mut names);
        looked_at += names.len();
        wrong.extend(names.into_iter().filter(|name| !is_convention(name)).map(|name| format!("{schema}.{name}")));
    }
    // An entry of a history is the stored event of its message, with more.
    wrong.retain(|name| name != "MessageView.source_id");
    assert_eq!(wrong, Vec::<String>::new());
    assert!(looked_at > 300, "only {looked_at} names were looked at");
    let parameters =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let parameters = parameters.flat_map(|operation| operation["parameters"].as_array().cloned().unwrap_or_default());
    let wrong: Vec<Value> = parameters
        .filter(|parameter| parameter["in"] == "query" && !is_convention(parameter["name"].as_str().unwrap()))
        .collect();
    assert_eq!(wrong, Vec::<Value>::new());
}

/// A moment is named by what happened then, and the same thing has the same name everywhere. `ts` is that of an event, `at` that of a note;
/// `since` and `until` are the bounds of a state, and `day` is the beginning of a day.
const MOMENTS: [&str; 15] = [
    "ts",
    "at",
    "since",
    "until",
    "day",
    "now",
    "created",
    "requested",
    "started",
    "asked",
    "sent",
    "changed",
    "ended",
    "lastActive",
    "lastOutput",
];
/// A seat is shown with the names of identity documents, which other programs read.
const NAMED_ELSEWHERE: [&str; 2] = ["SeatView.createdAt", "SeatView.lastAliveAt"];

#[test]
fn a_moment_has_one_name_for_one_thing() {
    let document = document();
    let mut exempt = BTreeSet::new();
    for schema in ["EventObject"].into_iter().chain(FIXED_ELSEWHERE).chain(CHANGES) {
        exempt.insert(schema.to_owned());
        reached(&document, &document["components"]["schemas"][schema], &mut exempt);
    }
    let mut used = BTreeSet::new();
    reached(&document, &document["paths"], &mut used);
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    for schema in used.difference(&exempt) {
        let fields = document["components"]["schemas"][schema]["properties"].as_object();
        for (name, field) in fields.into_iter().flatten() {
            if !field.to_string().contains("#/components/schemas/Timestamp") {
                continue;
            }
            let whole = format!("{schema}.{name}");
            match MOMENTS.contains(&name.as_str()) || NAMED_ELSEWHERE.contains(&whole.as_str()) {
                true => drop(seen.insert(name.as_str())),
                false => wrong.push(whole),
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen.len() > 10, "only {seen:?}");
}

#[test]
fn every_list_of_the_api_has_its_place_in_the_log() {
    let document = document();
    let mut lists = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(answers) = item["get"]["responses"].as_object() else { continue };
        for (status, answer) in answers.iter().filter(|(status, _)| status.starts_with('2')) {
            let schema = &answer["content"]["application/json"]["schema"];
            assert_ne!(schema["type"], "array", "{path} {status} is a bare list");
            let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) else { continue };
            let Some(fields) = document["components"]["schemas"][name]["properties"].as_object() else { continue };
            if fields.values().any(|field| field["type"] == "array") {
                lists += 1;
                assert!(fields.contains_key("head"), "{path}: {name} has a list and no head");
            }
        }
    }
    assert!(lists > 10, "only {lists} lists");
}

/// Nothing, an amount, or an amount with its tokens.
fn is_money(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) if fields.contains_key("cost") => USAGE.iter().all(|name| fields.contains_key(*name)),
        Value::Object(fields) => fields.contains_key("dollars") && fields.contains_key("nanodollars"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

/// Every amount of money says its dollars.
fn check_printed(value: &Value, at: &str) {
    match value {
        Value::Object(fields) => {
            if let Some(nanodollars) = fields.get("nanodollars") {
                assert!(fields.get("dollars").is_some_and(Value::is_string), "{at}: {nanodollars} without dollars");
            }
            for (name, value) in fields {
                assert!(is_convention(name), "{at}.{name}");
                if SPENT.contains(&name.as_str()) {
                    assert!(is_money(value), "{at}.{name} is {value}, which is neither money nor usage");
                }
                if !PARTS_OF_EVENTS.contains(&name.as_str()) {
                    check_printed(value, &format!("{at}.{name}"));
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| check_printed(value, at)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn what_commands_print_as_json_keeps_to_it() {
    let shop = Workshop::with(SHORT, Vec::new());
    shop.repository();
    let cost = json!({ "cost": { "usd": 0.05, "input_tokens": 10 } });
    let agent = shop.run(&[cost.clone(), text("done")]);
    shop.end(&agent);
    let book = shop.playbook().play("codeweaver", &[cost, write("bridge.txt", "wide"), done("built")]);
    let quest = shop.new_quest(&book, json!({ "steps": [step("a", &[])], "isolation": "worktree" }));
    shop.wait_quest(&quest, "quest_completed");
    let asks = shop.run(&[json!({ "ask": { "name": "Bash", "input": { "command": "make" } } })]);
    shop.wait_for(&asks, "question_asked");
    let mail = json!({ "from": agent, "to": "human", "body": "hello" });
    assert_eq!(shop.door().post("/api/mail", &mail).status, 201);
    shop.grounds.run(&["inbox", "add", "an idea"]).good();
    shop.grounds.run(&["budget", "5"]).good();
    // Lists first: each is an object with `head`.
    let lists: [&[&str]; 20] = [
        &["ps", "--all"],
        &["ps", "--all", "--everywhere"],
        &["tree", "--all"],
        &["wait", &agent],
        &["ask", "list", "--everywhere"],
        &["adopt"],
        &["runs"],
        &["usage"],
        &["budget"],
        &["permissions", "list"],
        &["ask", "list"],
        &["quest", "list", "--all"],
        &["session", "list"],
        &["seats"],
        &["mail", "check"],
        &["thread", &agent],
        &["history", &agent],
        &["rescue", "list"],
        &["projects"],
        &["inbox", "list"],
    ];
    for command in lists {
        let value = printed(&shop, command);
        assert!(value.as_object().is_some_and(|fields| fields.contains_key("head")), "{command:?}: {value}");
        check_printed(&value, &command.join(" "));
        // Each project has its own place in its own log.
        for project in value["projects"].as_array().into_iter().flatten().filter(|_| command.contains(&"--everywhere"))
        {
            assert!(project["head"].as_u64().is_some_and(|head| head > 0), "{command:?}: {project}");
        }
    }
    let others: [&[&str]; 13] = [
        &["status"],
        &["mail", "wait", "--timeout", "0"],
        &["run", "--detach", "hello"],
        &["say", &agent, "hello"],
        &["pr", &quest],
        &["why", &agent],
        &["quest", "show", &quest],
        &["diff", &quest],
        &["merge", &quest],
        &["gc"],
        &["fsck"],
        &["doctor"],
        &["stop", &asks],
    ];
    for command in others {
        let value = printed(&shop, command);
        assert!(value.is_object(), "{command:?}: {value}");
        check_printed(&value, &command.join(" "));
    }
    // The file of a quest is what the API shows.
    let file = shop.grounds.data().join("quests").join(&quest).join("quest.json");
    let file = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    check_printed(&serde_json::from_str(&file).unwrap(), "quest.json");
    let refused = shop.grounds.run(&["--json", "why", "nobody"]);
    check_printed(&serde_json::from_str(&refused.stderr).unwrap(), "an error");
}

fn printed(shop: &Workshop, command: &[&str]) -> Value {
    let arguments: Vec<&str> = ["--json"].into_iter().chain(command.iter().copied()).collect();
    let ran = shop.grounds.run(&arguments);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{command:?}: {error}: {ran:?}"))
}

/// What the documents show in a form of its own, by the beginning of the path of the document.
const SHOWN_ELSEWHERE: [(&str, &[&str]); 4] = [
    // A script of a scripted agent.
    (
        "docs/scripted-agents.md",
        &[
            "partial_thought",
            "is_error",
            "file_path",
            "sleep_ms",
            "long_line",
            "write_file",
            "sleep_s",
            "input_tokens",
            "output_tokens",
            "resets_in_s",
            "last_words",
            "ignore_sigterm",
            "request_id",
        ],
    ),
    ("docs/runs.md", &["sleep_ms", "input_tokens", "output_tokens"]),
    // A line of `history import`.
    ("docs/commands.md", &["fork_message_id"]),
    // A change of the status, as the log has it.
    ("docs/status.md", &["start_step"]),
];

/// The names of fields in a text: `"name":`.
fn names_of(text: &str) -> impl Iterator<Item = &str> {
    let parts: Vec<&str> = text.split('"').collect();
    let names = parts.windows(2).filter(|pair| pair[1].trim_start().starts_with(':')).map(|pair| pair[0]);
    let names: Vec<&str> = names.filter(|name| !name.is_empty() && !name.contains(char::is_whitespace)).collect();
    names.into_iter()
}

/// The contents of the blocks of a document that are marked as JSON.
fn json_blocks(document: &str) -> impl Iterator<Item = &str> {
    document.split("```json\n").skip(1).filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block))
}

#[test]
fn the_json_of_the_documents_keeps_to_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let documents = docs.filter(|path| path.extension().is_some_and(|it| it == "md")).chain([root.join("README.md")]);
    let (mut names, mut blocks, mut exempt) = (0, 0, BTreeSet::new());
    for path in documents {
        let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let elsewhere =
            SHOWN_ELSEWHERE.iter().find(|(document, _)| *document == name).map_or(&[][..], |(_, names)| names);
        for field in names_of(&text) {
            names += 1;
            match elsewhere.iter().find(|known| **known == field) {
                Some(known) => drop(exempt.insert((name.to_owned(), *known))),
                None => assert!(is_convention(field), "{name} has the name `{field}`"),
            }
        }
        for block in json_blocks(&text) {
            blocks += 1;
            let value = serde_json::from_str(block).unwrap_or_else(|error| panic!("{name}: {error}: {block}"));
            check_printed(&value, name);
        }
    }
    assert!(names > 150 && blocks >= 4, "only {names} names and {blocks} blocks were looked at");
    let listed: usize = SHOWN_ELSEWHERE.iter().map(|(_, names)| names.len()).sum();
    assert_eq!(exempt.len(), listed, "each exception is used: {exempt:?}");
}
