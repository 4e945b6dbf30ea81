//! The help of `hatchery` without a command. It lists the commands in groups, because a person looks for a task and not for a name.

use super::EXIT_CODES;
use clap::Command;
use std::fmt::Write as _;

const GROUPS: [(&str, &[&str]); 9] = [
    ("Start work, and follow it", &["demo", "run", "quest", "tui", "open", "attach", "wait", "adopt"]),
    ("See what agents do", &["ps", "tree", "runs", "why", "history", "logs", "usage", "events"]),
    ("Answer and steer", &["ask", "say", "interrupt", "stop", "kill", "budget", "permissions"]),
    ("Take over what they have done", &["diff", "merge", "pr", "rescue"]),
    ("Histories and mail", &["fork", "mark", "rewind", "clear", "rename", "send", "mail", "session"]),
    ("Seats, in which agents keep a name", &["seats", "summon", "wake", "thread"]),
    ("Status files and other tools", &["state", "inbox", "build", "statusline", "init", "mcp"]),
    ("The daemon and its log", &["up", "down", "status", "projects", "fsck", "gc", "export", "import"]),
    ("This machine", &["doctor", "trust", "selftest", "completions", "help"]),
];
/// The longest description of a command. With the command's name before it, the line fits into 80 columns.
const WIDTH: usize = 65;

/// Replaces the help of the command by the help with groups.
pub fn grouped(mut command: Command) -> Command {
    command.build();
    let heading = *command.get_styles().get_header();
    let name_style = *command.get_styles().get_literal();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        writeln!(groups, "{heading}{title}:{heading:#}").unwrap_or_default();
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(|text| brief(&text.to_string()).to_owned()).unwrap_or_default();
            writeln!(groups, "  {name_style}{name:<12}{name_style:#} {about}").unwrap_or_default();
        }
        groups.push('\n');
    }
    let options = format!("{heading}Options:{heading:#}\n{{options}}\n\n{EXIT_CODES}\n");
    command.help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{options}"))
}

/// The beginning of a help text, up to the first colon or semicolon: what the command does, without details.
fn brief(about: &str) -> &str {
    let first = about.split([':', ';']).next().unwrap_or(about);
    match first.len() > WIDTH {
        true => first.rsplit_once(", ").map_or(first, |(before, _)| brief(before)),
        false => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_command_is_in_one_group_and_fits_into_80_columns() {
        let mut command = super::super::command();
        command.build();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set()).map(|it| it.get_name().to_owned());
        let mut in_groups: Vec<String> =
            GROUPS.iter().flat_map(|(_, names)| *names).map(|it| (*it).to_owned()).collect();
        in_groups.sort();
        assert_eq!(in_groups, shown.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
        let help = grouped(super::super::command()).render_help().to_string();
        let listed = help.lines().take_while(|line| *line != "Options:");
        let wide: Vec<&str> = listed.filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, Vec::<&str>::new());
        assert!(help.contains("  why          Show what an agent is doing now"), "{help}");
    }
}
