//! Everything that the terminal asks the daemon: one task follows the log, the others carry out requests. Each reports back with a
//! message. A daemon that goes away is looked for again, and the log is read on from the last event.

use super::update::{Effect, Failed, Msg};
use super::window::{Ancestor, Window, WindowPart};
use crate::cli::{EventStream, read_record};
use crate::client::paths::{agent_path, quest_path};
use crate::client::{Client, Failure};
use crate::clock;
use crate::http::{AgentList, AgentView, Overview, Trouble};
use crate::project::Project;
use crate::quest_document::QuestDocument;
use crate::report::{Code, Report};
use hatchery_core::event::MessageEvent;
use hatchery_core::{AgentId, Event, EventId, MessageKind, Record, Timestamp};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

/// A daemon that is away for less is not worth a word.
const QUIET: Duration = Duration::from_secs(2);
/// After so long without a word from the event stream, the daemon is asked whether it still answers: a daemon that hangs keeps its
/// connections.
const DOUBTED_AFTER: Duration = Duration::from_secs(3);
/// The same for a daemon that has answered this, until something happens or is asked for. It is longer than 15 s: a daemon that has
/// nothing to say writes an empty line so often, so that an idle terminal asks nothing.
const RARELY_DOUBTED_AFTER: Duration = Duration::from_secs(20);
/// A daemon that takes longer to say that it is well is away.
const HUNG_AFTER: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the daemon is waited for to repeat a request. Then the user is told, and decides.
const REPEATED_FOR: Duration = Duration::from_secs(30);
/// How many events are asked for at once.
const WINDOW: u32 = 200;
/// The same where all of a conversation is read: as many as the daemon gives.
const WHOLE_PAGE: u32 = 1_000;
/// The most events of a whole conversation. They are laid out at once, so that more would keep the keys waiting.
const MAX_WHOLE: usize = 50_000;
/// A fork of a fork of a fork has something from so many agents at most.
const MAX_ANCESTORS: usize = 32;
/// The events that a conversation shows something of.
const SHOWN: &str = "message_added,message_heard,output_noted,permission_decided,run_spawned,run_crashed,run_parked,run_silent,budget_reached,run_ended,\
    question_asked,question_answered,question_withdrawn,agent_killed,agent_renamed,agent_slept,agent_woken,mail_sent";
/// How many messages that wait to be taken in.
pub const QUEUE: usize = 256;

/// The daemon as it was last reached, shared by all requests.
#[derive(Clone, Debug)]
pub struct Feed {
    project: Project,
    client: Arc<watch::Sender<Option<Client>>>,
    out: mpsc::Sender<Msg>,
    try_again: Arc<Notify>,
    /// Something was asked for.
    asked: Arc<Notify>,
}

impl Feed {
    pub fn new(project: &Project, out: mpsc::Sender<Msg>) -> Self {
        let client = Arc::new(watch::Sender::new(None));
        Self { project: project.clone(), client, out, try_again: Arc::default(), asked: Arc::default() }
    }

    pub fn try_again(&self) {
        self.try_again.notify_one();
    }

    pub(super) fn client(&self) -> Option<Client> {
        self.client.borrow().clone()
    }

    fn set_client(&self, client: Option<Client>) {
        self.client.send_replace(client);
    }

