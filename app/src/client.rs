//! The HTTP client of the commands. It finds the daemon by the lock that the daemon holds, starts a daemon in the background if none runs,
//! and sends the project's token.

pub mod ending;
pub mod notices;
pub mod once;
pub mod paths;
pub mod patience;
pub mod ready_line;

use crate::config::{Config, Flags};
use crate::http::{ErrorBody, ErrorDetail};
use crate::project::{DaemonFile, Project};
use crate::report::{Code, Context as _, Report};
use crate::trust;
use crate::version;
use bytes::Bytes;
use ending::EndRequest;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use notices::HealthAnswer;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a daemon may take to be ready. To read a long log without a snapshot takes long.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the holder of the lock may take to write its note into the lock's file, which it does immediately, and to answer at the
/// address in that note.
const NAMELESS_TIMEOUT: Duration = Duration::from_secs(3);
/// How often to look for a daemon that another process is starting.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long a daemon may be silent before the user is told.
const HUNG_AFTER: Duration = Duration::from_secs(2);
/// How long a single request may take before the user is told. An answer that takes longer is rare, and 3 seconds are too long for silence.
const LATE_AFTER: Duration = Duration::from_millis(2_500);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the daemon's own time limit for a request, so that the daemon's answer arrives.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

/// The codes of refusals that mean a mistake in the command line that only the daemon can find.
const MISTYPED: [&str; 4] = ["bad_amount", "no_such_harness", "plan_given", "unusable"];

/// Why a request has failed.
#[derive(Debug)]
pub enum Failure {
    /// The daemon has answered with an error.
    Refused { status: StatusCode, code: Code, detail: ErrorDetail },
    /// The daemon did not answer. It is not known whether the request was carried out.
    Away(Report),
    /// The daemon could not be reached, so the request was not carried out.
    Unasked(Report),
    /// The request was not sent, or the answer cannot be understood.
    Broken(Report),
}

impl From<Failure> for Report {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused { code, detail, .. } => {
                Report::new(code, detail.message).hint(detail.hint).named(detail.code)
            }
            Failure::Away(report) | Failure::Unasked(report) | Failure::Broken(report) => report,
        }
    }
}

impl From<Report> for Failure {
    fn from(report: Report) -> Self {
        Self::Broken(report)
    }
}

/// The state of a project's daemon, as one request shows it.
#[derive(Debug)]
pub enum Sight {
    Away,
    Starting,
    Answers(DaemonFile),
    /// The daemon holds the lock and does not answer: it hangs, or its address is wrong.
    Silent(DaemonFile),
}

#[derive(Clone, Debug)]
pub struct Client {
    authority: String,
    token: String,
}

impl Client {
    pub fn new(url: &str, token: String) -> Self {
        Self { authority: url.trim_start_matches("http://").trim_end_matches('/').to_owned(), token }
    }

    /// The host and port of the daemon.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The project's daemon. Starts a daemon in the background if none runs.
    pub async fn reach(project: &Project) -> Result<Self, Report> {
        match Self::running(project).await? {
            Some(client) => Ok(client),
            None => start_daemon(project).await,
        }
    }

    /// The daemon of a project that exists; starts one if none runs. For commands that must not create a project, because they read something
    /// or name something that must exist.
    pub async fn visit(project: &Project) -> Result<Self, Report> {
        match project.exists() {
            true => Self::reach(project).await,
            false => Err(Self::no_project(project)),
        }
    }

    /// The error for a missing project.
    pub fn no_project(project: &Project) -> Report {
        Report::failed(format_args!("there is no Hatchery project at {}", project.root().display()))
            .hint("`hatchery run \"…\"` starts an agent here, `hatchery demo` shows what Hatchery does")
            .named("no_project")
    }

    /// The address of the page, with the token.
    pub fn link(&self) -> String {
        format!("http://{}/?token={}", self.authority, self.token)
    }

