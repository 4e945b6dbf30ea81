//! The command line. Each subcommand has one file with its help text, its arguments and its function.

mod adopt;
mod agent_sim;
mod ask;
mod attach;
mod branch;
mod budget;
mod build;
mod clear;
mod completions;
mod demo;
mod diff;
mod doctor;
mod down;
mod events;
mod export;
mod follow;
mod fork;
mod fsck;
mod gc;
mod history;
mod import;
mod inbox;
mod init;
mod interrupt;
mod kill;
mod launch;
mod logs;
mod mail;
mod mark;
mod mcp;
mod merge;
mod open;
mod overview;
mod own_store;
mod paint;
mod permissions;
mod pr;
mod private_daemon;
mod projects;
mod ps;
mod quest;
mod rename;
mod rescue;
mod rewind;
mod run;
mod run_flags;
mod runs;
mod say;
mod seats;
mod selftest;
mod send;
mod session;
mod state;
mod status;
mod statusline;
mod stop;
mod summon;
pub(crate) mod terminal;
mod thread;
mod tree;
mod trust;
mod tui;
mod typed;
mod up;
mod usage;
mod wait;
mod waiting_run;
mod wake;
mod why;

pub(crate) use events::EventStream;
pub(crate) use follow::read as read_record;

use crate::amounts::counted;
use crate::config::{Config, Flags};
use crate::file_limit;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use hatchery_core::seat::Position;
use std::ffi::OsString;
use std::future::Future;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// Run coding agents the way an operating system runs processes.
///
/// Each project has one daemon, which writes everything that happens to one durable log. A command that needs the daemon
/// starts it if it is not running.
///
/// The project is the nearest folder, from the current one upwards, that contains .hatchery/ or .git; otherwise the current
/// folder. Settings come from hatchery.toml, then from HATCHERY_* variables, then from flags; the last one wins.
#[derive(Debug, Parser)]
#[command(name = "hatchery", version = crate::version::version(), propagate_version = true, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,

    /// Use the project that this folder belongs to [default: the current folder]
    #[arg(long, global = true, value_name = "FOLDER", env = "HATCHERY_PROJECT", hide_env_values = true)]
    // The parser accepts an empty value. Its refusal would name `--project`, also if the value comes from HATCHERY_PROJECT.
    #[arg(help_heading = EVERYWHERE, value_parser = clap::builder::OsStringValueParser::new())]
    project: Option<OsString>,

    /// Print data as JSON; an error is JSON on standard error
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
}

const EVERYWHERE: &str = "With every command";

const EXIT_CODES: &str = "\
Exit codes: 0 success · 1 failure · 2 wrong command line or configuration
            3 the daemon or its store cannot be reached · 4 a check found a problem
            5 a quest is waiting for a command from you

Try `hatchery demo` first: it needs no account and leaves nothing behind.";

// Only the arguments of the command that is called are built. Building those of all takes longer than most commands.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum CliCommand {
    Tui(tui::Args),
    Up(up::Args),
    Down(down::Args),
    Status(status::Args),
    Open(open::Args),
    Projects(projects::Args),
    Demo(demo::Args),
    Run(run::Args),
    Say(say::Args),
    Attach(attach::Args),
    Wait(wait::Args),
    Diff(diff::Args),
    Merge(merge::Args),
    Pr(pr::Args),
    Logs(logs::Args),
    Interrupt(interrupt::Args),
    Stop(stop::Args),
    Runs(runs::Args),
    Why(why::Args),
    Usage(usage::Args),
    Budget(budget::Args),
    Permissions(permissions::Args),
    Ask(ask::Args),
    Quest(Box<quest::Args>),
    Adopt(adopt::Args),
    Launch(launch::Args),
    Events(events::Args),
    Session(session::Args),
    Seats(seats::Args),
    Summon(summon::Args),
    Wake(wake::Args),
    Thread(thread::Args),
    Ps(ps::Args),
    Tree(tree::Args),
    Fork(fork::Args),
    Kill(kill::Args),
    Rename(rename::Args),
    History(history::Args),
    Clear(clear::Args),
    Mark(mark::Args),
    Rewind(rewind::Args),
    Send(send::Args),
    Mail(mail::Args),
    Mcp(mcp::Args),
    Export(export::Args),
    Import(import::Args),
    Rescue(rescue::Args),
    Fsck(fsck::Args),
    Gc(gc::Args),
    Selftest(selftest::Args),
    Trust(trust::Args),
    Doctor(doctor::Args),
    State(state::Args),
    Inbox(inbox::Args),
    Build(build::Args),
    Statusline(statusline::Args),
    Init(init::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    AgentSim(Box<agent_sim::Args>),
}