    /// Follows the log until the terminal goes away. The first answer is the overview; every event after it follows once, in order.
    pub async fn follow(self) {
        let mut cursor: Option<u64> = None;
        let mut lost: Option<Lost> = None;
        let mut pause = FIRST_PAUSE;
        let mut asked = true;
        // Why it could not be reached, as it was told last.
        let mut told: Option<String> = None;
        loop {
            match self.opened(asked, &mut cursor, lost).await {
                Ok((client, stream)) => {
                    (pause, told) = (FIRST_PAUSE, None);
                    let end = self.pass_on(&client, stream, &mut cursor).await;
                    self.set_client(None);
                    lost = Some(Lost::by(end));
                }
                Err(why) => {
                    let is_worth_it = lost.is_none_or(|lost| lost.at.elapsed() + pause >= QUIET);
                    if is_worth_it && told.as_ref() != Some(&why.message) {
                        told = Some(why.message.clone());
                        self.tell(Msg::Unreached(why)).await;
                    }
                }
            }
            // If there was never a daemon, each attempt starts one. A daemon that was stopped later is not started again.
            asked = cursor.is_none();
            if self.out.is_closed() {
                return;
            }
            let lost = *lost.get_or_insert_with(|| Lost::by(End::Broken));
            if lost.at.elapsed() + pause >= QUIET {
                pause = (pause * 2).clamp(Duration::from_secs(1), LONGEST_PAUSE);
                self.tell(lost.again_in(pause)).await;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.try_again.notified() => asked = true,
            }
        }
    }

    /// Finds the daemon, or starts it, and opens the stream. That may take a minute with a daemon that hangs, or that has a long log
    /// to read; the user is told meanwhile.
    async fn opened(
        &self,
        asked: bool,
        cursor: &mut Option<u64>,
        lost: Option<Lost>,
    ) -> Result<(Client, hyper::body::Incoming), Report> {
        let is_first = lost.is_none();
        let lost = lost.unwrap_or_else(|| Lost::by(End::Broken));
        let mut told_at = lost.at + if is_first { DOUBTED_AFTER + HUNG_AFTER } else { QUIET };
        let opening = async {
            let client = self.reach(asked).await?;
            let stream = self.open(&client, cursor).await?;
            Ok((client, stream))
        };
        tokio::pin!(opening);
        loop {
            tokio::select! {
                opened = &mut opening => return opened,
                () = tokio::time::sleep_until(told_at) => {
                    // A daemon that is starting for the first time has not said yet where it listens.
                    if !is_first || self.project.daemon().is_some() {
                        self.tell(lost.again_in(HUNG_AFTER)).await;
                    }
                    told_at = tokio::time::Instant::now() + HUNG_AFTER;
                }
            }
        }
    }

    /// A daemon that was killed is followed by another one. One that was stopped stays so, unless the user asks.
    async fn reach(&self, asked: bool) -> Result<Client, Report> {
        match asked || self.project.is_announced() {
            true => Client::reach(&self.project).await,
            false => Client::running(&self.project)
                .await?
                .ok_or_else(|| Report::new(Code::Unreachable, "the daemon was stopped")),
        }
    }

    /// Requests go to this daemon from here on.
    async fn open(&self, client: &Client, cursor: &mut Option<u64>) -> Result<hyper::body::Incoming, Report> {
        let overview: Overview = client.get("/api/overview").await?;
        let after = *cursor.get_or_insert(overview.head.0);
        let stream = match client.stream(&format!("/api/events?after={after}")).await {
            Ok(stream) => stream,
            // Another log than before: start again from its end.
            Err(report) if report.code != Code::Unreachable => {
                *cursor = Some(overview.head.0);
                client.stream(&format!("/api/events?after={}", overview.head.0)).await?
            }
            Err(report) => return Err(report),
        };
        self.set_client(Some(client.clone()));
        self.tell(Msg::Overview(Box::new(overview))).await;
        self.tell(Msg::Up).await;
        Ok(stream)
    }

