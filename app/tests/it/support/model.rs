//! A model that says what a test has written down for it: the APIs of four vendors (Messages, Responses, Chat Completions, Gemini) on a
//! free port of the loopback interface. It knows nothing of Hatchery, and nothing of the program that asks.
//!
//! ```text
//! test:   Model::playing([Step…]) ──► asked(1) ──► gate.open() ──► asked(2)
//! agent:            POST /v1/messages ──►│◄── the answer, event by event
//! ```

mod asked;
mod chat;
mod gate;
mod gemini;
mod responses;
mod script;
mod stream;

pub use asked::Asked;
pub use gate::Gate;
pub use script::{Block, Fault, Place, Step};

use super::daemon::PATIENCE;
use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use script::{Deed, Scripts};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Gone with everything it still says when it is dropped.
pub struct Model {
    address: SocketAddr,
    stage: Arc<Stage>,
    /// Its own, so that an answer that hangs for ever ends with it.
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Stage {
    scripts: Mutex<Scripts>,
    asked: Mutex<Vec<Asked>>,
    /// Something was asked.
    news: Condvar,
}

impl Model {
    /// Plays these steps to whoever asks, one a question; then it says "ok" for ever.
    pub fn playing(steps: impl IntoIterator<Item = Step>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let stage = Arc::new(Stage::default());
        stage.scripts.lock().unwrap().for_anybody(steps);
        let routes = Router::new()
            .route("/v1/messages", post(messages))
            .route("/v1/messages/count_tokens", post(count_tokens))
            .route("/v1/responses", post(responses))
            .route("/v1/chat/completions", post(chat))
            .route("/v1beta/models/{call}", post(gemini))
            .fallback(elsewhere)
            .with_state(stage.clone());
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Self { address, stage, runtime: Some(runtime) }
    }

    /// Plays these steps to whoever shows this API key, instead of those for everybody.
    pub fn playing_to(self, key: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.stage.scripts.lock().unwrap().for_key(key, steps);
        self
    }

    /// Plays these steps after those that are left.
    pub fn add(&self, steps: impl IntoIterator<Item = Step>) {
        self.stage.scripts.lock().unwrap().for_anybody(steps);
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it was asked so many times, and gives what it was asked the last of them.
    pub fn asked(&self, times: usize) -> Asked {
        self.nth(times, |_| true)
    }

    /// The same, among the questions of one API key.
    pub fn asked_by(&self, key: &str, times: usize) -> Asked {
        self.nth(times, |asked| asked.key == key)
    }

    /// How often it was asked until now.
    pub fn count(&self) -> usize {
        self.stage.asked.lock().unwrap().len()
    }

    fn nth(&self, times: usize, counts: impl Fn(&Asked) -> bool) -> Asked {
        let find = |asked: &[Asked]| asked.iter().filter(|asked| counts(asked)).nth(times - 1).cloned();
        let asked = self.stage.asked.lock().unwrap();
        let (asked, _) = self.stage.news.wait_timeout_while(asked, PATIENCE, |asked| find(asked).is_none()).unwrap();
        find(&asked).unwrap_or_else(|| panic!("the model was never asked {times} times, only: {asked:#?}"))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What was asked, or the answer to what cannot be read.
fn read(headers: &HeaderMap, body: &Bytes) -> Result<Asked, Box<Response>> {
    match serde_json::from_slice::<Value>(body) {
        Ok(body) => Ok(Asked::new(headers, body)),
        Err(_) => Err(Box::new(error(StatusCode::BAD_REQUEST, "invalid_request_error", "not JSON"))),
    }
}

async fn messages(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    let asked = match read(&headers, &body) {
        Ok(asked) => asked,
        Err(answer) => return *answer,
    };
    if !asked.is_conversation() {
        return stream::answer(&asked, 0, &[Block::text("aside")], None);
    }
    play(&stage, &asked, stream::answer).await
}

/// The other vendor's API, with the same steps.
async fn responses(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    let asked = match read(&headers, &body) {
        Ok(asked) => asked,
        Err(answer) => return *answer,
    };
    if asked.is_for_title() {
        return responses::answer(&asked, 0, &[Block::text("{\"title\": \"aside\"}")], None);
    }
    play(&stage, &asked, responses::answer).await
}

/// The API that many vendors share.
async fn chat(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    match read(&headers, &body) {
        Ok(asked) => play(&stage, &asked, chat::answer).await,
        Err(answer) => *answer,
    }
}

async fn gemini(
    State(stage): State<Arc<Stage>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match read(&headers, &body) {
        Ok(mut asked) if call.ends_with(":streamGenerateContent") => {
            asked.body["model"] = json!(call.split(':').next());
            play(&stage, &asked, gemini::answer).await
        }
        Ok(_) => gemini::aside(),
        Err(answer) => *answer,
    }
}

/// How an answer is written on the wire.
type Answer = fn(&Asked, usize, &[Block], Option<&(Place, Fault)>) -> Response;

async fn play(stage: &Stage, asked: &Asked, answer: Answer) -> Response {
    let (number, step) = stage.take(asked);
    if let Some(gate) = &step.before {
        gate.pass().await;
    }
    match step.deed {
        Deed::Answer { blocks, fault } => answer(asked, number, &blocks, fault.as_ref()),
        Deed::Refuse { status, kind, message, headers } => {
            let mut refusal = error(StatusCode::from_u16(status).unwrap(), kind, &message);
            for (name, value) in headers {
                refusal.headers_mut().insert(name, value.parse().unwrap());
            }
            refusal
        }
    }
}

impl Stage {
    /// Chooses what to play before it tells that it was asked: a test that adds steps afterwards adds them behind this one.
    fn take(&self, asked: &Asked) -> (usize, Step) {
        let mut all = self.asked.lock().unwrap();
        let step = self.scripts.lock().unwrap().next(&asked.key);
        all.push(asked.clone());
        self.news.notify_all();
        (all.len(), step)
    }
}

async fn count_tokens(body: Bytes) -> Json<Value> {
    Json(json!({ "input_tokens": body.len().div_ceil(4) }))
}

/// What else a client may ask for: harmless, and mostly not there.
async fn elsewhere(method: Method, uri: Uri) -> Response {
    match (method, uri.path()) {
        (Method::HEAD, _) => StatusCode::OK.into_response(),
        (Method::GET, "/v1/models") => Json(json!({ "data": [], "has_more": false })).into_response(),
        _ => error(StatusCode::NOT_FOUND, "not_found_error", "not found"),
    }
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response {
    let error = json!({ "type": kind, "code": kind, "message": message });
    (status, Json(json!({ "type": "error", "error": error }))).into_response()
}
