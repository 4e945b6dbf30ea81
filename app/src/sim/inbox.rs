//! What comes in from outside while a script is played: messages, which wait for their turn, and calls, which do not. A thread
//! reads standard input, because the player must be able to wait for time and for input at once.

use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead as _, Read as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// More messages than this wait in the pipe: no script has so long a conversation.
const MAX_WAITING: usize = 1_024;
/// The longest line that is taken in; the real CLI takes prompts of this order.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// How long the real CLI waits for a prompt on a standard input that is left open.
const PROMPT_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub struct PlayerInbox {
    contents: Mutex<Contents>,
    changed: Condvar,
    /// The same, for those who wait in a runtime.
    rung: Notify,
}

#[derive(Debug, Default)]
struct Contents {
    messages: VecDeque<InboxMessage>,
    calls: VecDeque<PlayerCall>,
    /// The answers to requests of ours, by the ids of these.
    answers: BTreeMap<String, Value>,
    ended: bool,
}

/// What a person or a program said; it begins a turn.
#[derive(Clone, Debug)]
pub struct InboxMessage {
    pub uuid: Option<String>,
    /// As it came: a text, or blocks.
    pub content: Value,
}

/// What is attended to in the middle of a turn, too.
#[derive(Debug)]
pub enum PlayerCall {
    Interrupt(Interrupt),
    /// Another request, with its id.
    Other {
        id: String,
        subtype: String,
    },
}

#[derive(Debug)]
pub enum Interrupt {
    /// Asked for on standard input, with the request's id.
    Request(String),
    /// SIGINT. The process ends after the turn.
    Signal,
}

/// What came first while a request of ours was open.
#[derive(Debug)]
pub enum PlayerReply {
    Answer(Value),
    Call(PlayerCall),
    End,
}

/// What came first.
#[derive(Debug)]
pub enum Arrived {
    Call(PlayerCall),
    Message(InboxMessage),
    End,
}

/// An inbox for standard input, until that ends.
pub fn listen() -> io::Result<Arc<PlayerInbox>> {
    let inbox = Arc::<PlayerInbox>::default();
    let filled = Arc::clone(&inbox);
    let read = move || {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut stdin).take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return filled.put(|contents| contents.ended = true),
                Ok(_) => filled.take_in(&line),
            }
        }
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(read)?;
    Ok(inbox)
}

/// The prompt of a run that has none on its command line.
pub fn prompt_on_stdin() -> String {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let read = move || {
        let prompt = io::read_to_string(io::stdin()).unwrap_or_default();
        // An answer that came too late is dropped.
        tell.send(prompt).unwrap_or_default();
    };
    match std::thread::Builder::new().name("stdin".to_owned()).spawn(read) {
        Ok(_) => told.recv_timeout(PROMPT_PATIENCE).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

impl PlayerInbox {
    /// One message, and then the end.
    pub fn of(prompt: String) -> Self {
        let inbox = Self::default();
        inbox.put(|contents| {
            contents.messages.push_back(InboxMessage { uuid: None, content: Value::String(prompt) });
            contents.ended = true;
        });
        inbox
    }

    /// Waits for whatever comes first. Calls go before messages.
    pub fn wait(&self) -> Arrived {
        let mut contents = self.lock();
        loop {
            if let Some(call) = contents.calls.pop_front() {
                return Arrived::Call(call);
            }
            if let Some(message) = contents.messages.pop_front() {
                self.changed.notify_all();
                return Arrived::Message(message);
            }
            if contents.ended {
                return Arrived::End;
            }
            contents = self.changed.wait(contents).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the answer to a request of ours, for a call, or for the end of the input.
    pub fn reply_to(&self, request: &str) -> PlayerReply {
        let mut contents = self.lock();
        loop {
            if let Some(answer) = contents.answers.remove(request) {
                return PlayerReply::Answer(answer);
            }
            if let Some(call) = contents.calls.pop_front() {
                return PlayerReply::Call(call);
            }
            if contents.ended {
                return PlayerReply::End;
            }
            contents = self.changed.wait(contents).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A call that has come already.
    pub fn call(&self) -> Option<PlayerCall> {
        self.lock().calls.pop_front()
    }

    /// Waits until the time has come, or for a call.
    pub fn call_before(&self, time: Instant) -> Option<PlayerCall> {
        let mut contents = self.lock();
        loop {
            let left = time.saturating_duration_since(Instant::now());
            if !contents.calls.is_empty() || left.is_zero() {
                return contents.calls.pop_front();
            }
            contents = self.changed.wait_timeout(contents, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns when the turn is to end. The call stays in the inbox.
    pub async fn interrupted(&self) {
        while !self.lock().calls.iter().any(|call| matches!(call, PlayerCall::Interrupt(_))) {
            self.rung.notified().await;
        }
    }

    pub fn interrupt(&self, interrupt: Interrupt) {
        self.put(|contents| contents.calls.push_back(PlayerCall::Interrupt(interrupt)));
    }

    fn take_in(&self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            eprintln!(
                "Error parsing streaming input line (type=unknown, {} chars): SyntaxError",
                line.trim_ascii().len()
            );
            std::process::exit(1);
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match line["type"].as_str() {
            Some("user") => {
                self.deliver(InboxMessage { uuid: text(&line["uuid"]), content: line["message"]["content"].clone() })
            }
            Some("control_request") => {
                let id = text(&line["request_id"]).unwrap_or_default();
                let subtype = text(&line["request"]["subtype"]).unwrap_or_default();
                let call = match subtype.as_str() {
                    "interrupt" => PlayerCall::Interrupt(Interrupt::Request(id)),
                    _ => PlayerCall::Other { id, subtype },
                };
                self.put(|contents| contents.calls.push_back(call));
            }
            Some("control_response") => {
                let id = text(&line["response"]["request_id"]).unwrap_or_default();
                let answer = line["response"]["response"].clone();
                // Of many answers without a request, only the last ones are of any use.
                self.put(|contents| {
                    contents.answers.insert(id, answer);
                    while contents.answers.len() > MAX_WAITING {
                        contents.answers.pop_first();
                    }
                });
            }
            // As the real one: what it does not know, it passes over.
            _ => {}
        }
    }

    fn deliver(&self, message: InboxMessage) {
        let mut contents = self.lock();
        while contents.messages.len() >= MAX_WAITING {
            contents = self.changed.wait(contents).unwrap_or_else(PoisonError::into_inner);
        }
        contents.messages.push_back(message);
        drop(contents);
        self.changed.notify_all();
    }

    fn put(&self, change: impl FnOnce(&mut Contents)) {
        change(&mut self.lock());
        self.changed.notify_all();
        self.rung.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InboxMessage {
    pub fn text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            blocks => {
                let blocks = blocks.as_array().map(Vec::as_slice).unwrap_or_default();
                blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }
}
