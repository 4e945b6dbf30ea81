//! `/api/openapi.json` is kept true: it names what is there, and what is there answers as it says.

mod scenes;
mod tries;

use self::scenes::{at_work, failed_quest, permitted, repository, sleeper};
use self::tries::{answered_as_described, tried};
use super::house::{House, Rules};
use super::schema::Schemas;
use hatchery::calls::Calls;
use hatchery::http::{ApiContext, Guard, Trials, router};
use hatchery::status_files::FilesShown;
use hatchery_core::agent::MAX_PENDING_FORKS;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const NOBODY: &str = "AAAAAAAAAAAAAAAAAAAAAA";
const CONVERSATION: &str = "11111111-1111-4111-8111-111111111111";
/// A history from elsewhere, with ids of both sorts.
const FOREIGN: &str = r#"{"agent":{"id":1,"parent":null,"fork_message_id":null}}
{"message":{"id":"m","agent":1,"kind":"user","content":"hello"}}
{"agent":{"id":"b","parent":1,"fork_message_id":"m"}}"#;

fn document(house: &House) -> Value {
    house.get("/api/openapi.json").json()
}

/// Every operation: its method, its path, and what is said of it.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (method.as_str(), path.as_str(), operation))
    });
    all.collect()
}

/// Every `$ref` in it, wherever it stands.
fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("$ref", Value::String(reference)) => drop(found.insert(reference)),
                    _ => references(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_document_is_well_formed() {
    let house = House::open();
    let document = document(&house);
    assert_eq!(document, serde_json::to_value(hatchery::http::openapi()).unwrap(), "the one served is the one kept");
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 10);
    for reference in &found {
        Schemas(&document).resolve(reference).unwrap();
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        // What a frame of a stream holds is said in words: a schema describes whole bodies only.
        let is_frame = ["DialectEvent", "Trouble"].contains(&name.as_str());
        assert!(
            is_frame || found.contains(format!("#/components/schemas/{name}").as_str()),
            "{name} is described, but nobody uses it"
        );
    }
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let about = format!("{method} {path}");
        assert!(METHODS.contains(&method), "{about}");
        assert!(names.insert(operation["operationId"].as_str().unwrap()), "{about}: its name is taken");
        assert!(operation["summary"].as_str().is_some_and(|text| text.ends_with('.')), "{about} says what it does");
        let in_path: BTreeSet<_> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let described: BTreeSet<_> =
            parameters.iter().filter(|it| it["in"] == "path").filter_map(|it| it["name"].as_str()).collect();
        assert_eq!(in_path, described, "{about}");
        for parameter in parameters {
            assert!(is_explained(&document, parameter), "{about}: {parameter}");
            assert!(["path", "query", "header"].contains(&parameter["in"].as_str().unwrap()), "{about}");
            assert_eq!(parameter["required"] == true, parameter["in"] == "path", "{about}: {parameter}");
            assert!(parameter["schema"].is_object(), "{about}");
        }
        if let Some(body) = operation["requestBody"]["content"].get("application/json") {
            let shape = Schemas(&document).resolve(body["schema"]["$ref"].as_str().unwrap()).unwrap();
            // Clients of seats were written for another program, and may say more than we know.
            let loose = operation["tags"] == json!(["seats"]) && path != "/api/docs/import";
            // A choice is an object with one field, whose name says what is chosen.
            let choices = shape["oneOf"].as_array();
            let shapes: Vec<&Value> = match choices {
                Some(choices) => choices.iter().flat_map(|it| it["properties"].as_object().unwrap().values()).collect(),
                None => vec![shape],
            };
            for shape in shapes {
                // Other programs give build events fields of their own. The schema of a choice cannot say that it is closed.
                let is_open = operation["operationId"] == "record_build_event" || choices.is_some();
                assert!(
                    is_open || (shape["additionalProperties"] != false) == loose,
                    "{about}: what is not known is refused"
                );
                for (name, field) in shape["properties"].as_object().into_iter().flatten() {
                    assert!(is_explained(&document, field), "{about} does not say what `{name}` is");
                }
            }
        }
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{about} can go well");
        assert_eq!(responses.contains_key("401"), path != "/api/health", "{about}");
        assert!(responses.contains_key("4XX") && responses.contains_key("5XX"), "{about}");
        for (status, response) in responses {
            assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{about} {status}");
            assert_eq!(response["content"].as_object().map(serde_json::Map::len), Some(1), "{about} {status}");
        }
        let security = operation.get("security").unwrap_or(&document["security"]);
        for scheme in security.as_array().unwrap().iter().flat_map(|it| it.as_object().unwrap().keys()) {
            assert!(schemes.contains_key(scheme), "{about}: {scheme}");
        }
        assert_eq!(security == &json!([{}]), path == "/api/health", "{about}: {security}");
    }
}

