//! The loop: keys first, then news, then the clock. Owns the terminal, and gives it back however it ends.

use super::attach::Attachments;
use super::background;
use super::clipboard;
use super::drafts::Drafts;
use super::draw;
use super::feed::{self, Feed, QUEUE};
use super::live::LiveFollower;
use super::model::{Connection, Model};
use super::roster::State;
use super::update::{Effect, Msg, update};
use crate::clock;
use crate::config::{Config, Flags, Runs, Tui};
use crate::harness::find_program;
use crate::project::Project;
use crate::report::{Context as _, Report};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture, Event, EventStream, KeyCode,
    KeyEvent, KeyModifiers, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
};
use crossterm::{ExecutableCommand as _, QueueableCommand as _};
use futures_util::StreamExt as _;
use hatchery_core::Timestamp;
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use std::io::{BufWriter, Stdout, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Streams are drawn at most 20 times a second, marks of other agents twice.
const STREAM_FRAME: Duration = Duration::from_millis(50);
const OTHERS_FRAME: Duration = Duration::from_millis(500);
/// While a window is dragged, it is laid out at most this often.
const RESIZE_FRAME: Duration = Duration::from_millis(30);
/// The overview is asked for again at most this often.
const REFRESH: Duration = Duration::from_millis(500);
/// Text is kept so long after the last key.
const SAVE_AFTER: Duration = Duration::from_millis(300);
/// So many characters at once are a paste, also where the terminal does not say so.
const TYPED_AT_ONCE: usize = 32;
/// How many events of the terminal are taken in before a frame is drawn.
const MAX_BATCH: usize = 4_096;
/// Has the terminal keep its title, and take it back (XTWINOPS). Terminals that do not know it ignore it.
const KEEP_TITLE: &str = "\x1b[22;2t";
const TITLE_BACK: &str = "\x1b[23;2t";
/// The buffer of one frame: one write is one frame.
const FRAME_BYTES: usize = 256 << 10;

/// What the command line asked for.
#[derive(Clone, Debug, Default)]
pub struct TuiOptions {
    /// The agent to begin with: an id, the beginning of one, or a name.
    pub agent: Option<String>,
    pub mouse: bool,
}

type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// Runs until the user leaves. Agents go on.
pub fn run(project: &Project, options: &TuiOptions) -> Result<ExitCode, Report> {
    project.prepare()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    restore_on_panic();
    let mut model = Model::new((80, 24), clock::now(), super::look::Look::PLAIN);
    model.offset_s = clock::offset_s();
    model.instance = clock::new_request_id().to_string();
    model.root = project.root().to_string_lossy().into_owned();
    let config = Config::resolve(project, &Flags::default())?;
    model.missing = missing_program(project, &config.runs);
    let Tui { bell, motion, mouse, follow_fork, keys } = config.tui;
    (model.mouse, model.mouse_set) = (mouse, mouse);
    (model.bell, model.roster.still, model.follow_fork, model.keys) = (bell, !motion, follow_fork, keys);
    let mut drafts = Drafts::of(project);
    enter(false).context("the terminal cannot be used")?;
    model.look = background::look();
    let size = crossterm::terminal::size().unwrap_or((80, 24));
    model.size = size;
    drafts.load(&mut model);
    model.mouse |= options.mouse;
    model.wanted = options.agent.clone();
    // The text is kept however this ends; the hook has restored the terminal.
    let served = std::panic::AssertUnwindSafe(|| runtime.block_on(serve(project, &mut model, &mut drafts)));
    let outcome = std::panic::catch_unwind(served);
    let saved = drafts.save(&mut model);
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    leave();
    // Requests that are under way are the daemon's by now.
    runtime.shutdown_background();
    outcome?;
    saved.context("your text could not be kept")?;
    // The terminal may be gone, as after SIGHUP.
    writeln!(std::io::stdout(), "{}", goodbye(&model)).unwrap_or_default();
    Ok(ExitCode::SUCCESS)
}

/// The program that plays agents, if it is not there.
fn missing_program(project: &Project, runs: &Runs) -> Option<String> {
    let wanted = runs.program(&runs.harness)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_program(&wanted, project.root(), &path).is_none().then(|| wanted.display().to_string())
}

/// "4 need you, 5 work on. hatchery tui brings you back to weaver-table."
fn goodbye(model: &Model) -> String {
    let needs = match model.roster.need_count() {
        0 => "Nobody needs you".to_owned(),
        1 => "1 needs you".to_owned(),
        count => format!("{count} need you"),
    };
    let work = match model.roster.working().count() {
        0 => String::new(),
        1 => ", 1 works on".to_owned(),
        count => format!(", {count} work on"),
    };
    let back = model.current.map(|agent| format!(" to {}", model.name(agent))).unwrap_or_default();
    format!("{needs}{work}. hatchery tui brings you back{back}.")
}

async fn serve(project: &Project, model: &mut Model, drafts: &mut Drafts) -> Result<(), Report> {
    let (out, mut news) = mpsc::channel(QUEUE);
    let feed = Feed::new(project, out);
    let mut tasks: JoinSet<()> = JoinSet::new();
    tasks.spawn(feed.clone().follow());
    let writer = BufWriter::with_capacity(FRAME_BYTES, std::io::stdout());
    let mut screen = Terminal::new(CrosstermBackend::new(writer)).context("the terminal cannot be used")?;
    let mut input = EventStream::new();
    let mut terminated = signal(SignalKind::terminate()).context("no signals")?;
    let mut hung_up = signal(SignalKind::hangup()).context("no signals")?;
    let attachments =
        Attachments { root: project.root().to_owned(), folder: project.data().join("tui").join("attached") };
    let mut loop_state =
        ScreenLoop { feed, tasks, attachments, title: String::new(), refresh_at: None, refreshing: false };
    let mut following = LiveFollower::default();
    if model.mouse {
        std::io::stdout().execute(EnableMouseCapture).context("the terminal cannot be used")?;
    }
    let mut frame_at = Some(Instant::now());
    let mut last_frame = Instant::now();
    let mut save_at: Option<Instant> = None;
    loop {
        if model.quit {
            return Ok(());
        }
        following.follow(model.current, &loop_state.feed);
        let tick_at = Instant::now() + next_tick(model);
        tokio::select! {
            biased;
            event = input.next() => {
                let Some(Ok(event)) = event else { return Ok(()) };
                model.now = clock::now();
                let mut batch = vec![event];
                // What is there at once was pasted, or typed faster than it is drawn. The stream itself must not be polled for it: it
                // would wake the waker of this look, and not ours, when the next key comes.
                while batch.len() < MAX_BATCH && crossterm::event::poll(Duration::ZERO).unwrap_or(false) {
                    match crossterm::event::read() {
                        Ok(more) => batch.push(more),
                        Err(_) => break,
                    }
                }
                let resized = batch.iter().all(|event| matches!(event, Event::Resize(..)));
                for msg in messages(batch) {
                    let before = model.current;
                    let effects = update(model, msg);
                    if model.current != before {
                        keep(drafts, model);
                    }
                    for effect in effects {
                        input = loop_state.carry_out(model, &mut screen, effect, input)?;
                    }
                }
                let due = if resized { last_frame + RESIZE_FRAME } else { Instant::now() };
                frame_at = Some(frame_at.map_or(due, |at| at.min(due)));
                save_at = Some(Instant::now() + SAVE_AFTER);
            }
            () = sleep_until(frame_at), if frame_at.is_some() => {
                // crossterm loses a change of size that comes together with a key.
                let size = crossterm::terminal::size().unwrap_or(model.size);
                if size != model.size {
                    drop(update(model, Msg::Resize(size.0, size.1)));
                }
                paint(model, &mut screen, &mut loop_state.title).context("the terminal cannot be written")?;
                (frame_at, last_frame) = (None, Instant::now());
            }
            msg = news.recv() => {
                let Some(msg) = msg else { return Ok(()) };
                model.now = clock::now();
                let mut about_current = false;
                let mut batch = vec![msg];
                while let Ok(more) = news.try_recv() {
                    batch.push(more);
                }
                for msg in batch {
                    about_current |= concerns(model, &msg);
                    if matches!(msg, Msg::Events(_)) {
                        loop_state.refresh_at.get_or_insert(Instant::now() + REFRESH);
                    }
                    if matches!(msg, Msg::Overview(_)) {
                        loop_state.refreshing = false;
                    }
                    for effect in update(model, msg) {
                        input = loop_state.carry_out(model, &mut screen, effect, input)?;
                    }
                }
                let due = last_frame + if about_current { STREAM_FRAME } else { OTHERS_FRAME };
                frame_at = Some(frame_at.map_or(due, |at| at.min(due)));
                // What was sent is no longer in the field, and what arrived is seen.
                save_at.get_or_insert(Instant::now() + SAVE_AFTER);
            }
            () = sleep_until(loop_state.refresh_at), if loop_state.refresh_at.is_some() && !loop_state.refreshing => {
                (loop_state.refresh_at, loop_state.refreshing) = (None, true);
                loop_state.feed.start(Effect::Refresh, &mut loop_state.tasks);
            }
            () = sleep_until(save_at), if save_at.is_some() => {
                save_at = None;
                keep(drafts, model);
            }
            () = tokio::time::sleep_until(tick_at) => {
                for effect in update(model, Msg::Tick(clock::now())) {
                    input = loop_state.carry_out(model, &mut screen, effect, input)?;
                }
                frame_at.get_or_insert(Instant::now());
            }
            _ = terminated.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
            Some(_) = loop_state.tasks.join_next() => {}
        }
        if matches!(model.link, Connection::Away { .. }) {
            loop_state.refreshing = false;
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn keep(drafts: &mut Drafts, model: &mut Model) {
    if let Err(error) = drafts.save(model) {
        model.say(format!("Your text cannot be kept on disk: {error}"));
    }
}

/// Whether something in the middle of the screen changes.
fn concerns(model: &Model, msg: &Msg) -> bool {
    match msg {
        Msg::Events(records) => records.iter().any(|record| match record.event.stream() {
            hatchery_core::Stream::Agent(agent) => Some(agent) == model.current,
            _ => false,
        }),
        _ => true,
    }
}

/// When something changes by itself: an age, a notice, the letters after `^X`.
fn next_tick(model: &Model) -> Duration {
    let until = |at: Timestamp| Duration::from_millis(u64::try_from(at.0 - clock::now().0).unwrap_or(0).max(1));
    // Ages are told in seconds up to a minute.
    let is_young = |at: Timestamp| model.now.0 - at.0 < 60_000;
    let current = model.current.and_then(|agent| model.roster.agents.get(&agent));
    let ticks = |agent: &super::roster::RosterAgent| {
        let state = model.roster.state(agent);
        matches!(state, State::Crashed | State::Hatching)
            || state.is_at_work()
            || (matches!(state, State::Asks | State::Silent) && is_young(agent.heard))
    };
    let roster = &model.roster;
    let lists = draw::shows_tree(model) || model.side.is_some();
    let in_lists = || {
        roster.working().next().is_some()
            || roster.needs().iter().any(|need| is_young(need.since()))
            || roster.agents.values().any(|agent| is_young(agent.heard))
    };
    let lively = current.is_some_and(ticks) || (lists && in_lists());
    let mut next = match lively || matches!(model.link, Connection::Away { .. }) {
        true => Duration::from_millis(1_000 - u64::try_from(clock::now().0.rem_euclid(1_000)).unwrap_or(0)),
        false => Duration::from_secs(60),
    };
    if let Some(due) = super::act::sheet_due(model) {
        next = next.min(until(due));
    }
    if let Some(notice) = &model.notice {
        next = next.min(until(notice.until));
    }
    if let Some(shown) = super::act::prefix_shown_at(model).filter(|at| at.0 > clock::now().0) {
        next = next.min(until(shown));
    }
    next
}

/// Keys that came at once are one paste when there are many of them. An Enter among them is a line break, also at the end: a paste never
/// sends anything. A line that was typed ahead waits in the field for another Enter.
fn messages(batch: Vec<Event>) -> Vec<Msg> {
    let typed = |event: &Event| match event {
        Event::Key(KeyEvent { code: KeyCode::Char(letter), modifiers, .. })
            if (*modifiers - KeyModifiers::SHIFT).is_empty() =>
        {
            Some(*letter)
        }
        Event::Key(KeyEvent { code: KeyCode::Enter, modifiers, .. }) if modifiers.is_empty() => Some('\n'),
        Event::Key(KeyEvent { code: KeyCode::Tab, modifiers, .. }) if modifiers.is_empty() => Some('\t'),
        _ => None,
    };
    if batch.len() >= TYPED_AT_ONCE && batch.iter().all(|event| typed(event).is_some()) {
        let pasted: String = batch.iter().filter_map(typed).collect();
        return vec![Msg::TypedAtOnce(pasted)];
    }
    let message = |event| match event {
        Event::Key(key) => Some(Msg::Key(key)),
        Event::Paste(text) => Some(Msg::Paste(text)),
        Event::Mouse(mouse) => Some(Msg::Mouse(mouse)),
        Event::Resize(width, height) => Some(Msg::Resize(width, height)),
        Event::FocusGained | Event::FocusLost => None,
    };
    batch.into_iter().filter_map(message).collect()
}

fn paint(model: &Model, screen: &mut Screen, title: &mut String) -> std::io::Result<()> {
    screen.backend_mut().queue(BeginSynchronizedUpdate)?;
    screen.draw(|frame| {
        let area = frame.area();
        // The size is the model's; a terminal that was resized meanwhile says so in a moment.
        if (area.width, area.height) == model.size {
            let cursor = draw::draw(model, frame.buffer_mut());
            if let Some(position) = cursor {
                frame.set_cursor_position(position);
            }
        }
    })?;
    let needs = model.roster.need_count();
    let wanted = match needs {
        0 => model.project.clone(),
        1 => format!("1 needs you · {}", model.project),
        count => format!("{count} need you · {}", model.project),
    };
    if *title != wanted {
        screen.backend_mut().queue(SetTitle(super::text::clean(&wanted)))?;
        *title = wanted;
    }
    screen.backend_mut().queue(EndSynchronizedUpdate)?;
    std::io::Write::flush(screen.backend_mut())
}

struct ScreenLoop {
    feed: Feed,
    attachments: Attachments,
    tasks: JoinSet<()>,
    title: String,
    refresh_at: Option<Instant>,
    refreshing: bool,
}

impl ScreenLoop {
    /// Does what the model asked for. Gives the input back, which another program may have had meanwhile.
    fn carry_out(
        &mut self,
        model: &mut Model,
        screen: &mut Screen,
        effect: Effect,
        input: EventStream,
    ) -> Result<EventStream, Report> {
        match effect {
            effect if feed::is_request(&effect) => {
                if effect == Effect::Refresh {
                    self.refresh_at.get_or_insert(Instant::now());
                } else {
                    self.feed.start(effect, &mut self.tasks);
                }
            }
            Effect::TryAgain => {
                self.feed.try_again();
                model.say(match model.link {
                    Connection::Up => "The daemon is connected.",
                    Connection::Opening | Connection::Away { .. } => "Trying again …",
                });
            }
            Effect::Copy(text) => {
                let words = clipboard::copy(&text);
                model.say(words);
            }
            Effect::Bell if model.bell => {
                std::io::stdout().write_all(b"\x07").unwrap_or_default();
            }
            Effect::Mouse(on) => {
                let mut out = std::io::stdout();
                let done = if on {
                    out.execute(EnableMouseCapture).map(drop)
                } else {
                    out.execute(DisableMouseCapture).map(drop)
                };
                done.context("the terminal cannot be written")?;
            }
            Effect::Redraw => blank(screen)?,
            Effect::Attach(what) => {
                let attached = self.attachments.take(what);
                drop(update(model, Msg::Attached(attached)));
            }
            Effect::Editor(text) => return self.outside(model, screen, input, |model| edit(model, &text)),
            Effect::Pager(text) => return self.outside(model, screen, input, |model| page(model, &text)),
            Effect::Suspend => {
                return self.outside(model, screen, input, |_| {
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)
                        .unwrap_or_default();
                });
            }
            _ => {}
        }
        Ok(input)
    }

    /// Gives the terminal to another program and takes it back.
    fn outside(
        &mut self,
        model: &mut Model,
        screen: &mut Screen,
        input: EventStream,
        work: impl FnOnce(&mut Model),
    ) -> Result<EventStream, Report> {
        drop(input);
        leave();
        self.title.clear();
        work(model);
        enter(model.mouse).context("the terminal cannot be used")?;
        if let Ok(size) = crossterm::terminal::size() {
            model.size = size;
        }
        blank(screen)?;
        Ok(EventStream::new())
    }
}

/// Has the next frame drawn whole. `Terminal::clear` does so, too, but first asks the terminal where its cursor is; the answer may go to
/// the thread that reads keys, and then nothing can be drawn any more.
fn blank(screen: &mut Screen) -> Result<(), Report> {
    screen.backend_mut().clear().context("the terminal cannot be written")?;
    screen.swap_buffers();
    Ok(())
}

fn enter(mouse: bool) -> std::io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    let mut out = std::io::stdout();
    out.queue(Print(KEEP_TITLE))?.queue(EnterAlternateScreen)?.queue(EnableBracketedPaste)?;
    // Terminals that do not know it ignore it: Shift-Enter is told apart where it can be.
    out.queue(PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES))?;
    if mouse {
        out.queue(EnableMouseCapture)?;
    }
    out.flush()
}

/// Gives the terminal back. Nothing can be done about a terminal that is gone.
fn leave() {
    let mut out = std::io::stdout();
    let restored = (|| {
        out.queue(DisableMouseCapture)?
            .queue(PopKeyboardEnhancementFlags)?
            .queue(DisableBracketedPaste)?
            .queue(LeaveAlternateScreen)?
            .queue(Print(TITLE_BACK))?
            .queue(crossterm::cursor::Show)?;
        out.flush()
    })();
    let raw = crossterm::terminal::disable_raw_mode();
    if restored.is_err() || raw.is_err() {
        tracing::debug!("the terminal is gone");
    }
}

fn restore_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        leave();
        before(info);
    }));
}

