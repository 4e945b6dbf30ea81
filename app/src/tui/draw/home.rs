//! Home: who needs you, with the answers in place; who works; what is done.

use super::put;
use crate::http::QuestionView;
use crate::quest_document::QuestWord;
use crate::tui::look::Ink;
use crate::tui::model::{Focus, Model};
use crate::tui::panel::{Answer, Home, choices};
use crate::tui::roster::{Agent, Need, State, dollars};
use crate::tui::text;
use crate::tui::words;
use hatchery_core::ask::About;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// What happened today counts as done today.
const TODAY_MS: i64 = 24 * 3_600_000;

/// The lines of the panel, and where the caret of an answer is.
struct Page {
    lines: Vec<Line<'static>>,
    /// The line and column of the caret.
    caret: Option<(usize, usize)>,
    /// The lines of the chosen need.
    chosen: Option<(usize, usize)>,
}

pub fn draw(model: &Model, home: &Home, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let cells = usize::from(area.width);
    let height = usize::from(area.height);
    let mut page = page(model, home, cells, false);
    if page.lines.len() > height {
        page = self::page(model, home, cells, true);
    }
    // The chosen one stays in sight.
    let top = page
        .chosen
        .map_or(0, |(from, to)| if to > height { from.min(page.lines.len().saturating_sub(height)) } else { 0 });
    for (at, line) in page.lines.iter().skip(top).take(height).enumerate() {
        put(buffer, area.x, area.y + u16::try_from(at).unwrap_or(0), area.width, line);
    }
    let place = page.caret.or(page.chosen.map(|(from, _)| (from, 1)));
    place.and_then(|(row, column)| {
        let row = row.checked_sub(top).filter(|row| *row < height)?;
        Some(Position { x: area.x + u16::try_from(column).ok()?, y: area.y + u16::try_from(row).ok()? })
    })
}

fn page(model: &Model, home: &Home, cells: usize, compact: bool) -> Page {
    let look = model.look;
    let mut page = Page { lines: Vec::new(), caret: None, chosen: None };
    let needs = model.roster.needs();
    let mut workers: Vec<&Agent> = model.roster.working().collect();
    workers.sort_by_key(|agent| model.roster.place(agent.view.id));
    let bold = look.style(Ink::Bold);
    match needs.first() {
        Some(oldest) => {
            let wait = if needs.len() == 1 { "waits" } else { "wait" };
            let age = text::age(model.now.0 - oldest.since().0).replace(" min", " minutes").replace(" s", " seconds");
            let age = if age == "1 minutes" { "1 minute".to_owned() } else { age };
            let words = match needs.len() {
                1 => format!(" One {wait} for you, for {age}"),
                count => format!(" {} {wait} for you, the oldest for {age}", text::count_word(count)),
            };
            page.lines.push(Line::styled(text::cut(&words, cells), bold));
        }
        None => {
            page.lines.push(Line::styled(" Nothing waits for you", bold));
            let words = match workers.len() {
                0 => " Nobody works.".to_owned(),
                1 => " One agent works. This fills when it asks.".to_owned(),
                count => format!(" {} agents work. This fills when one of them asks.", text::count_word(count)),
            };
            page.lines.push(Line::styled(text::cut(&words, cells), look.style(Ink::Dim)));
        }
    }
    page.lines.push(Line::default());
    let chosen = home.chosen.clone().or_else(|| needs.first().map(Need::key));
    for (at, need) in needs.iter().enumerate() {
        let is_chosen = Some(need.key()) == chosen;
        let from = page.lines.len();
        add_need(model, home, need, is_chosen, compact, cells, &mut page);
        if is_chosen {
            page.chosen = Some((from, page.lines.len()));
        }
        if !compact || is_chosen || at + 1 == needs.len() {
            page.lines.push(Line::default());
        }
    }
    // What was answered stays until the panel closes.
    for (key, outcome) in &home.outcomes {
        if needs.iter().all(|need| need.key() != *key) {
            page.lines.push(Line::styled(text::cut(&format!(" {outcome}"), cells), look.style(Ink::Dim)));
            page.lines.push(Line::default());
        }
    }
    sections(model, &workers, compact && !needs.is_empty(), cells, &mut page.lines);
    page
}