    /// The project's daemon, if one runs.
    pub async fn running(project: &Project) -> Result<Option<Self>, Report> {
        let started = tokio::time::Instant::now();
        let mut hangs = false;
        loop {
            if !project.is_served() {
                match project.folder_lost() {
                    // For a moment, a daemon that starts or ends holds only one of its two locks.
                    Some(_) if started.elapsed() < NAMELESS_TIMEOUT => {
                        tokio::time::sleep(LOOK_AGAIN).await;
                        continue;
                    }
                    Some(report) => return Err(report),
                    None => return Ok(None),
                }
            }
            // A daemon takes the lock first and writes its address into the lock's file last. In between, it is starting.
            if let (Some(daemon), Some(token)) = (project.daemon(), project.existing_token()?) {
                let client = Self::new(&daemon.url, token);
                match tokio::time::timeout(HUNG_AFTER, client.get::<HealthAnswer>("/api/health")).await {
                    Ok(Ok(_)) if is_to_be_replaced(project, &daemon) => {
                        notices::replaced(&daemon);
                        let old = project.clone();
                        let how =
                            EndRequest { wait: START_TIMEOUT, force: false, by_force: "hatchery up --replace --force" };
                        let ended = tokio::task::spawn_blocking(move || ending::end_daemon(&old, how)).await;
                        ended.context("the daemon was not replaced")??;
                        return Ok(None);
                    }
                    // The health needs no token. The daemon would refuse all other requests with this token.
                    Ok(Ok(_)) if project.has_foreign_token() => {
                        let token = project.token_file();
                        let message =
                            format!("{} was not written by the daemon, which does not accept it", token.display());
                        return Err(Report::new(Code::Unreachable, message).hint(REPLACED_FILE));
                    }
                    Ok(Ok(health)) => {
                        notices::about(project, &daemon, &client, &health).await;
                        return Ok(Some(client));
                    }
                    Ok(Err(_)) => {}
                    // The daemon has written its address, so it is not starting: it hangs.
                    Err(_) => {
                        hangs = true;
                        notices::hung(&daemon, HUNG_AFTER);
                    }
                }
            }
            if started.elapsed() > NAMELESS_TIMEOUT
                && !hangs
                && let Some(wrong) = wrong_note(project)
                && project.is_served()
            {
                let who = project.daemon_pid().map_or("a process".into(), |pid| format!("process {pid}"));
                return Err(Report::new(
                    Code::Unreachable,
                    format_args!("{who} holds the project's lock, but {wrong}"),
                )
                .hint(REPLACED_FILE));
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(Report::new(Code::Unreachable, "a daemon holds the project's lock but does not answer")
                    .hint(format_args!(
                        "`hatchery down --force` ends it; nothing is lost. Its log is {}",
                        project.daemon_log().display()
                    )));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The state of the project's daemon now. Does not wait for a daemon that starts or hangs.
    pub async fn look(project: &Project) -> Sight {
        let Some(daemon) = project.daemon().filter(|_| project.is_served()) else {
            return if project.is_served() { Sight::Starting } else { Sight::Away };
        };
        // Reading the health needs no token.
        let client = Self::new(&daemon.url, project.existing_token().ok().flatten().unwrap_or_default());
        match tokio::time::timeout(HUNG_AFTER, client.get::<HealthAnswer>("/api/health")).await {
            Ok(Ok(_)) => Sight::Answers(daemon),
            Ok(Err(_)) | Err(_) if project.is_served() => Sight::Silent(daemon),
            Ok(Err(_)) | Err(_) => Sight::Away,
        }
    }

    /// A client of the daemon that holds the project's lock, with another token than the project's. None if the daemon has not written its
    /// address into the lock's file. Does not check whether the daemon answers.
    pub fn announced(project: &Project, token: String) -> Option<Self> {
        project.daemon().map(|daemon| Self::new(&daemon.url, token))
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Report> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        Ok(read(response).await?)
    }

    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Report> {
        Ok(self.ask(path, body).await?)
    }

    /// Like `post`, for callers that distinguish failures.
    pub async fn ask<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).context("the request cannot be written")?;
        let response = self.send(Method::POST, path, body.into()).await?;
        read(response).await
    }

    /// Sends a text unchanged.
    pub async fn post_text<T: DeserializeOwned>(&self, path: &str, text: String) -> Result<T, Report> {
        let response = self.send(Method::POST, path, text.into()).await?;
        Ok(read(response).await?)
    }

    /// The body of an answer that arrives in parts, for example an event stream.
    pub async fn stream(&self, path: &str) -> Result<Incoming, Report> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        match response.status().is_success() {
            true => Ok(response.into_body()),
            false => Err(refused(response).await.into()),
        }
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Response<Incoming>, Failure> {
        let silent = |why: String| {
            let message = format!("the daemon at {} does not answer: {why}", self.authority);
            Report::new(Code::Unreachable, message).hint("`hatchery status` shows whether one runs")
        };
        let away = |why: String| Failure::Away(silent(why));
        let unasked = |why: String| Failure::Unasked(silent(why));
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&self.authority)).await;
        let stream = connected.map_err(|_| unasked("timed out".into()))?.map_err(|error| unasked(error.to_string()))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| away(error.to_string()))?;
        // This task ends when the last body has been read.
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .context("the request cannot be written")?;
        let slow = ["/api/fsck", "/api/history/import", "/api/adopt"].iter().any(|slow| path.starts_with(slow));
        let slow = slow || path.ends_with("/try-ward");
        let limit = if slow { Duration::MAX } else { ANSWER_TIMEOUT };
        // A request that is meant to wait causes no notice that it takes long.
        let waits = slow || path.ends_with("/wait") || path.contains("wait=");
        let tell = || match waits {
            true => {}
            false => notices::late(&self.authority, LATE_AFTER),
        };
        let answered = or_tell(tokio::time::timeout(limit, sender.send_request(request)), LATE_AFTER, tell).await;
        answered.map_err(|_| away("timed out".into()))?.map_err(|error| away(error.to_string()))
    }
}