impl CliCommand {
    /// Commands that read nothing of a project, or that report what is wrong with the project.
    fn is_for_any_project(&self) -> bool {
        matches!(
            self,
            Self::Doctor(_)
                | Self::Demo(_)
                | Self::Completions(_)
                | Self::Launch(_)
                | Self::AgentSim(_)
                | Self::Statusline(_)
        )
    }
}

impl CliCommand {
    /// Commands that read and change the status, which a git worktree shares with its main checkout.
    fn is_about_status(&self) -> bool {
        matches!(self, Self::State(_) | Self::Inbox(_) | Self::Build(_))
    }

    /// Commands whose standard error a person reads: no screen is drawn over it, and no program parses it.
    fn speaks_to_a_person(&self) -> bool {
        !matches!(self, Self::Tui(_) | Self::Mcp(_) | Self::Launch(_) | Self::AgentSim(_) | Self::Statusline(_))
    }
}

/// The commands as clap knows them, for the reference page.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// The project in which a command works, and whether the command prints JSON.
#[derive(Clone, Debug)]
struct CommandContext {
    project: Project,
    json: bool,
}

/// Runs the program. Data goes to standard output, texts for people go to standard error.
pub fn main() -> ExitCode {
    // `hatchery statusline` runs at every prompt. To build the parser of the command line takes longer than the whole command.
    if std::env::args_os().skip(1).eq(["statusline"]) {
        return statusline::run();
    }
    if let Err(error) = file_limit::outlive() {
        say(format_args!("a limit on the size of files would end this program: {error}"));
    }
    // In a terminal, `hatchery` without arguments shows the full screen. Without a terminal it shows the help.
    let alone = std::env::args_os().len() == 1 && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let parsed = match alone {
        true => Cli::try_parse_from(["hatchery", "tui"]),
        false => Cli::try_parse(),
    };
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && std::env::args_os().any(|word| word == "--json") => {
            return tell_as_json(&misread(&error));
        }
        // The list of all commands says what each does, which only a command that was built knows.
        Err(error) if is_help(&error) => {
            overview::grouped(command()).try_get_matches().err().unwrap_or(error).exit();
        }
        Err(error) => error.exit(),
    };
    // The daemon writes its last error into a log that people read, so `hatchery up --json` prints an error as text.
    let json = cli.json && !matches!(cli.command, CliCommand::Up(_));
    match run(cli) {
        Ok(code) => code,
        Err(report) => {
            let code = report.code as u8;
            match json {
                true => return tell_as_json(&report),
                false => say(format_args!("{}error:{:#} {report}", paint::BAD, paint::BAD)),
            }
            ExitCode::from(code)
        }
    }
}

fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// Prints an error as JSON, in the form of the API, together with the exit code.
fn tell_as_json(report: &Report) -> ExitCode {
    let code = report.code as u8;
    say(serde_json::json!({
        "error": { "code": report.name, "message": report.message, "hint": report.hint, "exitCode": code },
    }));
    ExitCode::from(code)
}

/// The error for a command line that clap does not understand. The first paragraph of clap's text says what is wrong; the rest is help.
fn misread(error: &clap::Error) -> Report {
    let text = error.render().to_string();
    let first = text.lines().take_while(|line| !line.trim().is_empty());
    let message = first.map(str::trim).collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
    Report::new(Code::Usage, message).hint("`hatchery --help` and `hatchery COMMAND --help` show what is possible")
}

