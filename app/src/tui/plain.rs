//! The plain mode, for screen readers, `TERM=dumb` and pipes: no alternate screen, no redraw, each line once and whole. States are words,
//! choices are numbered. The commands and the drafts are the same.

use super::act;
use super::command;
use super::conversation::Kind;
use super::drafts::Drafts;
use super::feed::{self, Feed, QUEUE};
use super::field::Field;
use super::keys;
use super::look::Look;
use super::model::Model;
use super::overlay::Overlay;
use super::panel::choices;
use super::run::Options;
use super::text;
use super::update::{Effect, Msg, update};
use super::words;
use crate::clock;
use crate::project::Project;
use crate::report::{Context as _, Report};
use hatchery_core::{AgentId, EventId};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::ExitCode;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

/// The overview is asked for again at most this often.
const REFRESH: Duration = Duration::from_millis(500);

pub fn run(project: &Project, options: &Options) -> Result<ExitCode, Report> {
    project.prepare()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let mut model = Model::new((80, 24), clock::now(), Look::PLAIN);
    model.offset_s = clock::offset_s();
    model.instance = clock::new_request_id().to_string();
    let mut drafts = Drafts::of(project);
    drafts.load(&mut model);
    model.side = None;
    model.wanted = options.agent.clone();
    let outcome = runtime.block_on(serve(project, &mut model, &mut drafts));
    let saved = drafts.save(&model);
    runtime.shutdown_background();
    outcome?;
    saved.context("your text could not be kept")?;
    Ok(ExitCode::SUCCESS)
}

/// What was said already, so that each thing is said once.
#[derive(Default)]
struct Spoken {
    /// The last event of the current agent that was told.
    upto: EventId,
    /// Tools that were told to have begun, and to have ended.
    begun: BTreeSet<EventId>,
    ended: BTreeSet<EventId>,
    needs: BTreeSet<String>,
    current: Option<AgentId>,
    notice: String,
    away: bool,
    greeted: bool,
}

async fn serve(project: &Project, model: &mut Model, drafts: &mut Drafts) -> Result<(), Report> {
    let (out, mut news) = mpsc::channel(QUEUE);
    let feed = Feed::new(project, out);
    let mut tasks: JoinSet<()> = JoinSet::new();
    tasks.spawn(feed.clone().follow());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut spoken = Spoken::default();
    let mut refresh_at: Option<Instant> = None;
    loop {
        if model.quit {
            return Ok(());
        }
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line.context("standard input cannot be read")? else { return Ok(()) };
                model.now = clock::now();
                let effects = typed(model, &line);
                start(model, &feed, &mut tasks, effects);
                if drafts.save(model).is_err() {
                    say("Your text cannot be kept on disk.")?;
                }
            }
            msg = news.recv() => {
                let Some(msg) = msg else { return Ok(()) };
                model.now = clock::now();
                if matches!(msg, Msg::Events(_)) {
                    refresh_at.get_or_insert(Instant::now() + REFRESH);
                }
                let effects = update(model, msg);
                start(model, &feed, &mut tasks, effects);
            }
            () = async { match refresh_at { Some(at) => tokio::time::sleep_until(at).await, None => std::future::pending().await } } => {
                refresh_at = None;
                feed.start(Effect::Refresh, &mut tasks);
            }
            Some(_) = tasks.join_next() => {}
        }
        tell(model, &mut spoken)?;
    }
}

fn start(model: &mut Model, feed: &Feed, tasks: &mut JoinSet<()>, effects: Vec<Effect>) {
    for effect in effects {
        match effect {
            effect if feed::is_request(&effect) => feed.start(effect, tasks),
            Effect::TryAgain => feed.try_again(),
            Effect::Copy(_) | Effect::Pager(_) | Effect::Editor(_) => model.say("This needs the whole screen."),
            _ => {}
        }
    }
}

/// A line: a message to the current agent, or a command.
fn typed(model: &mut Model, line: &str) -> Vec<Effect> {
    if line.trim().is_empty() {
        return Vec::new();
    }
    // A kill that was asked about is decided by its number.
    if let Some(Overlay::Kill(ask)) = &mut model.overlay {
        ask.choice = match line.trim() {
            "2" => 1,
            "3" => 2,
            _ => 0,
        };
        return act::kill(model);
    }
    if line.starts_with('/') && !line.starts_with("//") {
        return command::run(model, line);
    }
    model.desk_mut().field = Field::of(line);
    keys::settle_purpose(model);
    act::send(model)
}

