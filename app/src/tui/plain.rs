//! The plain mode, for screen readers, `TERM=dumb` and pipes: no alternate screen, no redraw, each line once and whole. States are words,
//! choices are numbered. The commands and the drafts are the same.

mod spoken;

pub(super) use spoken::Spoken;
#[cfg(test)]
pub(super) use spoken::prompt;

use super::act;
use super::command;
use super::drafts::Drafts;
use super::feed::{self, Feed, QUEUE};
use super::field::Field;
use super::keys;
use super::look::Look;
use super::model::{Model, Purpose};
use super::overlay::Overlay;
use super::panel::chosen_by_number;
use super::run::TuiOptions;
use super::text;
use super::update::{Effect, Msg, update};
use crate::clock;
use crate::project::Project;
use crate::report::{Context as _, Report};
use hatchery_core::EventId;
use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

/// The overview is asked for again at most this often.
const REFRESH: Duration = Duration::from_millis(500);

/// In fewer columns there is no room for whole words.
const MIN_WIDTH: usize = 20;

pub fn run(project: &Project, options: &TuiOptions) -> Result<ExitCode, Report> {
    project.prepare()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let mut model = Model::new((80, 24), clock::now(), Look::PLAIN);
    model.offset_s = clock::offset_s();
    model.instance = clock::new_request_id().to_string();
    let mut drafts = Drafts::of(project);
    drafts.load(&mut model);
    (model.side, model.from_end) = (None, true);
    model.wanted = options.agent.clone();
    let outcome = runtime.block_on(serve(project, &mut model, &mut drafts));
    let saved = drafts.save(&mut model);
    runtime.shutdown_background();
    outcome?;
    saved.context("your text could not be kept")?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(project: &Project, model: &mut Model, drafts: &mut Drafts) -> Result<(), Report> {
    let (out, mut news) = mpsc::channel(QUEUE);
    let feed = Feed::new(project, out);
    let mut tasks: JoinSet<()> = JoinSet::new();
    tasks.spawn(feed.clone().follow());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut spoken = Spoken::default();
    // The question that the line that is being typed can answer.
    let mut asked: Option<Option<EventId>> = None;
    let mut prompt = PlainPrompt { wanted: std::io::stdin().is_terminal(), shown: false };
    let mut refresh_at: Option<Instant> = None;
    loop {
        if model.quit {
            return Ok(());
        }
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line.context("standard input cannot be read")? else { return Ok(()) };
                model.now = clock::now();
                // The terminal has begun a new row with Enter.
                prompt.shown = false;
                if prompt.wanted {
                    spoken.was_typed(&line);
                }
                let effects = typed(model, &line, asked.flatten());
                // The next line is begun from here on.
                asked = Some(asked_in_front(model));
                start(model, &feed, &mut tasks, effects);
                if drafts.save(model).is_err() {
                    model.say("Your text cannot be kept on disk.");
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
        let lines = spoken.tell(model);
        if !model.project.is_empty() {
            // The first line is begun at the first prompt.
            asked.get_or_insert(asked_in_front(model));
        }
        prompt.told(model, &lines)?;
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

/// The question of the agent in front. A line that begins now can answer it.
pub(super) fn asked_in_front(model: &Model) -> Option<EventId> {
    model.current.and_then(|agent| model.roster.question_of(agent)).map(|question| question.id)
}

/// A line: a message to the current agent, a command, or an answer. The terminal delivers only complete lines, so it is not known when the
/// first letter of a line was typed. A line answers a question only if the question was shown before the previous line ended, because a
/// later question may have appeared while the user was typing.
pub(super) fn typed(model: &mut Model, line: &str, asked: Option<EventId>) -> Vec<Effect> {
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
    // What was typed on the screen stays the draft of its agent.
    let draft = model.desk_mut().take_text();
    let desk = model.desk_mut();
    (desk.field, desk.begun_on) = (Field::of(line), asked);
    keys::fix_purpose(model, false);
    let is_message = model.desk().purpose == Some(Purpose::Message);
    let came_since = model.current.and_then(|agent| model.roster.question_of(agent));
    let came_since = came_since.filter(|question| is_message && asked != Some(question.id));
    let is_number = came_since.is_some_and(|question| chosen_by_number(model, question, line).is_some());
    let effects = match came_since.map(|question| question.id) {
        // As a message, the number of an answer says nothing.
        Some(question) if is_number => {
            model.say(format!("Nothing was sent. /answer {} answers question {question}.", line.trim()));
            Vec::new()
        }
        Some(question) => {
            let effects = act::send(model);
            model.say(format!("This was said as a message. /answer and your words answer question {question}."));
            effects
        }
        None => act::send(model),
    };
    let rest = model.desk_mut().take_text();
    if !rest.field.is_empty() {
        // It could not be sent, and there is no field where it could stay.
        model.recall.set_aside(model.current, &rest.field.whole());
    }
    let desk = model.desk_mut();
    (desk.field, desk.purpose, desk.begun_on) = (draft.field, draft.purpose, draft.begun_on);
    effects
}

/// Writes lines, each once and whole.
fn say(out: &mut impl Write, line: &str) -> Result<(), Report> {
    match writeln!(out, "{}", text::clean(line)).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.context("the output cannot be written"),
    }
}

/// The prompt `NAME> `, where a person types. What is told next begins a row of its own.
struct PlainPrompt {
    /// The input is a terminal: a pipe needs no prompt.
    wanted: bool,
    shown: bool,
}

impl PlainPrompt {
    fn told(&mut self, model: &Model, lines: &[String]) -> Result<(), Report> {
        let mut out = std::io::stdout();
        if lines.is_empty() && self.shown {
            return Ok(());
        }
        if std::mem::take(&mut self.shown) {
            say(&mut out, "")?;
        }
        // A terminal would break a long line within a word. A pipe gets lines as they are.
        let width =
            out.is_terminal().then(crossterm::terminal::size).and_then(Result::ok).map(|(width, _)| usize::from(width));
        for line in lines {
            match width.filter(|width| *width > MIN_WIDTH) {
                Some(width) => {
                    text::wrap(&text::clean(line), width - 1)
                        .iter()
                        .try_for_each(|row| say(&mut out, row.trim_end()))?;
                }
                None => say(&mut out, line)?,
            }
        }
        if self.wanted && !model.quit && !model.project.is_empty() {
            self.shown = true;
            write!(out, "{}", spoken::prompt(model))
                .and_then(|()| out.flush())
                .context("the output cannot be written")?;
        }
        Ok(())
    }
}
