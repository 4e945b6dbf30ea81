//! Delivers a notice: to the desktop, to a command, to a webhook. Each way has a time limit, and none waits for another.

use super::Notice;
use crate::config::Notify;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How long one way of delivery may take.
const LIMIT: Duration = Duration::from_secs(10);

pub async fn everywhere(settings: Arc<Notify>, notice: Notice) {
    let desktop = async {
        if settings.desktop {
            told("desktop", desktop(&notice)).await;
        }
    };
    let command = async {
        if let Some(line) = &settings.command {
            told("command", command(line, &notice)).await;
        }
    };
    let webhook = async {
        if let Some(url) = &settings.webhook {
            told("webhook", webhook(url, &notice)).await;
        }
    };
    tokio::join!(desktop, command, webhook);
}

/// Logs what went wrong. The notice itself may be private, so it is not logged.
async fn told(way: &str, delivery: impl Future<Output = Result<(), String>>) {
    let error = match tokio::time::timeout(LIMIT, delivery).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(_) => format!("it took longer than {} seconds", LIMIT.as_secs()),
    };
    tracing::warn!(way, error, "a notification could not be delivered");
}

/// The program that the desktop offers for this: every Linux desktop has `notify-send`, and macOS has `osascript`.
async fn desktop(notice: &Notice) -> Result<(), String> {
    let mut program = match cfg!(target_os = "macos") {
        true => {
            let mut program = Command::new("osascript");
            let script = "on run a\ndisplay notification (item 2 of a) with title (item 1 of a)\nend run";
            program.args(["-e", script]);
            program
        }
        false => {
            let mut program = Command::new("notify-send");
            program.args(["--app-name=Hatchery", "--"]);
            program
        }
    };
    program.arg(format!("Hatchery: {}", notice.title)).arg(&notice.text);
    finished(program.stdin(Stdio::null())).await
}

/// The command gets the notice as JSON on its standard input.
async fn command(line: &str, notice: &Notice) -> Result<(), String> {
    let body = serde_json::to_vec(notice).map_err(|error| error.to_string())?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = shell.spawn().map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input is fine.
        input.write_all(&body).await.ok();
    }
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
}

async fn finished(program: &mut Command) -> Result<(), String> {
    let program = program.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let status = program.status().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
}

/// The webhook gets the notice as a JSON body of a POST.
async fn webhook(url: &Uri, notice: &Notice) -> Result<(), String> {
    let host = url.host().ok_or("it has no host")?;
    let secure = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((bare, port)).await.map_err(|error| error.to_string())?;
    match secure {
        false => post(url, stream, notice).await,
        true => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            let name = ServerName::try_from(bare.to_owned()).map_err(|error| error.to_string())?;
            let connector = TlsConnector::from(Arc::new(config));
            post(url, connector.connect(name, stream).await.map_err(|error| error.to_string())?, notice).await
        }
    }
}

async fn post(
    url: &Uri,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    notice: &Notice,
) -> Result<(), String> {
    let words = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(words)?;
    let connection = tokio::spawn(connection);
    let body = serde_json::to_vec(notice).map_err(|error| error.to_string())?;
    let authority = url.authority().map(|it| it.as_str()).unwrap_or_default();
    let request = Request::post(url.path_and_query().map_or("/", |it| it.as_str()))
        .header(header::HOST, authority.rsplit('@').next().unwrap_or_default())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("hatchery/", env!("CARGO_PKG_VERSION")))
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(words)?;
    let status = answer.status();
    // Read to the end, so that the connection closes properly.
    answer.into_body().collect().await.ok();
    connection.abort();
    if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
}