fn add_need(
    model: &Model,
    home: &Home,
    need: &Need<'_>,
    is_chosen: bool,
    compact: bool,
    cells: usize,
    page: &mut Page,
) {
    let look = model.look;
    let key = need.key();
    let inner = cells.saturating_sub(4);
    let bar = if is_chosen { Span::styled("▎", look.style(Ink::Accent)) } else { Span::raw(" ") };
    let line = |spans: Vec<Span<'static>>| {
        let mut all = vec![bar.clone()];
        all.extend(spans);
        Line::from(all)
    };
    let (glyph, ink, name, context) = match need {
        Need::Question(question) => ("?", Ink::AccentFilled, model.name(question.agent), about(model, question)),
        Need::FailedStep { quest, step } => (
            "⊗",
            Ink::Bad,
            quest.steps[*step].id.to_string(),
            format!("step · {}", quest.request.lines().next().unwrap_or_default()),
        ),
    };
    let age = text::age(model.now.0 - need.since().0);
    let context = text::cut(&text::clean(&context), cells.saturating_sub(text::width(&name) + text::width(&age) + 8));
    let left = vec![
        bar.clone(),
        Span::styled(glyph, look.style(ink)),
        Span::styled(format!(" {name}"), look.style(Ink::Bold)),
        Span::styled(format!("  {context}"), look.style(Ink::Dim)),
    ];
    page.lines.push(super::apart(left, vec![Span::styled(age, look.style(Ink::Dim))], cells.saturating_sub(1)));
    let (words, extra) = match need {
        Need::Question(question) => (question.text.clone(), question.context.clone()),
        Need::FailedStep { quest, step } => {
            let step = &quest.steps[*step];
            let blocked = quest.steps.iter().filter(|it| it.depends_on.contains(&step.id)).count();
            let why =
                step.doing.clone().or_else(|| step.history.last().map(|note| note.what.clone())).unwrap_or_default();
            let blocks = match blocked {
                0 => String::new(),
                1 => " One step is blocked by it.".to_owned(),
                count => format!(" {count} steps are blocked by it."),
            };
            (format!("{}.{blocks}", why.trim_end_matches('.')), None)
        }
    };
    let rows = text::wrap(&text::clean(&words), inner);
    let shown = if compact && !is_chosen { 1 } else { rows.len() };
    for row in rows.into_iter().take(shown) {
        page.lines.push(line(vec![Span::raw("  "), Span::raw(row)]));
    }
    if let Some(extra) = extra.filter(|_| is_chosen) {
        for row in text::wrap(&text::clean(&extra), inner) {
            page.lines.push(line(vec![Span::raw("  "), Span::styled(row, look.style(Ink::Dim))]));
        }
    }
    let outcome = home.outcomes.get(&key);
    if let Some(outcome) = outcome {
        page.lines.push(line(vec![Span::raw("  "), Span::styled(text::cut(outcome, inner), look.style(Ink::Accent))]));
    }
    let labels: Vec<(String, bool)> = match need {
        Need::Question(question) => choices(question)
            .into_iter()
            .map(|choice| (choice.label, matches!(choice.answer, Answer::Own(_))))
            .collect(),
        Need::FailedStep { .. } => vec![("Retry step".to_owned(), false), ("See what the ward said".to_owned(), false)],
    };
    if is_chosen {
        for (at, (label, is_own)) in labels.into_iter().enumerate() {
            let here = home.choice == Some(at);
            let mark = if here { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
            let own = home
                .own
                .get(&key)
                .filter(|field| is_own && (here || !field.is_empty()) && (home.typing || !field.is_empty()));
            let label = own.map_or(label, |field| field.shown().replace('\n', " "));
            let number = format!("{} ", at + 1);
            if here && home.typing && is_own && model.focus == Focus::Side {
                let before = home.own.get(&key).map(|field| text::width(field.before_cursor())).unwrap_or(0);
                page.caret = Some((page.lines.len(), (3 + text::width(&number) + before).min(cells.saturating_sub(1))));
            }
            let style = look.style(if here { Ink::Bold } else { Ink::Plain });
            page.lines.push(line(vec![
                mark,
                Span::styled(number, look.style(Ink::Dim)),
                Span::styled(text::cut(&label, inner.saturating_sub(2)), style),
            ]));
        }
    } else if !compact {
        let words: Vec<String> =
            labels.iter().enumerate().map(|(at, (label, _))| format!("{} {label}", at + 1)).collect();
        for row in text::wrap(&words.join("  "), inner) {
            page.lines.push(line(vec![Span::raw("  "), Span::styled(row, look.style(Ink::Dim))]));
        }
    }
}

/// Where the agent that asks belongs to.
fn about(model: &Model, question: &QuestionView) -> String {
    let assignment = model.roster.agents.get(&question.agent).and_then(|agent| agent.view.assignment.as_ref());
    let quest = question.quest.or(assignment.map(|it| it.quest));
    let step = question.step.as_ref().or(assignment.map(|it| &it.step));
    let request = quest.and_then(|quest| model.roster.quests.iter().find(|line| line.id == quest));
    match (step, request) {
        (Some(step), Some(quest)) => format!("{step} · {}", quest.request.lines().next().unwrap_or_default()),
        (None, Some(quest)) => quest.request.lines().next().unwrap_or_default().to_owned(),
        _ => match question.about {
            About::Budget { of: None } => "the budget of the day".to_owned(),
            _ => "on its own".to_owned(),
        },
    }
}

