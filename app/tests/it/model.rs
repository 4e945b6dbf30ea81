//! The scripted model itself: a test that leans on it must not be led astray by it.

use crate::support::http::{Answer, Door};
use crate::support::model::{Block, Fault, Gate, Model, Place, Step};
use crate::support::runtime;
use serde_json::{Value, json};

#[test]
fn a_stream_has_its_events_in_order() {
    let blocks = [
        Block::Thinking("let me see".into()),
        Block::text("a text of more than one piece"),
        Block::ToolUse { name: "look".into(), input: json!({ "where": "over there" }) },
    ];
    let model = Model::playing([Step::blocks(blocks)]);
    let events = events(&ask(&model, "key", true));
    let mut kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let whole = [&["message_start"][..], &block, &block, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(kinds, whole);
    let joined = |field: &str| events.iter().filter_map(|event| event["delta"][field].as_str()).collect::<String>();
    assert_eq!(joined("thinking"), "let me see");
    assert_eq!(joined("text"), "a text of more than one piece");
    assert_eq!(serde_json::from_str::<Value>(&joined("partial_json")).unwrap(), json!({ "where": "over there" }));
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn each_key_has_its_script_and_asides_use_up_no_step() {
    let model = Model::playing([Step::text("to anybody")]).playing_to("ann", [Step::text("to Ann")]);
    let aside = door(&model, "ann").post("/v1/messages", &json!({ "model": "m", "max_tokens": 1, "messages": [] }));
    assert_eq!(text(&aside), "aside");
    assert_eq!(text(&ask(&model, "ann", false)), "to Ann");
    assert_eq!(text(&ask(&model, "bob", false)), "to anybody");
    assert_eq!(text(&ask(&model, "ann", false)), "ok");
    assert_eq!(model.count(), 3);
    let asked = model.asked_by("bob", 1);
    assert_eq!((asked.dialogue(), asked.tools()), (vec!["user: hello".to_owned()], vec!["look"]));
    assert_eq!((asked.system().as_str(), asked.session), ("be brief", None));
}

#[test]
fn errors_come_with_their_headers_and_stay_when_told_to() {
    let limited = Step::refuse(429, "slow down").header("retry-after", 7);
    let model = Model::playing([limited, Step::refuse(529, "overloaded").for_ever()]);
    let first = runtime().block_on(async {
        let mut http = door(&model, "key").http();
        http.send(hyper::Method::POST, "/v1/messages", &[], question(true).to_string().into()).await.unwrap()
    });
    assert_eq!((first.status().as_u16(), &first.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    for _ in 0..3 {
        let answer = ask(&model, "key", true);
        assert_eq!((answer.status, &answer.json()["error"]["type"]), (529, &json!("overloaded_error")));
    }
}

#[test]
fn an_answer_stands_still_fails_or_breaks_where_the_script_says() {
    let (door_of_it, inside) = (Gate::default(), Gate::default());
    let broken = Step::text("a text of more than one piece").fault(Place::Within(0), Fault::Cut);
    let model = Model::playing([
        Step::text("late").behind(&door_of_it).fault(Place::Behind(0), Fault::Hold(inside.clone())),
        Step::text("well").fault(Place::Behind(0), Fault::Fail("overloaded_error")),
        broken.clone(),
        broken,
    ]);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| ask(&model, "key", true));
        assert_eq!(model.asked(1).key, "key");
        door_of_it.open();
        inside.reached();
        assert!(!late.is_finished());
        inside.open();
        assert_eq!(events(&late.join().unwrap()).last().unwrap()["type"], "message_stop");
    });
    assert_eq!(events(&ask(&model, "key", true)).last().unwrap()["error"]["type"], "overloaded_error");
    for stream in [true, false] {
        let cut = runtime().block_on(door(&model, "key").http().post("/v1/messages", &question(stream)));
        assert!(cut.is_err(), "{cut:?}");
    }
}

#[test]
fn everything_else_is_harmless() {
    let model = Model::playing([]);
    let counted = door(&model, "key").post("/v1/messages/count_tokens", &question(true));
    assert!(counted.json()["input_tokens"].as_u64().unwrap() > 0);
    assert_eq!(door(&model, "key").get("/v1/models").json()["data"], json!([]));
    let missing = door(&model, "key").post("/api/anything", &json!({}));
    assert_eq!((missing.status, &missing.json()["error"]["type"]), (404, &json!("not_found_error")));
    assert_eq!(model.count(), 0);
}

fn door(model: &Model, key: &str) -> Door {
    Door::new(&model.url(), key.into())
}

fn ask(model: &Model, key: &str, stream: bool) -> Answer {
    door(model, key).post("/v1/messages", &question(stream))
}

fn question(stream: bool) -> Value {
    json!({
        "model": "m",
        "max_tokens": 100,
        "stream": stream,
        "system": [{ "type": "text", "text": "be brief" }],
        "messages": [{ "role": "user", "content": "hello" }],
        "tools": [{ "name": "look" }],
    })
}

fn text(answer: &Answer) -> String {
    answer.json()["content"][0]["text"].as_str().unwrap().to_owned()
}

fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}