    async fn pass_on(&self, client: &Client, mut stream: hyper::body::Incoming, cursor: &mut Option<u64>) -> End {
        let mut frames = EventStream::default();
        let mut pause = DOUBTED_AFTER;
        loop {
            let frame = tokio::select! {
                biased;
                frame = stream.frame() => frame,
                () = self.asked.notified() => {
                    pause = DOUBTED_AFTER;
                    continue;
                }
                silent = hangs(client, &mut pause) => return End::Hung { silent },
            };
            let Some(Ok(frame)) = frame else { return End::Broken };
            let bytes = frame.into_data().unwrap_or_default();
            let records: Vec<Record> = frames.take(&bytes).iter().filter_map(|line| read_record(line).ok()).collect();
            *cursor = frames.last_id().or(*cursor);
            for (name, data) in frames.take_named() {
                if let ("trouble", Ok(Trouble { trouble })) = (name.as_str(), serde_json::from_str(&data)) {
                    self.tell(Msg::Trouble(trouble)).await;
                }
            }
            if records.is_empty() {
                continue;
            }
            pause = DOUBTED_AFTER;
            if self.out.send(Msg::Events(records)).await.is_err() {
                return End::Broken;
            }
        }
    }

    pub(super) async fn tell(&self, msg: Msg) {
        // A terminal that is gone needs no news.
        self.out.send(msg).await.unwrap_or_default();
    }

    /// Carries out an effect that is a request.
    pub fn start(&self, effect: Effect, tasks: &mut JoinSet<()>) {
        self.asked.notify_one();
        let feed = self.clone();
        tasks.spawn(async move { feed.carry_out(effect).await });
    }

