//! Shorthand for what is done with agents, over HTTP.

use super::http::{Answer, Door};
use serde_json::{Value, json};

impl Door {
    /// Agent 0.
    pub fn root(&self) -> String {
        self.agents()[0]["id"].as_str().unwrap().to_owned()
    }

    pub fn agents(&self) -> Vec<Value> {
        self.get("/api/agents").json()["agents"].as_array().unwrap().clone()
    }

    pub fn one(&self, agent: &str) -> Value {
        let answer = self.get(&format!("/api/agents/{agent}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Forks at once, and gives the child's id.
    pub fn child(&self, parent: &str) -> String {
        let answer = self.fork(json!({ "parent": parent }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.id()
    }

    pub fn fork(&self, birth: Value) -> Answer {
        self.post("/api/agents", &birth)
    }

    pub fn kill(&self, agent: &str, how: Value) -> Answer {
        self.post(&format!("/api/agents/{agent}/kill"), &how)
    }

    /// Adds a message of some kind, and gives its id.
    pub fn add(&self, agent: &str, kind: &str, content: &str) -> u64 {
        let message = json!({ "kind": kind, "content": content });
        let answer = self.post(&format!("/api/agents/{agent}/messages"), &message);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["events"][0]["id"].as_u64().unwrap()
    }

    pub fn history(&self, agent: &str) -> Vec<Value> {
        let answer = self.get(&format!("/api/agents/{agent}/history?full=true"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["messages"].as_array().unwrap().clone()
    }

    /// What a model would get to see.
    pub fn context(&self, agent: &str) -> Vec<String> {
        let answer = self.get(&format!("/api/agents/{agent}/history"));
        assert_eq!(answer.status, 200, "{answer:?}");
        let messages = answer.json()["messages"].as_array().unwrap().clone();
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends a mail, and gives its id.
    pub fn mail(&self, from: &str, to: &str, body: &str) -> u64 {
        let answer = self.send(from, to, body);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["events"][0]["id"].as_u64().unwrap()
    }

    pub fn send(&self, from: &str, to: &str, body: &str) -> Answer {
        self.post("/api/mail", &json!({ "from": from, "to": to, "body": body }))
    }

    /// What is unread: the id and the state of each.
    pub fn unread(&self, of: &str) -> Vec<(u64, String)> {
        let list = self.get(&format!("/api/mail/{of}")).json();
        let mail = list["mail"].as_array().unwrap().iter();
        mail.map(|mail| (mail["id"].as_u64().unwrap(), mail["state"].as_str().unwrap().to_owned())).collect()
    }

    pub fn read_mail(&self, of: &str) -> Answer {
        self.post(&format!("/api/mail/{of}/read"), &json!({}))
    }

    /// Waits for the next mail of anybody, or for each of some agents.
    pub fn wait(&self, of: &str, from: &[&str], timeout_ms: u64) -> Answer {
        self.post(&format!("/api/mail/{of}/wait"), &json!({ "from": from, "timeout_ms": timeout_ms }))
    }
}

impl Answer {
    /// The events in it, as values.
    pub fn values(&self) -> Vec<Value> {
        self.events().iter().map(|event| serde_json::from_str(event).unwrap()).collect()
    }

    /// The types of the events in it. Fails unless their ids follow one another: one transaction.
    pub fn types(&self) -> Vec<String> {
        let events = self.values();
        let first = events[0]["id"].as_u64().unwrap();
        for (id, event) in (first..).zip(&events) {
            assert_eq!(event["id"], id, "{self:?}");
        }
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.error().0.as_str()), (status, code), "{self:?}");
    }
}
