//! A client of a stream of server-sent events that is not the log: it reads one event after the other.

use super::daemon::PATIENCE;
use super::http::Door;
use super::runtime;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use serde_json::Value;

pub struct EventSource {
    body: Incoming,
    text: String,
}

impl EventSource {
    pub fn open(door: &Door, path: &str) -> Self {
        let response = runtime().block_on(door.http().send(Method::GET, path, &[], Bytes::new())).unwrap();
        assert_eq!(response.status().as_u16(), 200);
        Self { body: response.into_body(), text: String::new() }
    }

    /// The next event: its name, if it has one, and its data. Waits for it.
    pub fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                if let Some(data) = field("data:") {
                    return (field("event:").unwrap_or_default(), serde_json::from_str(&data).unwrap());
                }
                continue;
            }
            let more = async { tokio::time::timeout(PATIENCE, self.body.frame()).await };
            let frame = runtime().block_on(more).expect("nothing comes").expect("it ended").expect("it broke off");
            self.text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    }
}
