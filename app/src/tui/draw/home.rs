//! Home: who needs you, with the answers in place; who works; what is done.

use super::put;
use crate::http::{QuestLine, QuestionView};
use crate::quest_document::QuestWord;
use crate::tui::look::Ink;
use crate::tui::model::{Focus, Model};
use crate::tui::panel::{ChosenAnswer, Home, asked_rows, choices, numbered_labels, permission_line, permission_words};
use crate::tui::roster::{MAX_DONE, Need, RosterAgent, State, dollars};
use crate::tui::text;
use crate::tui::words;
use hatchery_core::ask::About;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

/// What happened today counts as done today.
pub const TODAY_MS: i64 = 24 * 3_600_000;
/// How many rows of a request are shown while another need is chosen.
const UNCHOSEN_ROWS: usize = 4;
/// The rows of the chosen need that are not about what is asked for: its head, its answers, the rule.
const CHOSEN_ROWS: usize = 12;

/// The least gap between what an agent does and what it has changed.
const CHANGES_GAP: usize = 4;

/// The lines of the panel, and where the caret of an answer is.
struct HomePanel {
    lines: Vec<Line<'static>>,
    /// The line and column of the caret.
    caret: Option<(usize, usize)>,
    /// The lines of the chosen need, or of the chosen agent below the needs.
    chosen: Option<(usize, usize)>,
}

/// How much of the panel there is room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// All needs with their answers, who works, what is done.
    All,
    /// All needs with their answers.
    Needs,
    /// The chosen need; of the others one row.
    Chosen,
}

pub fn draw(model: &Model, home: &Home, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let cells = usize::from(area.width);
    let height = usize::from(area.height);
    let below = model.roster.below_needs(model.now).iter().any(|key| Some(key) == home.chosen.as_ref());
    let fits = |room: &Room| page(model, home, cells, *room).lines.len() <= height;
    let room = match below {
        true => Room::All,
        false => [Room::All, Room::Needs].into_iter().find(fits).unwrap_or(Room::Chosen),
    };
    let page = page(model, home, cells, room);
    // The chosen one stays in sight.
    let top = page
        .chosen
        .map_or(0, |(from, to)| if to > height { from.min(page.lines.len().saturating_sub(height)) } else { 0 });
    for (at, line) in page.lines.iter().skip(top).take(height).enumerate() {
        put(buffer, area.x, area.y + u16::try_from(at).unwrap_or(0), area.width, line);
    }
    // Your open question stands on a tint. Agents below the needs have none.
    if let Some((from, to)) = page.chosen.filter(|_| !below && model.roster.need_count() > 0) {
        let (from, to) = (from.saturating_sub(top).min(height), to.saturating_sub(top).min(height));
        let rows = |rows: usize| u16::try_from(rows).unwrap_or(0);
        super::tint(model, buffer, Rect::new(area.x, area.y + rows(from), area.width, rows(to - from)));
    }
    let place = page.caret.or(page.chosen.map(|(from, _)| (from, 1)));
    place.and_then(|(row, column)| {
        let row = row.checked_sub(top).filter(|row| *row < height)?;
        Some(Position { x: area.x + u16::try_from(column).ok()?, y: area.y + u16::try_from(row).ok()? })
    })
}