    async fn carry_out(self, effect: Effect) {
        let msg = match effect {
            Effect::Refresh => self.get::<Overview>("/api/overview").await.ok().map(|it| Msg::Overview(Box::new(it))),
            Effect::Quest(quest) => {
                let document = self.get::<QuestDocument>(&quest_path(&quest.to_string(), "")).await;
                document.ok().map(|it| Msg::Quest(Box::new(it)))
            }
            Effect::Agent(agent) => {
                let view = self.get::<AgentView>(&agent_path(&agent.to_string(), "")).await;
                view.ok().map(|it| Msg::Agent(Box::new(it)))
            }
            Effect::AllAgents => self.get::<AgentList>("/api/agents").await.ok().map(|it| Msg::Agents(it.agents)),
            Effect::Load { agent, part } => {
                let result = self.window(agent, part).await;
                Some(Msg::Window { agent, part, result })
            }
            Effect::Whole { agent, what } => {
                let result = self.whole(agent).await;
                Some(Msg::Whole { agent, what, result })
            }
            Effect::LoadInherited { agent, from, upto, forked, count } => {
                Some(self.inherited(agent, from, upto, forked, count).await.unwrap_or(Msg::NotInherited(agent)))
            }
            Effect::Get { tag, path } => {
                let result = self.get::<Value>(&path).await;
                Some(Msg::Answer { tag, result })
            }
            Effect::Post { tag, path, body } => {
                let result = match is_repeatable(&path) {
                    true => self.post_once(&path, body).await,
                    false => self.post(&path, &body).await,
                };
                Some(Msg::Answer { tag, result })
            }
            _ => None,
        };
        if let Some(msg) = msg {
            self.tell(msg).await;
        }
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> Result<T, Failed> {
        let client = self.client().ok_or(Failed::Away { sent: false })?;
        client.get(path).await.map_err(|report| match report.code {
            Code::Unreachable => Failed::Away { sent: false },
            _ => Failed::Refused { code: String::new(), words: words_of(&report.message, report.hint.as_deref()) },
        })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Failed> {
        let client = self.client().ok_or(Failed::Away { sent: false })?;
        client.ask(path, body).await.map_err(|failure| match failure {
            Failure::Refused { detail, .. } => {
                Failed::Refused { code: detail.code, words: words_of(&detail.message, Some(&detail.hint)) }
            }
            Failure::Away(_) => Failed::Away { sent: true },
            Failure::Unasked(_) => Failed::Away { sent: false },
            Failure::Broken(report) => {
                Failed::Refused { code: String::new(), words: words_of(&report.message, report.hint.as_deref()) }
            }
        })
    }

    /// Sends a request with an id, and sends it again when the daemon is back after a broken connection: it is carried out once.
    async fn post_once(&self, path: &str, mut body: Value) -> Result<Value, Failed> {
        body["id"] = serde_json::json!(clock::new_request_id());
        let until = tokio::time::Instant::now() + REPEATED_FOR;
        loop {
            let result = self.post(path, &body).await;
            if !matches!(result, Err(Failed::Away { sent: true })) {
                return result;
            }
            tokio::time::sleep(FIRST_PAUSE).await;
            let mut clients = self.client.subscribe();
            if tokio::time::timeout_at(until, clients.wait_for(Option::is_some)).await.is_err() {
                return result;
            }
        }
    }

    /// A part of an agent's conversation.
    async fn window(&self, agent: AgentId, part: WindowPart) -> Result<Window, Failed> {
        match part {
            WindowPart::End { before } => {
                let before = before.map_or(u64::from(u32::MAX), |before| before.0);
                self.page(agent, &format!("before={before}"), WINDOW).await.map(EventWindow::before)
            }
            WindowPart::Before(before) => {
                self.page(agent, &format!("before={before}"), WINDOW).await.map(EventWindow::before)
            }
            WindowPart::After(after) => {
                self.page(agent, &format!("after={after}"), WINDOW).await.map(EventWindow::after)
            }
            WindowPart::Around(event) => {
                let before = format!("before={}", event.0 + 1);
                let mut window = self.page(agent, &before, WINDOW / 2).await.map(EventWindow::before)?;
                match self.page(agent, &format!("after={event}"), WINDOW / 2).await.map(EventWindow::after) {
                    Ok(after) => {
                        window.records.extend(after.records);
                        (window.to, window.later) = (after.to, after.later);
                    }
                    // The log is another one, and ends before this event: the end is what there is.
                    Err(Failed::Refused { .. }) => {}
                    Err(away) => return Err(away),
                }
                Ok(window)
            }
        }
    }

    /// Everything that was said, or the last of it.
    async fn whole(&self, agent: AgentId) -> Result<Vec<Record>, Failed> {
        let mut pages: Vec<Vec<Record>> = Vec::new();
        let mut before = u64::from(u32::MAX);
        let mut count = 0;
        loop {
            let page = self.page(agent, &format!("before={before}"), WHOLE_PAGE).await?;
            count += page.records.len();
            pages.push(page.records);
            if !page.more || page.from == EventId::START || count >= MAX_WHOLE {
                return Ok(pages.into_iter().rev().flatten().collect());
            }
            before = page.from.0 + 1;
        }
    }

    async fn page(&self, agent: AgentId, place: &str, limit: u32) -> Result<EventWindow, Failed> {
        let path = format!("/api/events.json?agent={agent}&{place}&limit={limit}&type={SHOWN}");
        let page: Value = self.get(&path).await?;
        let events = page["events"].as_array().map(Vec::as_slice).unwrap_or_default();
        let id = |name: &str| EventId(page[name].as_u64().unwrap_or_default());
        Ok(EventWindow {
            records: events.iter().filter_map(|event| read_record(&event.to_string()).ok()).collect(),
            from: id("from"),
            upto: id("upto"),
            more: page["more"] == true,
        })
    }

    /// The end of what an agent has from those before it.
    async fn inherited(
        &self,
        agent: AgentId,
        from: AgentId,
        upto: Option<EventId>,
        forked: Timestamp,
        count: bool,
    ) -> Result<Msg, Failed> {
        let mut ancestors: Vec<Ancestor> = Vec::new();
        let mut next = Some((from, upto, forked));
        while let Some((of, upto, forked)) = next.filter(|_| ancestors.len() < MAX_ANCESTORS) {
            let view: AgentView = self.get(&agent_path(&of.to_string(), "")).await?;
            // Agent 0, from which all agents descend, says nothing.
            if view.parent.is_none() {
                break;
            }
            let limit = |point: Option<EventId>| point.map(|point| upto.map_or(point, |upto| point.min(upto)));
            next = view.forked_from.map(|before| (before, limit(view.fork_point), view.created));
            let Some(upto) = upto else { continue };
            let EventWindow { records, more, .. } = self.page(of, &format!("before={}", upto.0 + 1), WINDOW).await?;
            let is_clear = |record: &Record| {
                matches!(record.event, Event::Message(MessageEvent::Added { kind: MessageKind::Clear, .. }))
            };
            // What was said before these is read by those who go there.
            if more || records.iter().any(is_clear) {
                next = None;
            }
            if !records.is_empty() {
                ancestors.push(Ancestor { agent: of, upto, forked, records });
            }
        }
        let last = ancestors.first().map(|ancestor| ancestor.upto).filter(|_| count);
        let count = match last {
            Some(upto) => {
                let path = agent_path(&from.to_string(), &format!("/history?before={}&limit=1", upto.0 + 1));
                let history: Option<Value> = self.get(&path).await.ok();
                history.and_then(|it| it["earlier"].as_u64()).and_then(|earlier| usize::try_from(earlier + 1).ok())
            }
            None => None,
        };
        ancestors.reverse();
        Ok(Msg::Inherited { agent, from, forked, count, ancestors })
    }
}

/// Some events of one agent, as the daemon gives them.
struct EventWindow {
    records: Vec<Record>,
    from: EventId,
    upto: EventId,
    more: bool,
}

impl EventWindow {
    /// What was read backwards. It reaches up to the place that it was asked for.
    fn before(self) -> Window {
        let Self { records, from, upto, more } = self;
        Window { records, from, more: more && from.0 > 0, to: upto, later: false }
    }

    /// What was read forwards.
    fn after(self) -> Window {
        let Self { records, from, upto, more } = self;
        Window { records, from, more: false, to: upto, later: more }
    }
}

/// How the event stream ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Broken,
    /// The connection stands, and the daemon does not answer.
    Hung {
        silent: Duration,
    },
}

/// Since when the daemon is away.
#[derive(Clone, Copy, Debug)]
struct Lost {
    at: tokio::time::Instant,
    /// Up to when everything was heard.
    since: Timestamp,
}

impl Lost {
    fn by(end: End) -> Self {
        let silent = match end {
            End::Broken => Duration::ZERO,
            End::Hung { silent } => silent,
        };
        let now = tokio::time::Instant::now();
        Self { at: now.checked_sub(silent).unwrap_or(now), since: Timestamp(clock::now().0 - millis(silent)) }
    }

