//! `hatchery permissions`

use super::paint::printable;
use super::{CommandContext, accepted, asking, print_json, print_line, say};
use crate::client::Client;
use crate::http::{PermissionRuleList, PermissionRuleView};
use crate::report::Report;
use crate::short_ids::ShortIds;
use std::process::ExitCode;

/// List and remove the rules that let agents use tools unasked
///
/// A rule is added when you answer a question with `always-agent` or `always-project`. docs/permissions.md describes the policies
/// and what each of them allows.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: PermissionsCommand,
}

const EXAMPLES: &str = "\
Examples:
  hatchery ask list                       shows what agents ask permission for
  hatchery ask answer 12 allow            allows it this time
  hatchery ask answer 12 \"deny: use npm\"  the agent is told the reason
  hatchery ask answer 12 always-agent     allows it to this agent from now on
  hatchery ask answer 12 always-project   allows it to all agents of the project
  hatchery permissions remove 13          takes a rule back";

#[derive(Debug, clap::Subcommand)]
enum PermissionsCommand {
    /// List the rules, oldest first
    List,
    /// Remove a rule; agents ask you again for what the rule allowed
    Remove {
        /// The rule's number
        rule: u64,
    },
}

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    match &args.what {
        PermissionsCommand::List => list(context),
        PermissionsCommand::Remove { rule } => {
            accepted(context, &format!("/api/permissions/{rule}/remove"), &serde_json::json!({}), |_| {
                format!("rule {rule} is removed; what it allowed is asked again")
            })
        }
    }
}

fn list(context: &CommandContext) -> Result<ExitCode, Report> {
    let list: PermissionRuleList =
        asking(async { Client::visit(&context.project).await?.get("/api/permissions").await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if list.rules.is_empty() {
        say("there is no rule");
    }
    let ids = ShortIds::of(list.rules.iter().filter_map(|rule| rule.agent));
    for rule in &list.rules {
        print_line(&line(rule, &ids))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn line(rule: &PermissionRuleView, ids: &ShortIds) -> String {
    let whose = match (&rule.agent, &rule.name) {
        (None, _) => "all agents".to_owned(),
        (Some(agent), None) => ids.short(agent),
        (Some(agent), Some(name)) => format!("{} ({})", ids.short(agent), printable(name)),
    };
    format!("{:>6}  {whose}: {}", rule.id, printable(&rule.text))
}