fn run(cli: Cli) -> Result<ExitCode, Report> {
    let start = match cli.project {
        // An empty variable counts as unset. An empty flag is a mistake of the user.
        Some(folder)
            if folder.is_empty() && std::env::var_os("HATCHERY_PROJECT").is_none_or(|value| !value.is_empty()) =>
        {
            return Err(
                Report::new(Code::Usage, "--project is empty").hint("name the folder of a project, or leave it out")
            );
        }
        Some(folder) if !folder.is_empty() => PathBuf::from(folder),
        Some(_) | None => std::env::current_dir().context("the current folder cannot be used")?,
    };
    let project = match cli.command.is_about_status() {
        true => Project::find_for_status(&start)?,
        false => Project::find(&start)?,
    };
    let context = CommandContext { project, json: cli.json };
    if !cli.command.is_for_any_project() {
        context.project.check_owner()?;
    }
    if cli.command.speaks_to_a_person() {
        crate::client::notices::tell_by(|words| say(format_args!("note: {words}")));
    }
    match cli.command {
        CliCommand::Tui(args) => tui::run(&context, &args),
        CliCommand::Up(args) => up::run(&context, &args),
        CliCommand::Down(args) => down::run(&context, &args),
        CliCommand::Status(args) => status::run(&context, &args),
        CliCommand::Open(args) => open::run(&context, &args),
        CliCommand::Projects(args) => projects::run(&context, &args),
        CliCommand::Demo(args) => demo::run(&context, &args),
        CliCommand::Run(args) => run::run(&context, &args),
        CliCommand::Say(args) => say::run(&context, &args),
        CliCommand::Attach(args) => attach::run(&context, &args),
        CliCommand::Wait(args) => wait::run(&context, &args),
        CliCommand::Diff(args) => diff::run(&context, &args),
        CliCommand::Merge(args) => merge::run(&context, &args),
        CliCommand::Pr(args) => pr::run(&context, &args),
        CliCommand::Logs(args) => logs::run(&context, &args),
        CliCommand::Interrupt(args) => interrupt::run(&context, &args),
        CliCommand::Stop(args) => stop::run(&context, &args),
        CliCommand::Runs(args) => runs::run(&context, &args),
        CliCommand::Why(args) => why::run(&context, &args),
        CliCommand::Usage(args) => usage::run(&context, &args),
        CliCommand::Budget(args) => budget::run(&context, &args),
        CliCommand::Permissions(args) => permissions::run(&context, &args),
        CliCommand::Ask(args) => ask::run(&context, &args),
        CliCommand::Quest(args) => quest::run(&context, &args),
        CliCommand::Adopt(args) => adopt::run(&context, &args),
        CliCommand::Launch(args) => launch::run(&args),
        CliCommand::Events(args) => events::run(&context, &args),
        CliCommand::Session(args) => session::run(&context, &args),
        CliCommand::Seats(args) => seats::run(&context, &args),
        CliCommand::Summon(args) => summon::run(&context, &args),
        CliCommand::Wake(args) => wake::run(&context, &args),
        CliCommand::Thread(args) => thread::run(&context, &args),
        CliCommand::Ps(args) => ps::run(&context, &args),
        CliCommand::Tree(args) => tree::run(&context, &args),
        CliCommand::Fork(args) => fork::run(&context, &args),
        CliCommand::Kill(args) => kill::run(&context, &args),
        CliCommand::Rename(args) => rename::run(&context, &args),
        CliCommand::History(args) => history::run(&context, &args),
        CliCommand::Clear(args) => clear::run(&context, &args),
        CliCommand::Mark(args) => mark::run(&context, &args),
        CliCommand::Rewind(args) => rewind::run(&context, &args),
        CliCommand::Send(args) => send::run(&context, &args),
        CliCommand::Mail(args) => mail::run(&context, &args),
        CliCommand::Mcp(args) => mcp::run(&context, &args),
        CliCommand::Export(args) => export::run(&context, &args),
        CliCommand::Import(args) => import::run(&context, &args),
        CliCommand::Rescue(args) => rescue::run(&context, &args),
        CliCommand::Fsck(args) => fsck::run(&context, &args),
        CliCommand::Selftest(args) => selftest::run(&context, &args),
        CliCommand::Gc(args) => gc::run(&context, &args),
        CliCommand::Trust(args) => trust::run(&context, &args),
        CliCommand::Doctor(args) => doctor::run(&context, &args),
        CliCommand::State(args) => state::run(&context, &args),
        CliCommand::Inbox(args) => inbox::run(&context, &args),
        CliCommand::Build(args) => build::run(&context, &args),
        CliCommand::Statusline(statusline::Args {}) => Ok(statusline::run()),
        CliCommand::Init(args) => init::run(&context, &args),
        CliCommand::Completions(args) => completions::run(&args),
        CliCommand::AgentSim(args) => agent_sim::run(*args),
    }
}

