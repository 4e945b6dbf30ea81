//! clap's commands as Markdown: a table of all commands, then the help text of each.

use clap::Command;
use std::fmt::Write as _;

/// The width of a line of help. Without it clap asks the terminal, and the page would depend on the terminal.
const WIDTH: usize = 110;
/// Options that every command has. They are described once, with the program itself.
const EVERYWHERE: [&str; 4] = ["project", "json", "help", "version"];

pub fn render(program: Command) -> String {
    let mut program = program.term_width(WIDTH).disable_help_subcommand(true);
    program.build();
    let mut all = Vec::new();
    collect(&program, &mut all);
    let mut text = String::from("\n| Command | What it does |\n|---|---|\n");
    for command in &all {
        let name = command.get_bin_name().unwrap_or_default();
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let about = about.trim_end_matches('.').replace('|', "\\|");
        writeln!(text, "| [`{name}`](#{}) | {about} |", name.replace(' ', "-")).unwrap();
    }
    section(&mut text, program.clone());
    for command in all {
        let hidden = EVERYWHERE.iter().filter(|id| command.get_arguments().any(|argument| argument.get_id() == **id));
        section(&mut text, hidden.fold(command.clone(), |command, id| command.mut_arg(id, |it| it.hide(true))));
    }
    text
}

/// The commands that do something, in the order of the help text.
fn collect<'a>(command: &'a Command, all: &mut Vec<&'a Command>) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        all.push(sub);
        collect(sub, all);
    }
}

fn section(text: &mut String, mut command: Command) {
    let name = command.get_bin_name().unwrap_or("hatchery").to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    writeln!(text, "\n## {name}\n\n```text\n{}\n```", help.join("\n").trim_end()).unwrap();
}
