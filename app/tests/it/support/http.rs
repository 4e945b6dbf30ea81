//! Requests as a client makes them: one connection that is kept while it lasts, and the answer as it came.

use super::runtime;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

/// Where a daemon is, and what opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    pub authority: String,
    pub token: String,
}

/// The connection broke: whether the request was carried out is not known.
#[derive(Debug)]
pub struct Lost;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// The client's end of one connection.
pub struct Http {
    door: Door,
    line: Option<SendRequest<Full<Bytes>>>,
}

impl Door {
    pub fn new(url: &str, token: String) -> Self {
        Self { authority: url.strip_prefix("http://").unwrap().to_owned(), token }
    }

    pub fn http(&self) -> Http {
        Http { door: self.clone(), line: None }
    }

    /// For tests that ask one thing after the other: asks, and expects an answer.
    pub fn get(&self, path: &str) -> Answer {
        runtime().block_on(self.http().get(path)).expect("the daemon answers")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        runtime().block_on(self.http().post(path, body)).expect("the daemon answers")
    }

    pub fn head(&self) -> u64 {
        self.get("/api/status").json()["head"].as_u64().unwrap()
    }

    /// The whole log, page by page, each event as the daemon writes it.
    pub fn log(&self) -> Vec<String> {
        let mut log = Vec::new();
        loop {
            let answer = self.get(&format!("/api/events.json?after={}&limit=1000", log.len()));
            assert_eq!(answer.status, 200, "{answer:?}");
            let events = answer.events();
            if events.is_empty() {
                return log;
            }
            log.extend(events);
        }
    }

    pub fn agent(&self, session: Option<&str>) -> String {
        let answer = self.post("/api/agents", &serde_json::json!({ "session": session }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.id()
    }

    pub fn say(&self, agent: &str, content: &str) -> Answer {
        self.post(&format!("/api/agents/{agent}/messages"), &serde_json::json!({ "kind": "user", "content": content }))
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events in it, letter by letter.
    pub fn events(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Events {
            events: Vec<Box<RawValue>>,
        }
        let read: Events = serde_json::from_str(&self.body).unwrap();
        read.events.iter().map(|event| event.get().to_owned()).collect()
    }

    pub fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }

    /// The code and the hint of an error.
    pub fn error(&self) -> (String, String) {
        let text = |name: &str| self.json()["error"][name].as_str().unwrap().to_owned();
        (text("code"), text("hint"))
    }
}

impl Http {
    pub async fn get(&mut self, path: &str) -> Result<Answer, Lost> {
        let response = self.send(Method::GET, path, &[], Bytes::new()).await?;
        whole(response).await
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Result<Answer, Lost> {
        let response = self.send(Method::POST, path, &[], body.to_string().into()).await?;
        whole(response).await
    }

    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Response<Incoming>, Lost> {
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.connect().await?,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.door.authority)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.door.token))
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        line.ready().await.map_err(|_| Lost)?;
        let response = line.send_request(request.body(Full::new(body)).unwrap()).await.map_err(|_| Lost)?;
        self.line = Some(line);
        Ok(response)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Lost> {
        let stream = TcpStream::connect(&self.door.authority).await.map_err(|_| Lost)?;
        stream.set_nodelay(true).map_err(|_| Lost)?;
        let (line, connection) = handshake(TokioIo::new(stream)).await.map_err(|_| Lost)?;
        // Ends when we drop our end, or the daemon its own.
        runtime().spawn(connection);
        Ok(line)
    }
}

async fn whole(response: Response<Incoming>) -> Result<Answer, Lost> {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.map_err(|_| Lost)?.to_bytes();
    Ok(Answer { status, body: String::from_utf8(body.to_vec()).unwrap() })
}
