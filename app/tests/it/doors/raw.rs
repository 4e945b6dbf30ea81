//! HTTP at its bytes: what a well-behaved client library would not send, and what it would not show.

use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::support::daemon::PATIENCE;

/// The client's end of one connection.
pub struct Line {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// What a request has besides its method and path.
#[derive(Clone, Copy, Default)]
pub struct Parts<'a> {
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a [u8],
}

impl Line {
    pub fn to(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    pub fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Fails when the other side has closed: some requests are answered before they are whole.
    pub fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap();
    }

    /// A whole request. Only the headers that are given, and the length of the body.
    pub fn ask(&mut self, method: &str, path: &str, parts: Parts<'_>) -> Reply {
        self.send(&request(method, path, parts));
        self.reply_to(method).unwrap().expect("an answer")
    }

    pub fn reply(&mut self) -> io::Result<Option<Reply>> {
        self.reply_to("GET")
    }

    /// The next answer, or nothing when the connection is at its end.
    pub fn reply_to(&mut self, method: &str) -> io::Result<Option<Reply>> {
        match self.head()? {
            Some(head) => self.body_of(head, method).map(Some),
            None => Ok(None),
        }
    }

    /// The rest of an answer. The answer to HEAD has no body.
    pub fn body_of(&mut self, mut reply: Reply, method: &str) -> io::Result<Reply> {
        if reply.status == 100 {
            let head = self.head()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            return self.body_of(head, method);
        }
        if method == "HEAD" {
            return Ok(reply);
        }
        if reply.header("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk()? {
                reply.body.extend(chunk);
            }
        } else if let Some(length) = reply.header("content-length") {
            reply.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut reply.body)?;
        } else {
            self.stream.read_to_end(&mut reply.body)?;
        }
        Ok(reply)
    }

    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    pub fn head(&mut self) -> io::Result<Option<Reply>> {
        let first = self.line()?;
        if first.is_empty() {
            return Ok(None);
        }
        let status = first.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|text| text.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not a status line: {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None if line.is_empty() => return Ok(Some(Reply { status, headers, body: Vec::new() })),
                None => return Err(io::Error::other(format!("not a header: {line:?}"))),
            }
        }
    }

    /// One piece of a chunked body, or nothing after the last one.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.line()?;
        let size = usize::from_str_radix(&size, 16).map_err(|_| io::Error::other(format!("not a size: {size:?}")))?;
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    /// True when the other side has closed and nothing is left to read.
    pub fn is_at_end(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(left) => left.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn id(&self) -> String {
        self.json()["id"].as_str().unwrap_or_else(|| panic!("no id: {self:?}")).to_owned()
    }

    /// The code of an error that has the shape which every error has, and nothing else.
    pub fn code(&self) -> String {
        self.refusal().unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    pub fn refusal(&self) -> Result<String, String> {
        if self.header("content-type") != Some("application/json") {
            return Err("an error that is not JSON".into());
        }
        let body: Value = serde_json::from_slice(&self.body).map_err(|error| error.to_string())?;
        let texts = ["code", "message", "hint"].map(|name| body["error"][name].as_str().unwrap_or_default());
        let only_these =
            body.as_object().is_some_and(|it| it.len() == 1) && body["error"].as_object().unwrap().len() == 3;
        match only_these && texts.iter().all(|text| !text.is_empty()) {
            true => Ok(texts[0].to_owned()),
            false => Err("an error without code, message and hint".into()),
        }
    }

    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }
}

pub fn request(method: &str, path: &str, parts: Parts<'_>) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    for (name, value) in parts.headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if method != "GET" || !parts.body.is_empty() {
        bytes.extend_from_slice(format!("content-length: {}\r\n", parts.body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(parts.body);
    bytes
}