/// Says everything that is new.
fn tell(model: &mut Model, spoken: &mut Spoken) -> Result<(), Report> {
    let away = matches!(model.link, super::model::Link::Away { .. });
    if away != spoken.away {
        spoken.away = away;
        say(if away {
            "The daemon is away. What you say is kept and sent when it is back."
        } else {
            "The daemon is back."
        })?;
    }
    if !spoken.greeted && !model.project.is_empty() {
        spoken.greeted = true;
        let needs = match model.roster.need_count() {
            0 => "Nobody needs you".to_owned(),
            1 => "One needs you".to_owned(),
            count => format!("{} need you", text::count_word(count)),
        };
        say(&format!("{}. {} agents. {needs}.", model.project, model.roster.order().len()))?;
        say("Say something and press Enter, or /help.")?;
    }
    if model.current != spoken.current {
        spoken.current = model.current;
        spoken.upto = model.talk().map_or(EventId::START, super::conversation::Conversation::upto);
        if let Some(agent) = model.current.and_then(|agent| model.roster.agents.get(&agent)) {
            let state = words::state_of(model, agent, false).state;
            let kept = match model.desk().field.is_empty() {
                true => String::new(),
                false => format!(" Your text is kept: \"{}\".", model.desk().field.shown()),
            };
            say(&format!("You are with {}, {state}.{kept}", model.name(agent.view.id)))?;
        }
        if let Some(question) = model.current.and_then(|agent| model.roster.question_of(agent)) {
            question_lines(model, question)?;
        }
    }
    needs(model, spoken)?;
    conversation(model, spoken)?;
    if let Some(Overlay::Help(_)) = model.overlay {
        model.overlay = None;
        for (name, usage, what) in command::NAMES {
            say(&format!("/{name} {usage}: {what}."))?;
        }
    }
    if let Some(Overlay::Kill(ask)) = &model.overlay
        && let (Some(_), Some(cascade)) = (&ask.alone, &ask.cascade)
        && spoken.notice != "kill"
    {
        spoken.notice = "kill".to_owned();
        say(&format!(
            "Kill {}? 1: keep it. 2: kill it alone. 3: kill it with all below, {} in all.",
            model.name(ask.agent),
            cascade.killed.len()
        ))?;
    }
    if let Some(notice) = model.notice().map(str::to_owned)
        && notice != spoken.notice
    {
        say(&notice)?;
        spoken.notice = notice;
    }
    Ok(())
}

fn needs(model: &Model, spoken: &mut Spoken) -> Result<(), Report> {
    for need in model.roster.needs() {
        if spoken.needs.insert(need.key())
            && let (super::roster::Need::Question(question), Some(agent)) = (need, need.agent())
        {
            say(&format!("{} needs you. Question {}: {}", model.name(agent), question.id, one_line(&question.text)))?;
        }
    }
    Ok(())
}

fn question_lines(model: &Model, question: &crate::http::QuestionView) -> Result<(), Report> {
    say(&format!("Question {}: {}", question.id, one_line(&question.text)))?;
    if let Some(context) = &question.context {
        say(&format!("It says: {}", one_line(context)))?;
    }
    let choices = choices(model, question);
    let numbered: Vec<String> = choices
        .iter()
        .enumerate()
        .map(|(at, choice)| format!("Answer {}: {}.", at + 1, choice.label.trim_end_matches(" …")))
        .collect();
    say(&format!("{} Or your own words.", numbered.join(" ")))
}

fn conversation(model: &Model, spoken: &mut Spoken) -> Result<(), Report> {
    let Some(talk) = model.talk().filter(|talk| talk.is_read) else { return Ok(()) };
    let name = model.name(talk.agent);
    for block in talk.blocks() {
        let is_new = block.id > spoken.upto;
        match &block.kind {
            Kind::Spoken { text, .. } if is_new => {
                for paragraph in text.split("\n\n").filter(|it| !it.trim().is_empty()) {
                    say(&format!("{name}: {}", one_line(paragraph)))?;
                }
            }
            Kind::ToAgent { text, .. } if is_new => say(&format!("You: {}", one_line(text)))?,
            Kind::Tool(tool) => {
                let what = format!("{} {}", tool.name, tool.target());
                match (&tool.outcome, spoken.begun.contains(&block.id)) {
                    (None, false) if is_new => {
                        spoken.begun.insert(block.id);
                        say(&format!("{name}: tool {what}: began."))?;
                    }
                    (Some(outcome), begun) if (is_new || begun) && spoken.ended.insert(block.id) => {
                        let lasted = text::lasted(outcome.at.0 - block.at.0)
                            .replace(" s", " seconds")
                            .replace(" min", " minutes");
                        let parts: Vec<String> =
                            [tool.summary(), lasted].into_iter().filter(|part| !part.is_empty()).collect();
                        say(&format!("{name}: tool {what}: {}.", parts.join(", ")))?;
                    }
                    _ => {}
                }
            }
            Kind::Note { text, .. } if is_new => say(&format!("{name}: {}", one_line(text)))?,
            Kind::Here { text } if is_new => say(&one_line(text))?,
            _ => {}
        }
    }
    spoken.upto = spoken.upto.max(talk.upto());
    Ok(())
}

fn one_line(text: &str) -> String {
    text::clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn say(line: &str) -> Result<(), Report> {
    let mut out = std::io::stdout();
    match writeln!(out, "{}", text::clean(line)).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.context("the output cannot be written"),
    }
}