/// Says what it is, itself or where it refers to.
fn is_explained(document: &Value, about: &Value) -> bool {
    let referred = about["$ref"].as_str().map(|reference| Schemas(document).resolve(reference).unwrap());
    about["description"].as_str().is_some_and(|text| !text.is_empty())
        || referred.is_some_and(|it| is_explained(document, it))
        || about["oneOf"].as_array().is_some_and(|choices| choices.iter().any(|it| is_explained(document, it)))
}

/// Axum does not list its routes, but shows them when it is debugged.
fn routed(house: &House) -> BTreeSet<String> {
    let api = Arc::new(ApiContext {
        handle: house.handle.clone(),
        settings: Arc::clone(&house.settings),
        calls: Arc::new(Calls::new(house.handle.clone())),
        live: std::sync::Arc::default(),
        trials: Trials::default(),
        status_files: FilesShown::new(&house.settings.defaults().project),
        outbox: hatchery::team_outbox::open(&house.settings.defaults().project).0,
        guard: Guard::new(hatchery::config::Auth::None, String::new(), house.address, Vec::new()),
        project: String::new(),
        store: String::new(),
        log_head: None,
        started: Instant::now(),
        heartbeat: Duration::from_secs(1),
        request_timeout: Duration::from_secs(1),
        max_body_bytes: 1,
        imports: Arc::new(tokio::sync::Semaphore::new(1)),
        closing: tokio::sync::watch::channel(false).1,
    });
    let shown = format!("{:?}", router(&api));
    shown.split('"').filter(|text| text.starts_with('/')).map(str::to_owned).collect()
}

#[test]
fn what_is_described_is_there_and_what_is_there_is_described() {
    let house = House::open();
    let document = document(&house);
    let described: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    let mut routed = routed(&house);
    assert!(routed.remove("/"), "the page, which is no part of the API: {routed:?}");
    routed.retain(|path| !path.contains("axum"));
    assert_eq!(routed, described);
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", NOBODY).replace("{agent}", NOBODY).replace("{address}", NOBODY);
        for method in METHODS.iter().filter(|method| **method != "head") {
            let reply = match (*method, path.as_str()) {
                // Its body would not end.
                ("get", "/api/events") => house.get("/api/events?after=x"),
                ("get", "/api/status/live") => continue,
                _ => house.ask(&method.to_uppercase(), &path, b"{}"),
            };
            assert_eq!(reply.status == 405, item.get(*method).is_none(), "{method} {path}: {reply:?}");
            assert!(reply.status != 404 || reply.code() != "no_such_path", "{method} {path}");
        }
    }
}