/// Lets the user's editor have the text. `$VISUAL`, `$EDITOR`, then `vi`.
fn edit(model: &mut Model, text: &str) {
    let program = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()))
        .unwrap_or_else(|| "vi".to_owned());
    let edited = (|| {
        let mut file = tempfile::Builder::new().prefix("hatchery-").suffix(".md").tempfile()?;
        file.write_all(text.as_bytes())?;
        file.flush()?;
        let status = Command::new("sh").args(["-c", &format!("{program} \"$0\"")]).arg(file.path()).status()?;
        match status.success() {
            true => std::fs::read_to_string(file.path()),
            false => Err(std::io::Error::other(format!("{program} ended with {status}"))),
        }
    })();
    match edited {
        Ok(text) => drop(update(model, Msg::Edited(text))),
        Err(error) => model.say(format!("Your text is as it was: {error}")),
    }
}

/// Shows a text in the user's pager, on the normal screen. `$PAGER`, then `less`.
fn page(model: &mut Model, text: &str) {
    let program = std::env::var("PAGER").ok().filter(|it| !it.is_empty()).unwrap_or_else(|| "less -R".to_owned());
    let shown = (|| {
        let mut child = Command::new("sh").args(["-c", &program]).stdin(Stdio::piped()).spawn()?;
        if let Some(mut pipe) = child.stdin.take() {
            // A pager that is left early does not read everything.
            pipe.write_all(text.as_bytes()).unwrap_or_default();
        }
        child.wait()
    })();
    if let Err(error) = shown {
        model.say(format!("The pager cannot be started: {error}"));
    }
}
