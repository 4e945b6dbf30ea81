//! `hatchery why`

use super::paint::{BAD, DIM, STRONG, paint, printable};
use super::{Context, asking, print_json, print_line, reference};
use crate::client::Client;
use crate::client::paths::agent_path;
use crate::http::{QuestionList, WhyView};
use crate::report::Report;
use hatchery_core::Timestamp;
use std::process::ExitCode;

/// Show what an agent is doing now, with the evidence and its age, and the question that it waits for
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent: an id, the beginning of one, or a name
    #[arg(allow_hyphen_values = true, value_parser = reference)]
    agent: String,
}

pub fn run(context: &Context, args: &Args) -> Result<ExitCode, Report> {
    let (view, questions) = asking(async {
        let client = Client::visit(&context.project).await?;
        let view: WhyView = client.get(&agent_path(&args.agent, "/why")).await?;
        let questions: QuestionList = client.get("/api/questions").await?;
        Ok((view, questions.questions))
    })?;
    if context.json {
        print_json(&view)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = view.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    // As `ps` calls it.
    let asks = questions.iter().any(|question| question.agent == view.agent);
    let state = if asks { "asking" } else { view.state.word() };
    print_line(&format!("{}{name} is {}", view.agent, paint(STRONG, state)))?;
    for evidence in &view.evidence {
        let age = paint(DIM, age(evidence.at, view.now));
        print_line(&format!("  {} · {age}", evidence.what))?;
    }
    for question in questions.iter().filter(|question| question.agent == view.agent) {
        let text = printable(&question.whole()).replace('\n', "\n  ");
        print_line(&format!("  {} {text}", paint(BAD, "asks you:")))?;
        print_line(&format!("  hatchery ask answer {} …", question.id))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How long ago something was, or in how long it will be, in the largest unit that says enough.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let (ms, ahead) = match at > now {
        true => (at.ms_since(now), true),
        false => (now.ms_since(at), false),
    };
    let length = match ms / 1_000 {
        0 => "a moment".to_owned(),
        s @ 1..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s @ 7_200..172_800 => format!("{} h", s / 3_600),
        s => format!("{} days", s / 86_400),
    };
    if ahead { format!("in {length}") } else { format!("{length} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_a_unit_that_says_enough() {
        let ago = |ms| age(Timestamp(0), Timestamp(ms));
        assert_eq!(
            [ago(0), ago(1_500), ago(180_000), ago(8_000_000)],
            ["a moment ago", "1 s ago", "3 min ago", "2 h ago"]
        );
        assert_eq!(age(Timestamp(5_000), Timestamp(0)), "in 5 s");
    }
}
