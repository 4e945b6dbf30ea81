//! The plain mode, for screen readers, `TERM=dumb` and pipes: no alternate screen, no redraw, each line once and whole. States are words,
//! choices are numbered. The commands and the drafts are the same.

mod spoken;
mod told;

pub(super) use spoken::Spoken;
#[cfg(test)]
pub(super) use spoken::prompt;
pub(super) use told::transcript;

use super::act;
use super::clipboard;
use super::command;
use super::drafts::Drafts;
use super::feed::{self, Feed, QUEUE};
use super::field::Field;
use super::keys;
use super::look::Look;
use super::model::{Connection, Model, Purpose};
use super::overlay::{Overlay, TextReader};
use super::panel::chosen_by_number;
use super::run::TuiOptions;
use super::text;
use super::update::{Effect, Msg, Tag, update};
use crate::clock;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use hatchery_core::EventId;
use std::io::{IsTerminal as _, Write};
use std::process::ExitCode;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

/// The overview is asked for again at most this often.
const REFRESH: Duration = Duration::from_millis(500);

/// How long the end of a pipe waits for a daemon that is away. It is longer than a client waits for the answer to a request.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// The one task that is no request follows the log.
const FOLLOWING: usize = 1;

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
    let code = outcome?;
    saved.context("your text could not be kept")?;
    Ok(code)
}

