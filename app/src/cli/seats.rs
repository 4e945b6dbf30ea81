//! `hatchery seats`

use super::paint::{BAD, DIM, GOOD, STRONG, WARN, paint, printable};
use super::{CommandContext, asking, print_json, print_line};
use crate::client::Client;
use crate::clock;
use crate::http::{SeatList, SeatView};
use crate::report::Report;
use crate::short_ids::ShortIds;
use anstyle::Style;
use hatchery_core::AgentId;
use hatchery_core::seat::Button;
use std::process::ExitCode;

/// Show the nine seats as a grid
///
/// A seat is empty, hatching (its agent has not chosen a name yet), alive, sleeping (its process has ended; `hatchery wake` fills
/// the seat again) or expired (its agent chose no name in time). The last line of the output names the
/// commands that you can use now.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also list each seat with its agent and when it was last alive
    #[arg(long, short)]
    long: bool,
}

/// The width of a seat in the grid, without its border.
const WIDTH: usize = 16;

pub fn run(context: &CommandContext, args: &Args) -> Result<ExitCode, Report> {
    let list: SeatList = asking(async { Client::visit(&context.project).await?.get("/api/seats").await })?;
    if context.json {
        print_json(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_line(grid(&list).trim_end())?;
    if args.long {
        let ids = ShortIds::of(list.seats.iter().filter_map(|seat| seat.agent));
        let width = ids.width();
        for seat in &list.seats {
            let agent = seat.agent.map_or_else(|| "-".to_owned(), |agent| ids.short(agent));
            let alive = seat.last_alive_at.map_or_else(|| "never alive".to_owned(), |at| clock::age(at, clock::now()));
            let soul = if seat.has_soul { "" } else { "  no soul" };
            let name = seat.name.as_deref().map(printable).unwrap_or_default();
            print_line(&format!("{}  {:<8}  {agent:<width$}  {alive}  {name}{soul}", seat.grid_position, seat.status))?;
        }
    }
    if let Some(lead) = missing_lead(&list) {
        print_line(&format!(
            "the lead has no process: `hatchery why {lead}` says why, and the next message starts it again"
        ))?;
    }
    print_line(match list.button {
        Button::Summon => "no seat has an agent: `hatchery summon` fills the seats",
        Button::Wake => "some seats sleep: `hatchery wake` fills them again",
        Button::Waking => "some seats are being filled; please wait",
        Button::None => "all agents in seats are alive",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The lead, if the seats have a session and the lead has no process.
fn missing_lead(list: &SeatList) -> Option<AgentId> {
    list.lead.filter(|_| list.session_id.is_some() && !list.lead_alive)
}

/// The nine seats as three rows of three boxes.
fn grid(list: &SeatList) -> String {
    let border = |left: &str, middle: &str, right: &str| {
        let line = "─".repeat(WIDTH);
        format!("{left}{line}{middle}{line}{middle}{line}{right}\n")
    };
    let mut text = border("┌", "┬", "┐");
    for row in 0..3_u8 {
        let cells: Vec<[(Style, String); 2]> = (0..3).map(|column| cell(list, row * 3 + column)).collect();
        for line in 0..2 {
            text.push('│');
            for cell in &cells {
                let (style, words) = &cell[line];
                text.push_str(&paint(*style, fitted(words)));
                text.push('│');
            }
            text.push('\n');
        }
        text.push_str(&if row < 2 { border("├", "┼", "┤") } else { border("└", "┴", "┘") });
    }
    text
}

/// The two lines in the box of a seat.
fn cell(list: &SeatList, position: u8) -> [(Style, String); 2] {
    if position == 4 {
        let (style, state) = match (list.lead, list.lead_alive) {
            (None, _) => (DIM, "not started"),
            (Some(_), true) => (GOOD, "alive"),
            (Some(_), false) => (WARN, "sleeping"),
        };
        return [(STRONG, " 4 lead".into()), (style, format!("   {state}"))];
    }
    let seat = list.seats.iter().find(|seat| seat.grid_position == position);
    let name = seat.and_then(|seat| seat.name.as_deref()).map(printable).unwrap_or_default();
    let (style, state) = seat.map_or((DIM, "empty".to_owned()), of_state);
    [(STRONG, format!(" {position} {name}")), (style, format!("   {state}"))]
}

fn of_state(seat: &SeatView) -> (Style, String) {
    let style = match seat.status.as_str() {
        "alive" => GOOD,
        "sleeping" | "hatching" => WARN,
        "expired" => BAD,
        _ => DIM,
    };
    // The box is too narrow for both words.
    (style, if seat.waking { "waking".to_owned() } else { seat.status.clone() })
}

/// Cuts or extends a text to the width of a box.
fn fitted(words: &str) -> String {
    let chars = words.chars().count();
    match chars > WIDTH {
        true => words.chars().take(WIDTH - 1).chain(['…']).collect(),
        false => format!("{words}{}", " ".repeat(WIDTH - chars)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatchery_core::EventId;

    #[test]
    fn the_grid_is_drawn() {
        let seat: SeatView = serde_json::from_value(serde_json::json!({
            "gridPosition": 0, "status": "alive", "waking": false, "name": "Lyra of the very long name",
            "hasSoul": true, "createdAt": 0
        }))
        .unwrap();
        let waking: SeatView = serde_json::from_value(serde_json::json!({
            "gridPosition": 1, "status": "sleeping", "waking": true, "hasSoul": true, "createdAt": 0
        }))
        .unwrap();
        let list = SeatList {
            head: EventId(1),
            session_id: None,
            mode: None,
            button: Button::None,
            lead: None,
            lead_alive: false,
            seats: vec![seat, waking],
        };
        let drawn = anstream::adapter::strip_str(&grid(&list)).to_string();
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[0], "┌────────────────┬────────────────┬────────────────┐");
        assert_eq!(lines[1], "│ 0 Lyra of the …│ 1              │ 2              │");
        assert_eq!(lines[2], "│   alive        │   waking       │   empty        │");
        assert_eq!(lines[5], "│   empty        │   not started  │   empty        │");
        assert!(lines.iter().all(|line| line.chars().count() == 52), "{drawn}");
        // If the lead cannot be started, the output says so.
        let lead = AgentId::from_bytes([7; 16]);
        let missing = SeatList { lead: Some(lead), session_id: Some("s".into()), ..list };
        assert_eq!(missing_lead(&missing), Some(lead));
        assert_eq!(missing_lead(&SeatList { lead_alive: true, ..missing }), None);
    }
}