#[test]
fn every_operation_answers_as_described() {
    let house = House::with(Rules { runner: false, ..Rules::default() });
    let document = document(&house);
    let session = house.make("/api/sessions", &json!({ "label": "one", "idleMs": 3_600_000 }));
    let agent = house.make("/api/agents", &json!({ "name": "Cael", "session": session }));
    let child = house.make("/api/agents", &json!({ "parent": agent }));
    let sleeper = sleeper(&house);
    house.converse(CONVERSATION);
    let busy = house.agent();
    house.make(&format!("/api/agents/{busy}/messages"), &json!({ "kind": "tool_call", "content": "ls" }));
    let at = house.head();
    for _ in 1..MAX_PENDING_FORKS {
        assert_eq!(house.post("/api/agents", &json!({ "parent": busy })).status, 202);
    }
    for _ in 0..2 {
        house.make("/api/agents", &json!({ "name": "twin", "anyName": true }));
    }
    let full_birth = json!({
        "parent": busy, "at": at, "prompt": "go on", "name": "Ædel 7", "provider": "p", "model": "m-1.5",
        "session": session, "hatchMs": 86_400_000,
    });
    let (worker, idler) = (at_work(&house), at_work(&house));
    let broke = house.agent();
    house.make("/api/budgets", &json!({ "agent": broke, "limit": "0" }));
    house.make(&format!("/api/agents/{broke}/say"), &json!({ "text": "x", "with": { "harness": "scripted" } }));
    let question = house.get("/api/questions").json()["questions"][0]["id"].clone();
    let answers = format!("/api/questions/{question}/answer");
    let rule = permitted(&house);
    let call = |number: u64| Some(json!({ "run": 1, "attempt": 1, "number": number }));
    let full_options = json!({
        "harness": "scripted", "model": "m", "folder": "f", "script": "s", "stays": true, "stallMs": 1_000, "killStuck": true,
        "retries": 100, "park": false, "permissions": "edits",
    });
    let scripted = json!({ "harness": "scripted" });
    let held = json!({ "request": "a bridge", "ward": "", "isolation": "none", "hold": true, "with": scripted });
    let quest = house.make("/api/quests", &held);
    let exported = house.get(&format!("/api/quests/{quest}")).json();
    let full_quest = json!({
        "request": "a bridge", "slots": 64, "ward": "make check", "wardLimitMs": 1_000, "isolation": "none", "approvePlan": false,
        "budget": "0.25", "hold": true, "with": { "harness": "scripted" },
        "steps": [{ "id": "arch", "name": "Arch", "description": "", "depends_on": [], "files_to_create": [], "files_to_modify": [],
            "observables": [] }],
    });
    let looped =
        json!({ "request": "x", "steps": [{ "id": "a", "name": "A", "depends_on": ["a"] }], "with": scripted });
    let unknown_field =
        json!({ "request": "x", "steps": [{ "id": "a", "name": "A", "dependson": [] }], "with": scripted });
    let agreed =
        json!({ "request": "x", "steps": [{ "id": "a", "name": "A" }], "approvePlan": true, "with": scripted });
    let new_quest = |wish: Value, status: u16| tried("new_quest", "/api/quests", Some(wish), status);
    let failed = failed_quest(&house);
    let of_quest = |call: &str| format!("/api/quests/{quest}/{call}");
    let waits = format!("/api/mail/{agent}/wait");
    let mine = |call: &str| format!("/api/agents/{agent}/{call}");
    let opening = json!({ "previousTranscript": "a", "artifactCatalog": "b", "demoMode": true, "with": scripted });
    let told =
        json!({ "previousTranscript": [{ "role": "user", "text": "a" }], "artifactCatalog": [{ "filename": "b" }] });
    let identity = json!([{ "gridPosition": 1, "name": "Lyra", "individuationArtifact": "I am.", "createdAt": "2026-02-16T00:00:00Z" }]);
    let identity = identity.to_string();
    let tries = [
        tried("openapi", "/api/openapi.json", None, 200),
        tried("health", "/api/health", None, 200),
        tried("status", "/api/status", None, 200),
        tried("overview", "/api/overview", None, 200),
        tried("fsck", "/api/fsck", Some(json!({ "repair": false })), 200),
        tried("gc", "/api/gc", Some(json!({ "days": 1 })), 200),
        tried("take_settings", "/api/settings", None, 200),
        tried("gc", "/api/gc", Some(json!({ "days": -1 })), 400),
        tried("fsck", "/api/fsck", Some(json!({ "repair": 1 })), 400),
        tried("start_session", "/api/sessions", Some(json!({})), 201),
        tried("start_session", "/api/sessions", Some(json!({ "label": null, "idleMs": 1_000_000 })), 201),
        tried("start_session", "/api/sessions", Some(json!({ "idleMs": 1 })), 422),
        tried("fork_agent", "/api/agents", Some(json!({})), 201),
        tried("fork_agent", "/api/agents", Some(full_birth), 201),
        tried("fork_agent", "/api/agents", Some(json!({ "parent": busy })), 202),
        tried("fork_agent", "/api/agents", Some(json!({ "parent": busy })), 409),
        tried("fork_agent", "/api/agents", Some(json!({ "parent": NOBODY })), 404),
        tried("fork_agent", "/api/agents", Some(json!({ "hatchMs": 86_400_001 })), 422),
        tried("show_agent", format!("/api/agents/{agent}"), None, 200),
        tried("show_agent", "/api/agents/root", None, 200),
        tried("show_agent", format!("/api/agents/{NOBODY}"), None, 404),
        tried("show_agent", "/api/agents/twin", None, 409),
        tried("rename_agent", mine("rename"), Some(json!({ "name": "Bram" })), 200),
        tried("rename_agent", mine("rename"), Some(json!({})), 200),
        tried("rename_agent", "/api/agents/no%20one/rename", Some(json!({})), 404),
        tried("rename_agent", mine("rename"), Some(json!({ "name": " " })), 422),
        tried("add_message", mine("messages"), Some(json!({ "kind": "tool_result", "content": "\u{0}\"\n" })), 201),
        tried("add_message", mine("messages"), Some(json!({ "kind": "x" })), 400),
        tried("mark_history", mine("mark"), Some(json!({})), 201),
        tried("mark_history", mine("mark"), Some(json!({ "label": "here" })), 201),
        tried("mark_history", mine("mark"), Some(json!({ "label": "x".repeat(257) })), 422),
        tried("add_message", mine("messages"), Some(json!({ "kind": "interrupted", "content": "" })), 201),
        tried("read_history", mine("history"), None, 200),
        tried("read_history", mine("history?full=true"), None, 200),
        tried("read_history", mine("history?full=1"), None, 400),
        tried("read_history", mine("history?limit=1&before=9"), None, 200),
        tried("read_history", mine("history?limit=0"), None, 400),
        tried("rewind_history", mine("rewind"), Some(json!({ "mark": "here" })), 201),
        tried("rewind_history", mine("rewind"), Some(json!({})), 201),
        tried("rewind_history", mine("rewind"), Some(json!({ "mark": "elsewhere" })), 404),
        tried("rewind_history", mine("rewind"), Some(json!({ "mark": "here", "message": 1 })), 400),
        tried("clear_history", mine("clear"), Some(json!({})), 201),
        tried("clear_history", mine("clear"), Some(json!({ "all": true })), 400),
        tried("import_history", "/api/history/import", Some(json!(FOREIGN)), 201),
        tried("import_history", "/api/history/import", Some(json!("")), 201),
        tried("import_history", "/api/history/import", Some(json!("{}")), 400),
        tried("send_mail", "/api/mail", Some(json!({ "to": "human", "from": agent, "body": "\u{0} é" })), 201),
        tried("send_mail", "/api/mail", Some(json!({ "to": agent, "body": "one" })), 201),
        tried("send_mail", "/api/mail", Some(json!({ "to": agent, "from": child, "body": "two" })), 201),
        tried("send_mail", "/api/mail", Some(json!({ "to": agent, "body": "three" })), 201),
        tried("send_mail", "/api/mail", Some(json!({ "to": "nobody here", "body": "" })), 404),
        tried("send_mail", "/api/mail", Some(json!({ "to": agent })), 400),
        tried("check_mail", "/api/mail/human", None, 200),
        tried("check_mail", format!("/api/mail/{agent}"), None, 200),
        tried("check_mail", "/api/mail/no%20one", None, 404),
        tried("mail_threads", format!("/api/mail/human/threads?with={agent}&limit=1&before=1000000"), None, 200),
        tried("mail_threads", "/api/mail/human/threads?limit=0", None, 400),
        tried("wait_for_mail", waits.clone(), Some(json!({})), 200),
        tried("check_mail", format!("/api/mail/{agent}"), None, 200),
        tried(
            "wait_for_mail",
            waits.clone(),
            Some(json!({ "from": [child, "twin", "no one", busy], "timeoutMs": 1 })),
            200,
        ),
        tried("wait_for_mail", "/api/mail/root/wait", Some(json!({})), 200),
        tried("wait_for_mail", waits.clone(), Some(json!({ "timeoutMs": 25_001 })), 400),
        tried("wait_for_mail", waits, Some(json!({ "from": vec!["x"; 101] })), 400),
        tried("read_mail", "/api/mail/human/read", Some(json!({})), 200),
        tried("read_mail", "/api/mail/human/read", Some(json!({})), 404),
        tried("read_mail", format!("/api/mail/{agent}/read"), Some(json!({ "mail": 1 })), 404),
        tried("wake_agent", mine("wake"), Some(json!({})), 409),
        tried("wake_agent", format!("/api/agents/{sleeper}/wake"), Some(json!({ "session": session })), 200),
        tried("end_session", format!("/api/sessions/{session}/end"), Some(json!({ "reason": "failed" })), 202),
        tried("end_session", format!("/api/sessions/{session}/end"), Some(json!({})), 409),
        tried("preview_kill", mine("kill?cascade=true"), None, 200),
        tried("preview_kill", "/api/agents/root/kill", None, 409),
        tried("kill_agent", mine("kill"), Some(json!({ "by": child })), 409),
        tried("kill_agent", format!("/api/agents/{child}/kill"), Some(json!({ "remark": "done", "by": agent })), 200),
        tried("kill_agent", format!("/api/agents/{child}/kill"), Some(json!({})), 409),
        tried("kill_agent", mine("kill"), Some(json!({ "cascade": true })), 200),
        tried("kill_agent", mine("kill"), Some(json!({ "cascade": "yes" })), 400),
        tried("start_run", "/api/runs", Some(json!({ "prompt": "x", "with": full_options })), 201),
        tried(
            "start_run",
            "/api/runs",
            Some(json!({ "prompt": "x", "parent": "root", "name": "Ida", "with": scripted })),
            201,
        ),
        tried("start_run", "/api/runs", Some(json!({ "prompt": "x", "with": { "harness": "none" } })), 400),
        tried(
            "start_run",
            "/api/runs",
            Some(json!({ "prompt": "x", "with": { "harness": "scripted", "stallMs": 1 } })),
            422,
        ),
        tried("say", format!("/api/agents/{worker}/say"), Some(json!({ "text": "more" })), 200),
        tried("say", format!("/api/agents/{NOBODY}/say"), Some(json!({ "text": "more" })), 404),
        tried("take_call", format!("/api/agents/{worker}/calls"), call(1), 200),
        tried("take_call", format!("/api/agents/{worker}/calls"), call(1), 200),
        tried("take_call", format!("/api/agents/{worker}/calls"), call(2), 409),
        tried("take_call", format!("/api/agents/{worker}/calls"), call(3), 404),
        tried("interrupt", format!("/api/agents/{worker}/interrupt"), None, 200),
        tried("interrupt", format!("/api/agents/{busy}/interrupt"), None, 404),
        tried("stop_run", format!("/api/agents/{idler}/stop"), None, 200),
        tried("stop_run", format!("/api/agents/{idler}/stop"), None, 409),
        tried("list_runs", "/api/runs", None, 200),
        tried("why", format!("/api/agents/{worker}/why"), None, 200),
        tried("why", format!("/api/agents/{broke}/why"), None, 200),
        tried("why", format!("/api/agents/{NOBODY}/why"), None, 404),
        tried("usage", "/api/usage", None, 200),
        tried("usage", "/api/usage?days=7", None, 200),
        tried("usage", "/api/usage?days=367", None, 400),
        tried("list_questions", "/api/questions", None, 200),
        tried("answer_question", answers.clone(), Some(json!({ "answer": "a lot" })), 422),
        tried("answer_question", answers.clone(), Some(json!({ "answer": "0.5" })), 200),
        tried("answer_question", answers, Some(json!({ "answer": "0.5" })), 404),
        tried("set_budget", "/api/budgets", Some(json!({ "limit": "$20" })), 200),
        tried("set_budget", "/api/budgets", Some(json!({ "agent": broke })), 200),
        tried("set_budget", "/api/budgets", Some(json!({ "limit": "much" })), 400),
        tried("list_budgets", "/api/budgets", None, 200),
        tried("list_permission_rules", "/api/permissions", None, 200),
        tried("remove_permission_rule", format!("/api/permissions/{rule}/remove"), None, 200),
        tried("remove_permission_rule", format!("/api/permissions/{rule}/remove"), None, 404),
        tried("adopt", "/api/adopt", Some(json!({ "session": CONVERSATION, "name": "old" })), 201),
        tried("adopt", "/api/adopt", Some(json!({ "session": CONVERSATION })), 409),
        tried("adopt", "/api/adopt", Some(json!({ "session": "0000" })), 404),
        tried("adopt", "/api/adopt", Some(json!({})), 400),
        tried("list_adoptable", "/api/adopt", None, 200),
        tried("list_sessions", "/api/sessions", None, 200),
        tried("list_agents", "/api/agents", None, 200),
        tried("list_agents", format!("/api/agents?living=true&active=true&quest={failed}"), None, 200),
        tried("list_agents", "/api/agents?quest=nobody", None, 404),
        tried("list_events", "/api/events.json", None, 200),
        tried("list_events", "/api/events.json?limit=0", None, 400),
        tried("list_events", "/api/events.json?before=20&limit=5&type=agent_created&words=a", None, 200),
        tried("list_events", format!("/api/events.json?agent={worker}&quest={failed}&step=arch"), None, 200),
        tried("list_events", "/api/events.json?before=20&after=1", None, 400),
        tried("list_events", "/api/events.json?step=arch", None, 400),
        tried("count_events", "/api/events/count?type=agent_created,agent_killed", None, 200),
        tried("count_events", "/api/events/count?agent=no%20one", None, 400),
        tried("find_moment", "/api/events/at?ts=0", None, 200),
        tried("map_events", "/api/events/map?parts=3", None, 200),
        tried("map_events", "/api/events/map?parts=0", None, 400),
        tried("find_moment", "/api/events/at?ts=soon", None, 400),
        tried("follow_events", "/api/events?after=x", None, 400),
        new_quest(full_quest, 201),
        new_quest(looped, 422),
        new_quest(unknown_field, 400),
        new_quest(agreed, 400),
        new_quest(json!({ "request": "x", "isolation": "worktree", "with": scripted }), 400),
        new_quest(json!({ "request": "x", "slots": 0, "with": scripted }), 422),
        new_quest(json!({ "request": " ", "with": scripted }), 422),
        new_quest(json!({}), 400),
        tried("list_quests", "/api/quests", None, 200),
        tried("show_quest", format!("/api/quests/{quest}"), None, 200),
        tried("show_quest", format!("/api/quests/{failed}"), None, 200),
        tried("show_quest", "/api/quests/nobody", None, 404),
        tried("import_quest", "/api/quests/import", Some(exported.clone()), 201),
        tried("import_quest", "/api/quests/import", Some(json!({})), 400),
        tried("resume_quest", of_quest("resume"), Some(json!({})), 200),
        tried("resume_quest", of_quest("resume"), Some(json!({})), 409),
        tried("set_quest_budget", of_quest("budget"), Some(json!({ "limit": "1.5" })), 200),
        tried("set_quest_budget", of_quest("budget"), Some(json!({})), 200),
        tried("set_quest_budget", of_quest("budget"), Some(json!({ "limit": "much" })), 400),
        tried("set_quest_ward", of_quest("ward"), Some(json!({ "command": "true" })), 200),
        tried("set_quest_ward", of_quest("ward"), Some(json!({})), 200),
        tried("set_quest_ward", of_quest("ward"), Some(json!({})), 409),
        tried("set_quest_ward", of_quest("ward"), Some(json!({ "command": " " })), 422),
        tried("retry_step", of_quest("steps/nowhere/retry"), Some(json!({})), 404),
        tried("retry_step", of_quest("steps/plan/retry"), Some(json!({})), 409),
        tried("retry_step", of_quest("steps/No%20Name/retry"), Some(json!({})), 422),
        tried("retry_step", format!("/api/quests/{failed}/steps/arch/retry"), Some(json!({})), 200),
        tried("pause_quest", of_quest("pause"), Some(json!({})), 200),
        tried("pause_quest", of_quest("pause"), Some(json!({})), 409),
        tried("abandon_quest", of_quest("abandon"), Some(json!({})), 200),
        tried("abandon_quest", of_quest("abandon"), Some(json!({})), 409),
        tried("list_seats", "/api/seats", None, 200),
        tried("address_seat", "/api/send", Some(json!({ "message": "hello" })), 409),
        tried("close_seats", "/api/session/end", None, 200),
        tried("open_seats", "/api/session/start", Some(opening), 200),
        tried("open_seats", "/api/session/start", Some(json!({})), 409),
        tried("open_seats", "/api/session/start", Some(told), 409),
        tried("address_seat", "/api/send", Some(json!({ "message": "hello", "speakerName": "Ada", "more": 1 })), 202),
        tried("address_seat", "/api/send", Some(json!({ "message": " " })), 400),
        tried("chat", "/api/chat", Some(json!({ "message": "hello" })), 202),
        tried("restate_seats", "/api/ledger-reset", None, 200),
        tried("address_seat", "/api/send", Some(json!({ "message": "x", "targetAgent": "nobody" })), 404),
        tried("address_seat", "/api/send", Some(json!({ "message": "x", "targetGridPosition": 9 })), 400),
        tried("summon", "/api/agents/summon", Some(json!({ "seats": [0], "with": scripted })), 202),
        tried("summon", "/api/agents/summon", Some(json!({ "seats": [0] })), 409),
        tried("summon", "/api/agents/summon", Some(json!({ "seats": [4] })), 422),
        tried("wake_seats", "/api/agents/wake", Some(json!({})), 409),
        tried("import_identities", "/api/docs/import", Some(json!({ "text": identity })), 200),
        tried("import_identities", "/api/docs/import", Some(json!({ "text": "[1]" })), 400),
        tried("wake_seats", "/api/agents/wake", Some(json!({ "seats": [1], "with": scripted })), 202),
        tried("list_docs", "/api/docs?type=agent-identity", None, 200),
        tried("list_docs", "/api/docs?type=message", None, 400),
        tried("thread", "/api/agents/lead/thread", None, 200),
        tried("thread", "/api/agents/nobody%20here/thread", None, 404),
        tried("seat_thread", "/api/seats/4/thread", None, 200),
        tried("seat_thread", "/api/seats/8/thread", None, 404),
        tried("seat_thread", "/api/seats/9/thread", None, 400),
        tried("list_seats", "/api/seats", None, 200),
        tried("close_seats", "/api/session/end", None, 200),
        tried("export", "/api/export", None, 200),
        tried("read_state", "/api/state", None, 200),
        tried("read_state", "/api/state?path=scenarioScore.total", None, 200),
        tried("read_state", "/api/state?path=a..b", None, 422),
        tried("change_state", "/api/state", Some(json!({ "set": { "path": "a", "value": [1, "x", null] } })), 200),
        tried("change_state", "/api/state", Some(json!({ "increment": { "path": "n" } })), 200),
        tried("change_state", "/api/state", Some(json!({ "start_command": { "name": "evolve" } })), 200),
        tried("change_state", "/api/state", Some(json!({ "increment": { "path": "a" } })), 409),
        tried(
            "change_state",
            "/api/state",
            Some(json!({ "start_step": { "step": "observer", "choose": "skip" } })),
            200,
        ),
        tried("change_state", "/api/state", Some(json!({ "end_command": {} })), 200),
        tried("change_state", "/api/state", Some(json!({ "wish": {} })), 400),
        tried("build_status", "/api/build-status", None, 200),
        tried("build_resume", "/api/build-resume", None, 200),
        tried("record_build_event", "/api/build-events", Some(json!({ "kind": "chunk-started", "more": 1 })), 201),
        tried("record_build_event", "/api/build-events", Some(json!({ "more": 1 })), 422),
        tried("add_idea", "/api/inbox", Some(json!({ "type": "evolve", "content": "faster" })), 201),
        tried("add_idea", "/api/inbox", Some(json!({ "type": "odd", "content": "faster" })), 422),
        tried("change_inbox", "/api/inbox/changes", Some(json!({ "take": {} })), 200),
        tried("change_inbox", "/api/inbox/changes", Some(json!({ "take": {} })), 404),
        tried(
            "change_inbox",
            "/api/inbox/changes",
            Some(json!({ "add": { "id": "inbox-1-a", "type": "feature", "content": "x" } })),
            200,
        ),
        tried("list_ideas", "/api/inbox", None, 200),
        tried("dismiss_idea", "/api/inbox/inbox-1-a", None, 200),
        tried("dismiss_idea", "/api/inbox/inbox-1-a", None, 404),
    ];
    let mut went_well = answered_as_described(&house, &document, &tries);
    let rescued = repository(&house, &failed);
    fs::write(house.settings.defaults().project.root().join("new.txt"), "one\ntwo\n").unwrap();
    let ward = house.settings.defaults().project.data().join(format!("quests/{failed}/wards/arch-1"));
    fs::create_dir_all(&ward).unwrap();
    fs::write(ward.join("output.log"), "error: x\n").unwrap();
    let wards = format!("/api/quests/{failed}/steps/arch/wards");
    let with_git = [
        tried("ward_output", format!("{wards}/1/output"), None, 200),
        tried("ward_output", format!("{wards}/1/output?from=-2&limit=1"), None, 200),
        tried("ward_output", format!("{wards}/2/output"), None, 404),
        tried("ward_output", format!("{wards}/1/output?limit=0"), None, 400),
        tried("agent_changes", format!("/api/agents/{busy}/changes"), None, 200),
        tried("agent_changes", format!("/api/agents/{busy}/changes?file=new.txt"), None, 200),
        tried("agent_changes", format!("/api/agents/{busy}/changes?file=old.txt"), None, 404),
        tried("agent_files", format!("/api/agents/{busy}/files"), None, 200),
        tried("agent_files", "/api/agents/nobody/files", None, 404),
        tried("follow_live_text", "/api/agents/nobody/live", None, 404),
        tried("quest_changes", format!("/api/quests/{failed}/changes"), None, 200),
        tried("step_changes", format!("/api/quests/{failed}/steps/arch/changes"), None, 200),
        tried("step_changes", format!("/api/quests/{failed}/steps/nowhere/changes"), None, 404),
        new_quest(
            json!({ "id": BRANCHED, "request": "a branch", "isolation": "worktree", "ward": "", "hold": true, "with": scripted }),
            201,
        ),
        tried("try_ward", format!("/api/quests/{BRANCHED}/try-ward"), Some(json!({})), 200),
        tried("try_ward", "/api/quests/nothing/try-ward", Some(json!({})), 404),
        tried("ward_trial", format!("/api/quests/{BRANCHED}/try-ward?wait=true"), None, 200),
        tried("ward_trial", "/api/quests/nothing/try-ward", None, 404),
        tried("quest_defaults", "/api/quest-defaults", None, 200),
        tried("list_branches", "/api/branches", None, 200),
        tried("show_branch", format!("/api/branches/{BRANCHED}"), None, 200),
        tried("show_branch", format!("/api/branches/{busy}"), None, 409),
        tried("show_branch", "/api/branches/nobody", None, 404),
        tried("commit_branch", format!("/api/branches/{BRANCHED}/commit"), Some(json!({})), 200),
        tried(
            "merged_branch",
            format!("/api/branches/{BRANCHED}/merged"),
            Some(json!({ "head": "0".repeat(40) })),
            200,
        ),
        tried("merged_branch", format!("/api/branches/{BRANCHED}/merged"), Some(json!({})), 400),
        tried("list_rescued", "/api/rescue", None, 200),
        tried("restore_rescued", "/api/rescue/restore", Some(json!({ "name": rescued })), 201),
        tried("restore_rescued", "/api/rescue/restore", Some(json!({ "name": rescued })), 409),
        tried("restore_rescued", "/api/rescue/restore", Some(json!({ "name": "nothing" })), 404),
    ];
    went_well.extend(answered_as_described(&house, &document, &with_git));
    // The stream's own tests see its good answers; here it has none that ends.
    went_well.insert("follow_events".into());
    went_well.insert("follow_status".into());
    went_well.insert("follow_live_text".into());
    // It asks the user's other daemons, so its test has a home of its own.
    went_well.insert("list_projects".into());
    let all = operations(&document).into_iter().map(|it| it.2["operationId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(went_well, all, "every operation was seen to go well");
}

/// The id of a quest that has a branch.
const BRANCHED: &str = "BRANCHEDaaaaaaaaaaaaaA";

/// The page's types are made of `web/openapi.json`, so that has to be the document as it is.
#[test]
fn the_page_is_made_for_this_document() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/openapi.json");
    let document = serde_json::to_string_pretty(&hatchery::http::openapi()).unwrap() + "\n";
    if std::env::var_os("HATCHERY_BLESS").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == document,
        "web/openapi.json is not the API any more; write it anew with \
         `cargo xtask docs`, then run `npm run check` in web/"
    );
}