impl CommandContext {
    fn config(&self) -> Result<Config, Report> {
        Config::resolve(&self.project, &Flags::default())
    }
}

/// Runs the task of a command that asks the daemon, on a runtime with one thread.
fn asking<T>(task: impl Future<Output = Result<T, Report>>) -> Result<T, Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("no runtime")?.block_on(task)
}

/// Asks the daemon for a change, and prints a sentence about the result. With --json, prints the answer with its events.
fn accepted(
    context: &CommandContext,
    path: &str,
    body: &serde_json::Value,
    words: impl FnOnce(&AcceptedAnswer) -> String,
) -> Result<ExitCode, Report> {
    let accepted: serde_json::Value =
        asking(async { crate::client::Client::visit(&context.project).await?.post(path, body).await })?;
    show_accepted(context, &accepted, words)
}

/// If no agent has the name `agent`, and `agent` is the number of a seat, the hint says how to name the seat.
fn or_seat(report: Report, agent: &str, command: impl FnOnce(Position) -> String) -> Report {
    let seat = agent.parse().ok().and_then(Position::new).filter(|_| report.name == "nobody_called");
    match seat {
        Some(seat) => report.hint(format_args!("if you mean the agent in seat {seat}: `hatchery {}`", command(seat))),
        None => report,
    }
}

/// Like `accepted`. The request is repeated if the connection breaks, and is carried out once.
fn accepted_once(
    context: &CommandContext,
    path: &str,
    body: serde_json::Value,
    words: impl FnOnce(&AcceptedAnswer) -> String,
) -> Result<ExitCode, Report> {
    let accepted: serde_json::Value =
        asking(async { Ok(crate::client::once::ask_once(&context.project, path, body).await?) })?;
    show_accepted(context, &accepted, words)
}