/// Lines are carried out one after the other: the next one is read when the one before it is answered, and the first one when it is known
/// which agents there are. The end of a pipe waits in the same way.
async fn serve(project: &Project, model: &mut Model, drafts: &mut Drafts) -> Result<ExitCode, Report> {
    let (out, mut news) = mpsc::channel(QUEUE);
    let feed = Feed::new(project, out);
    let mut tasks: JoinSet<()> = JoinSet::new();
    tasks.spawn(feed.clone().follow());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut spoken = Spoken::default();
    // The question that the line that is being typed can answer.
    let mut asked: Option<Option<EventId>> = None;
    let is_typed = std::io::stdin().is_terminal();
    let mut prompt = PlainPrompt { wanted: is_typed, shown: false };
    let mut refresh_at: Option<Instant> = None;
    let (mut is_over, mut has_failed) = (false, false);
    let mut wanted = model.wanted.clone();
    let mut waits_since: Option<Instant> = None;
    while !model.quit {
        let asks = tasks.len() > FOLLOWING;
        let is_answered = knows_all(model) && !asks && news.is_empty();
        // A request that the daemon does not answer is given up by its client.
        waits_since = match is_answered || is_typed || (asks && model.link == Connection::Up) {
            true => None,
            false => waits_since.or_else(|| Some(Instant::now())),
        };
        // In a terminal, the user is told that the daemon is away, and messages are kept until it is back.
        let is_kept = is_typed && !model.project.is_empty() && matches!(model.link, Connection::Away { .. });
        let is_next = is_answered || is_kept;
        if is_next && is_over {
            break;
        }
        if is_next {
            // The first line is begun at the first prompt.
            asked.get_or_insert(asked_in_front(model));
            prompt.show(model)?;
        }
        tokio::select! {
            // What is known is told before the next line is read.
            biased;
            msg = news.recv() => {
                let Some(msg) = msg else { break };
                model.now = clock::now();
                let msg = match msg {
                    Msg::Unreached(why) if !is_typed && model.project.is_empty() => return Err(why),
                    msg => msg,
                };
                if matches!(msg, Msg::Events(_)) {
                    refresh_at.get_or_insert(Instant::now() + REFRESH);
                }
                has_failed |= is_failure(&msg);
                let effects = update(model, msg);
                if !model.project.is_empty()
                    && let Some(Err(mistake)) = wanted.take().map(|wanted| command::agent(model, &wanted))
                {
                    // Otherwise the lines would be sent to another agent.
                    return Err(Report::failed(mistake).hint("`hatchery ps` lists the agents; nothing was sent"));
                }
                has_failed |= !start(model, &feed, &mut tasks, effects);
            }
            Some(_) = tasks.join_next() => {}
            () = sleep_until(refresh_at) => {
                refresh_at = None;
                feed.start(Effect::Refresh, &mut tasks);
            }
            () = sleep_until(waits_since.map(|since| since + ANSWERED_WITHIN)) => return Err(unanswered(model)),
            line = lines.next_line(), if is_next => {
                model.now = clock::now();
                let effects = match line.context("standard input cannot be read")? {
                    Some(line) => {
                        // The terminal has begun a new row with Enter.
                        prompt.shown = false;
                        if is_typed {
                            spoken.was_typed(&line);
                        }
                        typed(model, &line, asked.flatten())
                    }
                    None => {
                        is_over = true;
                        keep_from_kill(model)
                    }
                };
                // The next line is begun from here on.
                asked = Some(asked_in_front(model));
                has_failed |= !effects.is_some_and(|effects| start(model, &feed, &mut tasks, effects));
                if drafts.save(model).is_err() {
                    model.say("Your text cannot be kept on disk.");
                }
            }
        }
        prompt.tell(&spoken.tell(model))?;
    }
    prompt.hide()?;
    Ok(if has_failed && !is_typed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Whether it is known which agents there are, and everything that was said is in the log.
fn knows_all(model: &Model) -> bool {
    model.link == Connection::Up && !model.project.is_empty() && model.outbox.is_empty()
}

/// Whether something that was asked for was not carried out. What is only counted or completed was not asked for.
fn is_failure(msg: &Msg) -> bool {
    let Msg::Answer { tag, result: Err(_) } = msg else { return false };
    !matches!(tag, Tag::Changes(_) | Tag::Files(_) | Tag::Count(_))
}

fn unanswered(model: &Model) -> Report {
    let silent = format!("the daemon has not answered for {} s", ANSWERED_WITHIN.as_secs());
    let report = Report::new(Code::Unreachable, silent);
    match model.outbox.len() {
        0 => report.hint("`hatchery status` shows whether it runs; the rest of the input was not read"),
        waiting => report.hint(format_args!(
            "{} kept, and said when `hatchery tui` is started again",
            if waiting == 1 { "1 message is".to_owned() } else { format!("{waiting} messages are") }
        )),
    }
}

/// Says whether all of it can be done here.
fn start(model: &mut Model, feed: &Feed, tasks: &mut JoinSet<()>, effects: Vec<Effect>) -> bool {
    let mut can_all = true;
    for effect in effects {
        match effect {
            effect if feed::is_request(&effect) => feed.start(effect, tasks),
            Effect::TryAgain => feed.try_again(),
            Effect::Pager(text) => {
                let title = model.current.map(|agent| format!("The conversation with {}", model.name(agent)));
                let title = title.unwrap_or_else(|| "The conversation".to_owned());
                model.overlay = Some(Overlay::Reader(TextReader { title, text, top: 0 }));
            }
            Effect::Copy(text) => {
                let copied = clipboard::of_system(&text);
                can_all &= copied.is_some();
                model.say(
                    copied.unwrap_or_else(|| "There is no clipboard. /history prints the conversation.".to_owned()),
                );
            }
            _ => {}
        }
    }
    can_all
}

/// The question of the agent in front. A line that begins now can answer it.
pub(super) fn asked_in_front(model: &Model) -> Option<EventId> {
    model.current.and_then(|agent| model.roster.question_of(agent)).map(|question| question.id)
}

/// A line: a message to the current agent, a command, or an answer. The terminal delivers only complete lines, so it is not known when the
/// first letter of a line was typed. A line answers a question only if the question was shown before the previous line ended, because a
/// later question may have appeared while the user was typing. None if the line cannot be carried out; the reason is said.
pub(super) fn typed(model: &mut Model, line: &str, asked: Option<EventId>) -> Option<Vec<Effect>> {
    if line.trim().is_empty() {
        return Some(Vec::new());
    }
    // A kill that was asked about is decided by its number. Any other line keeps the agent, and is a line like every other.
    if let Some(Overlay::Kill(ask)) = &mut model.overlay {
        let below = ask.cascade.as_ref().is_some_and(|preview| preview.killed.len() > 1);
        let choice = match line.trim() {
            "1" => Some(0),
            "2" => Some(1),
            "3" if below => Some(2),
            _ => None,
        };
        ask.choice = choice.unwrap_or(0);
        let effects = act::kill(model);
        if choice.is_some() {
            return Some(effects);
        }
    }
    if line.starts_with('/') && !line.starts_with("//") {
        return command::run_line(model, line);
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
    let was_sent = rest.field.is_empty();
    if !was_sent {
        // It could not be sent, and there is no field where it could stay.
        model.recall.set_aside(model.current, &rest.field.whole());
    }
    let desk = model.desk_mut();
    (desk.field, desk.purpose, desk.begun_on) = (draft.field, draft.purpose, draft.begun_on);
    was_sent.then_some(effects)
}

/// The input has ended. A kill that nobody has decided is not carried out.
fn keep_from_kill(model: &mut Model) -> Option<Vec<Effect>> {
    match model.overlay {
        Some(Overlay::Kill(_)) => {
            act::kill(model);
            None
        }
        _ => Some(Vec::new()),
    }
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
    fn tell(&mut self, lines: &[String]) -> Result<(), Report> {
        let mut out = std::io::stdout();
        if lines.is_empty() {
            return Ok(());
        }
        self.hide()?;
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
        Ok(())
    }

    /// What comes next begins a row of its own.
    fn hide(&mut self) -> Result<(), Report> {
        if std::mem::take(&mut self.shown) { say(&mut std::io::stdout(), "") } else { Ok(()) }
    }

    /// Shows that a line is expected.
    fn show(&mut self, model: &Model) -> Result<(), Report> {
        if !self.wanted || self.shown {
            return Ok(());
        }
        self.shown = true;
        let mut out = std::io::stdout();
        write!(out, "{}", spoken::prompt(model)).and_then(|()| out.flush()).context("the output cannot be written")
    }
}