fn page(model: &Model, home: &Home, cells: usize, room: Room) -> HomePanel {
    let look = model.look;
    let mut page = HomePanel { lines: Vec::new(), caret: None, chosen: None };
    let needs = model.roster.needs();
    let workers = model.roster.workers(model.now);
    let bold = look.style(Ink::Bold);
    match needs.first() {
        Some(oldest) => {
            let wait = if needs.len() == 1 { "waits" } else { "wait" };
            let age = text::in_words(&text::age(model.now.0 - oldest.since().0));
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
    let known = |key: &String| needs.iter().any(|need| need.key() == *key) || key.starts_with('a');
    let chosen = home.chosen.clone().filter(known).or_else(|| needs.first().map(Need::key));
    for (at, need) in needs.iter().enumerate() {
        let is_chosen = Some(need.key()) == chosen;
        let from = page.lines.len();
        add_need(model, home, need, is_chosen, room, cells, &mut page);
        if is_chosen {
            page.chosen = Some((from, page.lines.len()));
        }
        if room != Room::Chosen || is_chosen || at + 1 == needs.len() {
            page.lines.push(Line::default());
        }
    }
    // What is typed stays in sight, also when it is no longer asked.
    let gone = home.chosen.as_ref().filter(|key| home.typing && needs.iter().all(|need| need.key() != **key));
    if let Some(words) = gone.and_then(|key| model.own.get(key)) {
        let words = format!(" No longer asked. Your words: {}", words.field.shown().replace('\n', " "));
        page.lines.push(Line::styled(text::cut(&words, cells), look.style(Ink::Accent)));
        page.lines.push(Line::default());
    }
    // What was answered stays until the panel closes.
    for (key, outcome) in &home.outcomes {
        if needs.iter().all(|need| need.key() != *key) {
            let rows = text::wrap(&text::clean(outcome), cells.saturating_sub(2));
            page.lines.extend(rows.into_iter().map(|row| Line::styled(format!(" {row}"), look.style(Ink::Dim))));
            page.lines.push(Line::default());
        }
    }
    match room {
        Room::All => sections(model, &workers, chosen.as_deref(), cells, &mut page),
        Room::Needs => {}
        Room::Chosen => counts(model, workers.len(), cells, &mut page.lines),
    }
    page
}

fn add_need(
    model: &Model,
    home: &Home,
    need: &Need<'_>,
    is_chosen: bool,
    room: Room,
    cells: usize,
    page: &mut HomePanel,
) {
    let look = model.look;
    let key = need.key();
    let compact = room == Room::Chosen;
    let inner = cells.saturating_sub(4);
    let bar = if is_chosen { Span::styled("▎", look.style(Ink::Accent)) } else { Span::raw(" ") };
    let line = |spans: Vec<Span<'static>>| {
        let mut all = vec![bar.clone()];
        all.extend(spans);
        Line::from(all)
    };
    let (glyph, ink, name, context) = match need {
        Need::Question(question) => ("?", Ink::AccentFilled, model.name(question.agent), about(model, question)),
        Need::FailedStep { quest, step } => {
            ("⊗", Ink::Bad, quest.steps[*step].id.to_string(), format!("step · {}", text::title(&quest.request)))
        }
    };
    let age = format!("{:>6}", text::age(model.now.0 - need.since().0));
    let taken = 3 + text::width(&name) + 2 + 3 + text::width(&age) + 1;
    let context = text::cut_at_word(&text::clean(&context), cells.saturating_sub(taken));
    let left = vec![
        bar.clone(),
        Span::styled(glyph, look.style(ink)),
        Span::styled(format!(" {name}"), look.style(Ink::Bold)),
        Span::styled(format!("  {context}"), look.style(Ink::Dim)),
    ];
    page.lines.push(super::apart(left, vec![Span::styled(age, look.style(Ink::Accent))], cells.saturating_sub(1)));
    let permission = match need {
        Need::Question(question) => question.permission.as_ref(),
        Need::FailedStep { .. } => None,
    };
    if compact && !is_chosen {
        let words = match (need, permission) {
            (_, Some(permission)) => permission_line(permission),
            (Need::Question(question), None) => question.text.split_whitespace().collect::<Vec<_>>().join(" "),
            (Need::FailedStep { .. }, _) => trouble(need, inner),
        };
        page.lines.push(line(vec![Span::raw("  "), Span::raw(text::cut(&text::clean(&words), inner))]));
        return;
    }
    let (words, what, extra) = match (need, permission) {
        (_, Some(permission)) => {
            let (words, what) = permission_words(model, permission);
            (words, Some(what), None)
        }
        (Need::Question(question), None) => (question.text.clone(), None, question.context.clone()),
        (Need::FailedStep { .. }, None) => (trouble(need, inner), None, None),
    };
    let asked = look.style(if is_chosen { Ink::Bold } else { Ink::Plain });
    for row in text::wrap(&text::clean(&words), inner) {
        page.lines.push(line(vec![Span::raw("  "), Span::styled(row, asked)]));
    }
    // What is allowed must be seen first. Its answers stay in sight.
    let height = usize::from(super::areas(model).separator.y);
    let most = if is_chosen { height.saturating_sub(CHOSEN_ROWS).max(UNCHOSEN_ROWS) } else { UNCHOSEN_ROWS };
    for (row, ink) in what.map(|what| asked_rows(&what, inner, most)).unwrap_or_default() {
        page.lines.push(line(vec![Span::raw("  "), Span::styled(row, look.style(ink))]));
    }
    if let Some(extra) = extra.filter(|_| is_chosen) {
        for row in text::wrap(&text::clean(&extra), inner) {
            page.lines.push(line(vec![Span::raw("  "), Span::styled(row, look.style(Ink::Dim))]));
        }
    }
    let outcome = home.outcomes.get(&key);
    if let Some(outcome) = outcome {
        for row in text::wrap(&text::clean(outcome), inner) {
            page.lines.push(line(vec![Span::raw("  "), Span::styled(row, look.style(Ink::Accent))]));
        }
    }
    let labels: Vec<(String, bool)> = match need {
        Need::Question(question) => {
            choices(model, question).into_iter().map(|choice| (choice.label, choice.answer.is_typed())).collect()
        }
        Need::FailedStep { .. } => vec![("Retry step".to_owned(), false), ("See what the ward said".to_owned(), false)],
    };
    match is_chosen {
        true => add_choices(model, home, &key, labels, cells, &bar, page),
        false => {
            let labels: Vec<String> = labels.into_iter().map(|(label, _)| label).collect();
            for row in numbered_labels(&labels, inner) {
                page.lines.push(line(vec![Span::raw("  "), Span::styled(row, look.style(Ink::Dim))]));
            }
        }
    }
    if let (Some(permission), Need::Question(question)) = (permission, need) {
        let always: Vec<String> = choices(model, question)
            .iter()
            .enumerate()
            .filter(|(_, choice)| matches!(&choice.answer, ChosenAnswer::Word(word) if word.starts_with("always")))
            .map(|(at, _)| (at + 1).to_string())
            .collect();
        let words = format!("{} write the rule  {}", always.join(" and "), permission.rule);
        for row in text::wrap(&text::clean(&words), inner.saturating_sub(2)) {
            page.lines.push(line(vec![Span::raw("    "), Span::styled(row, look.style(Ink::Dim))]));
        }
    }
}

/// The answers of the chosen need, each in a row of its own. What you type stands in its row.
fn add_choices(
    model: &Model,
    home: &Home,
    key: &str,
    labels: Vec<(String, bool)>,
    cells: usize,
    bar: &Span<'static>,
    page: &mut HomePanel,
) {
    let look = model.look;
    let inner = cells.saturating_sub(4);
    for (at, (label, is_own)) in labels.into_iter().enumerate() {
        // What was chosen in another need says nothing about this one.
        let here = home.choice == Some(at) && home.chosen.as_deref().is_none_or(|chosen| chosen == key);
        let mark = if here { Span::styled("❯ ", look.style(Ink::Accent)) } else { Span::raw("  ") };
        let own = model
            .own
            .get(key)
            .map(|words| &words.field)
            .filter(|field| is_own && (here || !field.is_empty()) && (home.typing || !field.is_empty()));
        let begin = if label.starts_with("Deny") { "Deny: " } else { "" };
        let label = own.map_or(label, |field| format!("{begin}{}", field.shown().replace('\n', " ")));
        let number = format!("{} ", at + 1);
        if here && home.typing && is_own && model.focus == Focus::Side {
            let before = own.map(|field| text::width(&field.shown_before_cursor())).unwrap_or(0);
            page.caret = Some((
                page.lines.len(),
                (3 + text::width(&number) + begin.len() + before).min(cells.saturating_sub(1)),
            ));
        }
        let style = look.style(if here { Ink::Accent } else { Ink::Plain });
        let style = if here { style.add_modifier(Modifier::BOLD) } else { style };
        page.lines.push(Line::from(vec![
            bar.clone(),
            mark,
            Span::styled(number, if here { style } else { look.style(Ink::Dim) }),
            Span::styled(text::cut(&label, inner.saturating_sub(2)), style),
        ]));
    }
}

/// Why a step waits for you.
fn trouble(need: &Need<'_>, cells: usize) -> String {
    let Need::FailedStep { quest, step } = need else { return String::new() };
    let step = &quest.steps[*step];
    let blocked = quest.steps.iter().filter(|it| it.depends_on.contains(&step.id)).count();
    let why = step.doing.clone().or_else(|| step.history.last().map(|note| note.what.clone())).unwrap_or_default();
    let why = format!("{}.", why.trim_end_matches('.'));
    let blocks = match blocked {
        0 => return why,
        1 => "One step is blocked".to_owned(),
        count => format!("{count} steps are blocked"),
    };
    let whole = format!("{why} {blocks} by it.");
    if text::width(&whole) <= cells { whole } else { format!("{why} {blocks}.") }
}

/// Where the agent that asks belongs to.
fn about(model: &Model, question: &QuestionView) -> String {
    let assignment = model.roster.agents.get(&question.agent).and_then(|agent| agent.view.assignment.as_ref());
    let quest = question.quest.or(assignment.map(|it| it.quest));
    let step = question.step.as_ref().or(assignment.map(|it| &it.step));
    let request = quest.and_then(|quest| model.roster.quests.iter().find(|line| line.id == quest));
    match (step, request) {
        (Some(step), Some(quest)) => format!("{step} · {}", text::title(&quest.request)),
        (None, Some(quest)) => text::title(&quest.request),
        _ => match question.about {
            About::Budget { of: None } => "the budget of the day".to_owned(),
            _ => "on its own".to_owned(),
        },
    }
}

/// What is done today: quests, and agents outside of quests.
fn done(model: &Model) -> (Vec<&QuestLine>, Vec<&RosterAgent>) {
    let recent = |at: i64| model.now.0 - at < TODAY_MS;
    let quests = model.roster.quests.iter();
    let quests = quests.filter(|quest| quest.state == QuestWord::Complete && recent(quest.changed.0)).collect();
    (quests, model.roster.done_today(model.now))
}

/// How many are done: all that are known, and whether there may be more.
fn done_words(model: &Model, count: usize) -> String {
    match model.roster.more_done_today(model.now) {
        true => format!("{count} or more"),
        false => count.to_string(),
    }
}

/// One line for who works and what is done, where there is no room for more.
fn counts(model: &Model, at_work: usize, cells: usize, lines: &mut Vec<Line<'static>>) {
    let parked = model.roster.agents.values().filter(|agent| model.roster.state(agent) == State::Parked).count();
    let (quests, agents) = done(model);
    let and = if parked > 0 { format!(", and {parked} parked") } else { String::new() };
    let done = done_words(model, quests.len() + agents.len());
    let words = format!(" Working {at_work}{and} · Done {done} today: j goes there");
    lines.push(Line::styled(text::cut(&words, cells), model.look.style(Ink::Dim)));
}

fn sections(model: &Model, workers: &[&RosterAgent], chosen: Option<&str>, cells: usize, page: &mut HomePanel) {
    let look = model.look;
    let (quests, agents) = done(model);
    let done_count = agents.len() + quests.len();
    let mark = |agent: &RosterAgent, page: &mut HomePanel, rows: usize| {
        let is_chosen = chosen == Some(crate::tui::roster::agent_key(agent.view.id).as_str());
        if is_chosen {
            page.chosen = Some((page.lines.len(), page.lines.len() + rows));
        }
        if is_chosen { Span::styled("❯", look.style(Ink::Accent)) } else { Span::raw(" ") }
    };
    if !workers.is_empty() {
        page.lines.push(Line::styled(format!(" Working  {}", workers.len()), look.style(Ink::Bold)));
        for agent in workers {
            let view = &agent.view;
            let state = model.roster.state(agent);
            let role = view.assignment.as_ref().map_or_else(|| "on its own".to_owned(), |it| it.step.to_string());
            let left = vec![
                mark(agent, page, 3),
                Span::styled(state.glyph(agent.ring), look.style(state.ink())),
                Span::styled(format!(" {}", model.name(view.id)), look.style(Ink::Bold)),
                Span::styled(format!("  {role}"), look.style(Ink::Dim)),
            ];
            let cost = vec![Span::styled(dollars(view.spent.cost), look.style(Ink::Dim))];
            page.lines.push(super::apart(left, cost, cells.saturating_sub(1)));
            if let Some(doing) = &view.doing {
                let tool = doing.tool.as_deref().map(|tool| format!("{tool} ")).unwrap_or_default();
                let words = text::clean(&format!("{tool}{}", doing.line)).into_owned();
                let changed = model.changes.get(&view.id).and_then(|it| it.lines).filter(|it| it.2 > 0);
                let changed = changed.map(|(added, removed, _)| format!("+{added} −{removed}")).unwrap_or_default();
                let taken = if changed.is_empty() { 0 } else { text::width(&changed) + CHANGES_GAP };
                let left = vec![Span::raw(format!(
                    "   {}",
                    text::cut(&words, cells.saturating_sub(if taken > 0 { 4 + taken } else { 5 }))
                ))];
                let right = vec![Span::styled(changed, look.style(Ink::Dim))];
                page.lines.push(super::apart(left, right, cells.saturating_sub(1)));
            }
            let said = words::state_of(model, agent, false);
            let words = match (state, words::tool_since(model, agent)) {
                (State::Working, Some(at)) => format!("tool runs for {}", text::age(model.now.0 - at)),
                (State::Working, None) if said.evidence == "says this now" => said.evidence,
                (State::Working, None) => said.evidence.replacen("said", "said this", 1),
                _ => format!("{}, {}", said.state, said.evidence),
            };
            let ink = look.style(if said.old { Ink::Warn } else { Ink::Dim });
            page.lines.push(Line::styled(format!("   {words}"), ink));
        }
        page.lines.push(Line::default());
    }
    if done_count > 0 {
        let count = done_words(model, done_count);
        page.lines.push(Line::styled(format!(" Done  {count} today"), look.style(Ink::Bold)));
        for quest in quests {
            let title = text::clean(quest.request.lines().next().unwrap_or_default()).into_owned();
            let left = vec![Span::styled(" ✓ ", look.style(Ink::Dim)), Span::raw(title)];
            let cost = vec![Span::styled(dollars(quest.spent), look.style(Ink::Dim))];
            page.lines.push(super::apart(left, cost, cells.saturating_sub(1)));
            let words = format!("   Quest complete · {} ago", text::age(model.now.0 - quest.changed.0));
            page.lines.push(Line::styled(words, look.style(Ink::Dim)));
        }
        let unlisted = agents.len().saturating_sub(MAX_DONE);
        for agent in agents.into_iter().take(MAX_DONE) {
            let view = &agent.view;
            let age = text::age(model.now.0 - words::last_said(agent).0);
            let said = view.doing.as_ref().map(|doing| format!("{} · ", text::clean(&doing.line))).unwrap_or_default();
            let cost = dollars(view.spent.cost);
            let name = model.name(view.id);
            let room = cells.saturating_sub(text::width(&name) + text::width(&age) + text::width(&cost) + 10);
            let said =
                if said.is_empty() { said } else { format!("{} · ", text::cut(said.trim_end_matches(" · "), room)) };
            let left = vec![
                mark(agent, page, 1),
                Span::styled("✓ ", look.style(Ink::Dim)),
                Span::raw(name),
                Span::styled(format!("  {said}{age}"), look.style(Ink::Dim)),
            ];
            page.lines.push(super::apart(
                left,
                vec![Span::styled(cost, look.style(Ink::Dim))],
                cells.saturating_sub(1),
            ));
        }
        if unlisted > 0 {
            page.lines.push(Line::styled(format!("   {unlisted} more: ^X t lists all agents"), look.style(Ink::Dim)));
        }
    }
}