fn show_accepted(
    context: &CommandContext,
    accepted: &serde_json::Value,
    words: impl FnOnce(&AcceptedAnswer) -> String,
) -> Result<ExitCode, Report> {
    match context.json {
        true => print_json(accepted)?,
        false => {
            say(words(&AcceptedAnswer(accepted)));
            if let Some(warning) = accepted["warning"].as_str() {
                say(format_args!("warning: {warning}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer to a command that was carried out.
struct AcceptedAnswer<'a>(&'a serde_json::Value);

impl AcceptedAnswer<'_> {
    /// The first event of a type.
    fn event(&self, kind: &str) -> Option<&serde_json::Value> {
        self.0["events"].as_array()?.iter().find(|event| event["type"] == kind)
    }

    fn has(&self, kind: &str) -> bool {
        self.event(kind).is_some()
    }
}

/// Starts the log of this process. Log lines at `level` and above go to `writer`.
fn start_logging(level: &str, writer: BoxMakeWriter) -> Result<(), Report> {
    let filter = tracing_subscriber::EnvFilter::try_new(level).map_err(|_| {
        Report::new(Code::Usage, "`log` is not a filter").hint("use error, warn, info, debug, trace, or off")
    })?;
    let ansi = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let logging =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(ansi).with_target(false);
    // A line that cannot be written is lost. A message about the loss would cause a panic if standard error is closed.
    logging.log_internal_errors(false).init();
    Ok(())
}

/// Prints one JSON document to standard output.
fn print_json(value: &impl serde::Serialize) -> Result<(), Report> {
    let text = serde_json::to_string_pretty(value).context("the answer cannot be written")?;
    print_json_text(&text)
}

/// Prints JSON that is already text, followed by the end of the line.
fn print_json_text(text: &str) -> Result<(), Report> {
    use std::io::Write as _;
    written(writeln!(anstream::stdout(), "{}", terminal::shown_json(text)))
}

/// Prints one line of data. If the reader has closed the pipe (`| head`), the program ends without an error.
fn print_line(line: &str) -> Result<(), Report> {
    use std::io::Write as _;
    written(writeln!(anstream::stdout(), "{}", terminal::shown(line)))
}

/// Handles the result of a write to standard output. If the reader has closed the pipe, the program ends.
fn written(result: std::io::Result<()>) -> Result<(), Report> {
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Report::failed(format_args!("the output cannot be written: {error}"))),
    }
}

/// Prints a text for people to standard error. A closed standard error is not an error here; `eprintln!` would panic.
fn say(words: impl std::fmt::Display) {
    use std::io::Write as _;
    writeln!(anstream::stderr(), "{}", terminal::shown(&words.to_string())).unwrap_or_default();
}

/// Reads a file that was named on the command line.
fn read_given(file: &std::path::Path) -> Result<String, Report> {
    std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))
}

/// The error for a file that cannot be read. In every command, this is a mistake in the command line.
fn unreadable(file: &std::path::Path, error: &std::io::Error) -> Report {
    Report::new(Code::Usage, format_args!("{} cannot be read: {error}", file.display()))
}

/// A text from the command line; for `-`, the text from standard input.
fn text_or_stdin(given: &str) -> Result<String, Report> {
    use std::io::Read as _;
    let mut text = String::new();
    match given {
        "-" => std::io::stdin().read_to_string(&mut text).context("standard input cannot be read as UTF-8")?,
        given => return Ok(given.to_owned()),
    };
    Ok(text)
}

/// A message to an agent, from the command line or from standard input. A message of blanks is refused, because it would cost a turn.
fn words_or_stdin(given: &str) -> Result<String, Report> {
    let words = text_or_stdin(given)?;
    match words.trim().is_empty() {
        true => {
            Err(Report::new(Code::Usage, "there is nothing to say").hint("give some words, or `-` and standard input"))
        }
        false => Ok(words),
    }
}

/// An argument that names an agent. A whole id may begin with a dash. Any other text that begins with a dash is a mistyped option.
fn reference(text: &str) -> Result<String, String> {
    match text.starts_with('-') && text.parse::<hatchery_core::AgentId>().is_err() {
        true => Err("there is no such option; an id that begins with a dash must be written whole".into()),
        false => Ok(text.to_owned()),
    }
}

/// A word in quotes if a shell needs them, for commands in hints.
fn quoted(word: &str) -> std::borrow::Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:@".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")).into(),
    }
}

/// Reads the number of a question or a mail. The error says where the numbers are shown, which the parser's own error does not.
fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "it must be a number; `hatchery ask list` and `hatchery mail check` show the numbers".to_owned())
}

/// Checks an id that the caller has chosen for a request.
fn caller_id(text: &str) -> Result<String, String> {
    crate::http::CallerId::try_from(text.to_owned()).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed_and_every_command_says_what_it_does() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        command.build();
        for sub in command.get_subcommands() {
            assert!(sub.get_about().is_some(), "{} has no help text", sub.get_name());
            for argument in sub.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {} has no help text", sub.get_name(), argument.get_id());
            }
        }
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!((counted(0, "event"), counted(1, "event")), ("0 events".into(), "1 event".into()));
    }
}