    fn again_in(self, pause: Duration) -> Msg {
        Msg::Away { since: self.since, again: Timestamp(clock::now().0 + millis(pause)) }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Ends when the daemon does not answer any more, and says for how long nothing was heard.
async fn hangs(client: &Client, pause: &mut Duration) -> Duration {
    loop {
        tokio::time::sleep(*pause).await;
        let health = tokio::time::timeout(HUNG_AFTER, client.get::<Value>("/api/health")).await;
        if !matches!(health, Ok(Ok(_))) {
            return *pause + HUNG_AFTER;
        }
        *pause = RARELY_DOUBTED_AFTER;
    }
}

/// Whether a request takes an id, and no other code repeats the request. What is said to agents waits in the outbox, with an id of its own.
fn is_repeatable(path: &str) -> bool {
    let of_seats = ["/api/agents/summon", "/api/agents/wake"].contains(&path);
    of_seats || path == "/api/mail" || (path.starts_with("/api/questions/") && path.ends_with("/answer"))
}

/// An error in one line, with what to do next.
pub fn words_of(message: &str, hint: Option<&str>) -> String {
    let hint = hint.filter(|hint| !hint.is_empty()).map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{message}{hint}").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an effect is a request to the daemon.
pub fn is_request(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Load { .. }
            | Effect::Whole { .. }
            | Effect::LoadInherited { .. }
            | Effect::Get { .. }
            | Effect::Post { .. }
            | Effect::Refresh
            | Effect::Quest(_)
            | Effect::Agent(_)
            | Effect::AllAgents
    )
}