/// Waits for an answer. If that takes longer than `after`, calls `tell`.
async fn or_tell<T>(answer: impl Future<Output = T>, after: Duration, tell: impl FnOnce()) -> T {
    let mut answer = pin!(answer);
    match tokio::time::timeout(after, &mut answer).await {
        Ok(answer) => answer,
        Err(_) => {
            tell();
            answer.await
        }
    }
}

const REPLACED_FILE: &str =
    "a file was changed by another program; `hatchery down` stops the daemon, and the next command starts it";

/// Why a daemon that holds the lock cannot be reached. None while the daemon starts or ends.
fn wrong_note(project: &Project) -> Option<String> {
    let Some(note) = project.lock_note() else {
        return Some("the lock's file does not say where it listens".into());
    };
    let url = note.daemon?.url;
    match project.token_file().exists() {
        true => Some(format!("no daemon of this project answers at {url}, which the lock's file names")),
        false => Some(format!("{} is missing", project.token_file().display())),
    }
}

/// Whether the user wants newer commands to replace an older daemon. A newer daemon stays, because otherwise two versions would replace
/// each other again and again.
fn is_to_be_replaced(project: &Project, daemon: &DaemonFile) -> bool {
    let may_start = |config: &Config| project.foreign().is_none() && trust::check(project, &config.file).is_ok();
    version::is_newer_than(&daemon.version)
        && Config::resolve(project, &Flags::default()).is_ok_and(|config| config.replace_daemon && may_start(&config))
}

async fn read<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Failure> {
    if !response.status().is_success() {
        return Err(refused(response).await);
    }
    let body = response.into_body().collect().await.context("the answer broke off").map_err(Failure::Away)?;
    Ok(serde_json::from_slice(&body.to_bytes()).context("the answer cannot be read")?)
}

async fn refused(response: Response<Incoming>) -> Failure {
    let status = response.status();
    let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    match serde_json::from_slice::<ErrorBody>(&body) {
        Ok(ErrorBody { error }) => {
            let code = match status {
                StatusCode::BAD_REQUEST if MISTYPED.contains(&error.code.as_str()) => Code::Usage,
                status if status.is_server_error() => Code::Unreachable,
                _ => Code::Failed,
            };
            Failure::Refused { status, code, detail: error }
        }
        Err(_) => Failure::Broken(Report::failed(format_args!("the daemon answered {status}"))),
    }
}

/// Starts `hatchery up` in a process group of its own, and waits for the line that says that the daemon is ready.
async fn start_daemon(project: &Project) -> Result<Client, Report> {
    // The settings are checked here, so that the user sees an error now and need not read the log of a daemon that did not start.
    let config = Config::resolve(project, &Flags::default())?;
    project.prepare()?;
    trust::check(project, &config.file)?;
    let log = project.daemon_log();
    let before = std::fs::metadata(&log).map_or(0, |log| log.len());
    let errors = OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
    let errors = errors.context(format_args!("{} cannot be written", log.display()))?;
    let program = std::env::current_exe().context("this program cannot be found again")?;
    let mut command = std::process::Command::new(program);
    command
        .args(["up", "--no-open", "--json", "--project"])
        .arg(project.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .process_group(0);
    let mut child = tokio::process::Command::from(command).spawn().context("the daemon cannot be started")?;
    let ready = tokio::time::timeout(START_TIMEOUT, ready_line::client_of(&mut child)).await;
    match ready.context("the daemon did not get ready in time")?? {
        Some(client) => Ok(client),
        // Another process has started a daemon first. That daemon is used.
        None => match Client::running(project).await? {
            Some(client) => Ok(client),
            None => {
                let last = said_since(&log, before);
                Err(Report::new(Code::Unreachable, format_args!("the daemon did not start:\n  {last}"))
                    .hint(format_args!("run `hatchery up` to see why; the log is {}", log.display())))
            }
        },
    }
}

/// The last lines of the log after its first `before` bytes. If the log is shorter, because it was begun again, its last lines.
fn said_since(log: &Path, before: u64) -> String {
    const SHOWN_LINES: usize = 4;
    let said = std::fs::read(log).unwrap_or_default();
    let said = String::from_utf8_lossy(said.get(usize::try_from(before).unwrap_or(0)..).unwrap_or(&said));
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon can answer that it is alive and still hang, for example because of its disk.
    #[tokio::test]
    async fn a_late_answer_is_told_while_it_is_waited_for() {
        let prompt = or_tell(async { "prompt" }, LATE_AFTER, || panic!("it was not late"));
        assert_eq!(prompt.await, "prompt");
        let (told, answer) = tokio::sync::oneshot::channel();
        let late = or_tell(answer, Duration::from_millis(1), || told.send("late").unwrap());
        assert_eq!(late.await, Ok("late"));
    }
}