fn sections(model: &Model, workers: &[&Agent], short: bool, cells: usize, lines: &mut Vec<Line<'static>>) {
    let look = model.look;
    let parked = model.roster.agents.values().filter(|agent| model.roster.state(agent) == State::Parked).count();
    let recent = |at: i64| model.now.0 - at < TODAY_MS;
    let mut done: Vec<&Agent> = model
        .roster
        .agents
        .values()
        .filter(|agent| agent.run.is_some() && agent.view.assignment.is_none() && recent(agent.view.last_active.0))
        .filter(|agent| matches!(model.roster.state(agent), State::Done | State::Resting))
        .collect();
    done.sort_by_key(|agent| std::cmp::Reverse(agent.view.last_active));
    let quests: Vec<_> = model
        .roster
        .quests
        .iter()
        .filter(|quest| quest.state == QuestWord::Complete && recent(quest.changed.0))
        .collect();
    let done_count = done.len() + quests.len();
    if short {
        let and = if parked > 0 { format!(", and {parked} parked") } else { String::new() };
        let words = format!(" Working {}{and} · Done {done_count} today", workers.len());
        lines.push(Line::styled(text::cut(&words, cells), look.style(Ink::Dim)));
        return;
    }
    if !workers.is_empty() {
        lines.push(Line::styled(format!(" Working  {}", workers.len()), look.style(Ink::Bold)));
        for agent in workers {
            let view = &agent.view;
            let state = model.roster.state(agent);
            let role = view.assignment.as_ref().map_or_else(|| "on its own".to_owned(), |it| it.step.to_string());
            let left = vec![
                Span::raw(" "),
                Span::styled(state.glyph(agent.ring), look.style(state.ink())),
                Span::styled(format!(" {}", model.name(view.id)), look.style(Ink::Bold)),
                Span::styled(format!("  {role}"), look.style(Ink::Dim)),
            ];
            lines.push(super::apart(
                left,
                vec![Span::styled(dollars(view.spent.cost), look.style(Ink::Dim))],
                cells.saturating_sub(1),
            ));
            if let Some(doing) = &view.doing {
                let tool = doing.tool.as_deref().map(|tool| format!("{tool} ")).unwrap_or_default();
                let words = text::clean(&format!("{tool}{}", doing.line)).into_owned();
                lines.push(Line::from(format!("   {}", text::cut(&words, cells.saturating_sub(5)))));
            }
            let said = words::state_of(model, agent, false);
            let words = match (state, words::tool_since(model, agent)) {
                (State::Working, Some(at)) => format!("tool runs for {}", text::age(model.now.0 - at)),
                (State::Working, None) if said.evidence == "says this now" => said.evidence,
                (State::Working, None) => said.evidence.replacen("said", "said this", 1),
                _ => format!("{}, {}", said.state, said.evidence),
            };
            lines.push(Line::styled(format!("   {words}"), look.style(if said.old { Ink::Warn } else { Ink::Dim })));
        }
        lines.push(Line::default());
    }
    if done_count > 0 {
        lines.push(Line::styled(format!(" Done  {done_count} today"), look.style(Ink::Bold)));
        for quest in quests {
            let title = text::clean(quest.request.lines().next().unwrap_or_default()).into_owned();
            let left = vec![Span::styled(" ✓ ", look.style(Ink::Dim)), Span::raw(title)];
            lines.push(super::apart(
                left,
                vec![Span::styled(dollars(quest.spent), look.style(Ink::Dim))],
                cells.saturating_sub(1),
            ));
            let words = format!("   Quest complete · {} ago", text::age(model.now.0 - quest.changed.0));
            lines.push(Line::styled(words, look.style(Ink::Dim)));
        }
        for agent in done.iter().take(8) {
            let view = &agent.view;
            let age = text::age(model.now.0 - view.last_active.0);
            let left = vec![
                Span::styled(" ✓ ", look.style(Ink::Dim)),
                Span::raw(model.name(view.id)),
                Span::styled(format!("  {age}"), look.style(Ink::Dim)),
            ];
            lines.push(super::apart(
                left,
                vec![Span::styled(dollars(view.spent.cost), look.style(Ink::Dim))],
                cells.saturating_sub(1),
            ));
        }
    }
}
