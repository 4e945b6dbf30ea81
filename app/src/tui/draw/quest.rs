//! A quest: its phases, who is in which slot, its steps, and the stations of the chosen step.

use super::put;
use crate::quest_document::{QuestDocument, QuestWord, StepDocument};
use crate::tui::look::{Ink, RING};
use crate::tui::model::{Focus, Model};
use crate::tui::panel::{QuestPanel, Side};
use crate::tui::roster::dollars;
use crate::tui::text;
use hatchery_core::quest::{Signal, StepId, StepStatus, Verdict};
use hatchery_core::roles::{Phase, titled};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// How many findings of a ward are shown.
const SHOWN_FINDINGS: usize = 5;

pub fn draw(model: &Model, panel: &QuestPanel, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let look = model.look;
    let cells = usize::from(area.width);
    let Some(quest) = model.roster.documents.get(&panel.quest) else {
        put(buffer, area.x, area.y, area.width, &Line::styled(" Reading the quest …", look.style(Ink::Dim)));
        return None;
    };
    let (lines, chosen) = lines(model, panel, quest, cells);
    let height = usize::from(area.height);
    let top = if chosen >= height { chosen + 1 - height } else { 0 }
        .max(panel.scroll.min(lines.len().saturating_sub(height)));
    for (at, line) in lines.iter().skip(top).take(height).enumerate() {
        put(buffer, area.x, area.y + u16::try_from(at).unwrap_or(0), area.width, line);
    }
    (model.focus == Focus::Side && chosen >= top)
        .then(|| Position { x: area.x, y: area.y + u16::try_from(chosen - top).unwrap_or(0) })
}

/// How far the panel can be scrolled.
pub fn end(model: &Model) -> usize {
    let (Some(Side::Quest(panel)), Some(area)) = (&model.side, super::areas(model).side) else { return 0 };
    let Some(quest) = model.roster.documents.get(&panel.quest) else { return 0 };
    let (lines, _) = lines(model, panel, quest, usize::from(area.width));
    lines.len().saturating_sub(usize::from(area.height))
}

/// All lines, and which one is the chosen step.
fn lines(model: &Model, panel: &QuestPanel, quest: &QuestDocument, cells: usize) -> (Vec<Line<'static>>, usize) {
    let (mut lines, chosen) = head(model, panel, quest, cells);
    if let Some(step) = quest.steps.get(panel.step) {
        stations(model, panel, quest, step, cells, &mut lines);
    }
    (lines, chosen)
}

fn head(model: &Model, panel: &QuestPanel, quest: &QuestDocument, cells: usize) -> (Vec<Line<'static>>, usize) {
    let look = model.look;
    let dim = look.style(Ink::Dim);
    let title = text::clean(quest.request.lines().next().unwrap_or_default()).into_owned();
    let hint = match quest.state {
        QuestWord::Open => "p pauses",
        QuestWord::Paused => "p resumes",
        QuestWord::Complete => "complete",
        QuestWord::Abandoned => "abandoned",
    };
    let mut lines = vec![super::apart(
        vec![
            Span::raw(" "),
            Span::styled(text::cut(&title, cells.saturating_sub(hint.len() + 4)), look.style(Ink::Bold)),
        ],
        vec![Span::styled(hint, dim)],
        cells.saturating_sub(1),
    )];
    let planned = quest.steps.iter().filter(|step| step.phase == Phase::Work).count();
    let complete =
        quest.steps.iter().filter(|step| step.phase == Phase::Work && step.status == StepStatus::Complete).count();
    let of = quest.budget.map(|budget| format!(" of {}", dollars(budget))).unwrap_or_default();
    let since = text::clock(quest.created, model.offset_s);
    lines.push(Line::styled(
        format!(" {complete} of {planned} steps complete · since {since} · {}{of}", dollars(quest.spent.cost)),
        dim,
    ));
    let ward = quest.ward.as_ref().map_or_else(|| "no ward".to_owned(), |ward| format!("ward {}", ward.command));
    let branch = quest.branch.as_ref().map(|branch| format!(" · {branch}")).unwrap_or_default();
    lines.push(Line::styled(text::cut(&format!(" {ward}{branch}"), cells.saturating_sub(1)), dim));
    lines.push(Line::default());
    let mut phases = vec![Span::raw(" ")];
    for (phase, name) in
        [(Phase::Requirements, "Requirements"), (Phase::Plan, "Plan"), (Phase::Work, "Work"), (Phase::Review, "Review")]
    {
        let steps: Vec<&StepDocument> = quest.shown_steps().filter(|step| step.phase == phase).collect();
        // The work has no steps before they are planned. Another phase without steps is left out by the roles of the quest.
        if steps.is_empty() && phase != Phase::Work {
            continue;
        }
        let all = !steps.is_empty() && steps.iter().all(|step| step.status == StepStatus::Complete);
        let begun = steps
            .iter()
            .any(|step| !matches!(step.status, StepStatus::Pending | StepStatus::Queued | StepStatus::Blocked));
        let (glyph, ink) = match (all, begun) {
            (true, _) => ("✓", Ink::Dim),
            (false, true) => ("◶", Ink::Good),
            (false, false) => ("◌", Ink::Dim),
        };
        phases.push(Span::styled(glyph, look.style(ink)));
        phases.push(Span::raw(format!(" {name}   ")));
    }
    lines.push(Line::from(phases));
    let busy: Vec<&StepDocument> = quest.steps.iter().filter(|step| takes_slot(step)).collect();
    let begin = format!(" {} of {} slots  ", busy.len(), quest.slots);
    let hang = text::width(&begin);
    for (at, step) in busy.iter().enumerate() {
        // A ward or a merge has no agent.
        let words = match role(step) {
            Some(role) => format!("{} on {}", titled(&role), step.id),
            None => format!("{}: {}", step.id, step.doing.as_deref().unwrap_or("it is at work")),
        };
        let before = if at == 0 { begin.clone() } else { " ".repeat(hang) };
        lines.push(Line::styled(text::cut(&format!("{before}{} {words}", at + 1), cells.saturating_sub(1)), dim));
    }
    if busy.is_empty() {
        lines.push(Line::styled(begin, dim));
    }
    lines.push(Line::default());
    let listed = listed(quest);
    let names = listed.iter().map(|at| text::width(&quest.steps[*at].id.to_string())).max().unwrap_or(0).min(20);
    let mut chosen = 0;
    for (at, step) in listed.iter().map(|at| (*at, &quest.steps[*at])) {
        let is_chosen = at == panel.step;
        if is_chosen {
            chosen = lines.len();
        }
        let mark = if is_chosen { Span::styled("❯", look.style(Ink::Accent)) } else { Span::raw(" ") };
        let (glyph, ink) = glyph(model, step);
        let name = text::padded(&step.id.to_string(), names);
        let slot =
            busy.iter().position(|other| other.id == step.id).map_or_else(String::new, |at| (at + 1).to_string());
        let cost = if step.spent.cost.nanodollars > 0 { dollars(step.spent.cost) } else { String::new() };
        let right = format!("{cost:>6} {slot:1}");
        let room = cells.saturating_sub(names + 6 + text::width(&right) + 2);
        let forms = says(model, quest, step);
        let fits = |(words, age): &&(String, String)| text::width(words) + text::width(age) <= room;
        let Some((words, age)) = forms.iter().find(fits).or(forms.last()) else { continue };
        let room = room.saturating_sub(text::width(age));
        let left = vec![
            mark,
            Span::raw(" "),
            Span::styled(glyph, look.style(ink)),
            Span::styled(format!(" {name}  "), look.style(if is_chosen { Ink::Bold } else { Ink::Plain })),
            Span::styled(format!("{}{age}", text::cut_at_word(words, room)), dim),
        ];
        lines.push(super::apart(left, vec![Span::styled(right, dim)], cells.saturating_sub(1)));
    }
    lines.push(Line::default());
    (lines, chosen)
}

/// The slot of a step, from 1.
pub fn slot(quest: &QuestDocument, step: &str) -> Option<usize> {
    let busy = quest.steps.iter().filter(|it| takes_slot(it));
    busy.into_iter().position(|it| it.id.to_string() == step).map(|at| at + 1)
}

/// The steps that are listed, by their places in the quest: the work, and of the other phases what is under way or in trouble.
pub fn listed(quest: &QuestDocument) -> Vec<usize> {
    let quiet = |status: StepStatus| matches!(status, StepStatus::Complete | StepStatus::Pending | StepStatus::Queued);
    let is_listed = |step: &StepDocument| step.phase == Phase::Work || !quiet(step.status);
    quest.steps.iter().enumerate().filter(|(_, step)| is_listed(step)).map(|(at, _)| at).collect()
}

fn takes_slot(step: &StepDocument) -> bool {
    matches!(step.status, StepStatus::Running | StepStatus::WaitingForRole) && step.phase != Phase::Requirements
}

fn role(step: &StepDocument) -> Option<String> {
    let agent = step.agent?;
    step.agents.iter().find(|it| it.agent == agent).map(|it| it.role.clone())
}

fn glyph(model: &Model, step: &StepDocument) -> (String, Ink) {
    let ring = step.agent.and_then(|agent| model.roster.agents.get(&agent)).map_or(2, |agent| agent.ring);
    let (glyph, ink) = match step.status {
        StepStatus::Complete => ("✓", Ink::Dim),
        StepStatus::Running | StepStatus::WaitingForRole => (RING[ring % 4], Ink::Good),
        StepStatus::WaitingForHuman => ("?", Ink::AccentFilled),
        StepStatus::Failed => ("⊗", Ink::Bad),
        StepStatus::Parked => ("⊜", Ink::Warn),
        StepStatus::Blocked => ("⊘", Ink::Dim),
        StepStatus::Queued => ("○", Ink::Dim),
        StepStatus::Pending => ("◌", Ink::Dim),
    };
    (glyph.to_owned(), ink)
}

/// What is said of a step, and since when: the best form first, then those for less room.
fn says(model: &Model, quest: &QuestDocument, step: &StepDocument) -> Vec<(String, String)> {
    let age = text::age(model.now.0 - step.since.0);
    let age = match step.status {
        StepStatus::Complete => format!(" · {age} ago"),
        StepStatus::Pending | StepStatus::Blocked => String::new(),
        _ => format!(" · {age}"),
    };
    // Steps that it depends on, with one of these states.
    let before = |is_it: fn(StepStatus) -> bool| {
        let is_one = |id: &&StepId| quest.steps.iter().any(|it| it.id == **id && is_it(it.status));
        let names: Vec<String> = step.depends_on.iter().filter(is_one).map(ToString::to_string).collect();
        names.join(", ")
    };
    let forms = match step.status {
        StepStatus::Complete => vec![(step.name.clone(), age)],
        StepStatus::Pending => match before(|status| status != StepStatus::Complete) {
            open if open.is_empty() => vec![(step.name.clone(), age)],
            open => vec![(format!("after {open}"), age)],
        },
        StepStatus::Blocked => {
            let by = before(|status| matches!(status, StepStatus::Failed | StepStatus::Blocked));
            vec![(format!("blocked by {by}"), age)]
        }
        StepStatus::Running | StepStatus::WaitingForRole => at_work(model, step, age),
        StepStatus::WaitingForHuman => {
            let asked = model.roster.questions.iter().find(|question| Some(question.id) == step.question);
            let words = asked.and_then(|question| question.text.lines().next()).unwrap_or_default();
            vec![(format!("asks: {words}"), age)]
        }
        StepStatus::Failed | StepStatus::Parked | StepStatus::Queued => {
            let noted = || step.history.last().map(|note| note.what.clone());
            vec![(step.doing.clone().or_else(noted).unwrap_or_default(), age)]
        }
    };
    forms.into_iter().map(|(words, age)| (text::clean(&words).into_owned(), age)).collect()
}

/// Who is at work on a step, with the duty of the role.
fn at_work(model: &Model, step: &StepDocument, age: String) -> Vec<(String, String)> {
    let who = role(step).map_or_else(|| step.doing.clone().unwrap_or_default(), |role| titled(&role));
    let red = matches!(step.wards.last().and_then(|ward| ward.verdict.as_ref()), Some(Verdict::Red { .. }));
    let heard = step.agent.and_then(|agent| model.roster.agents.get(&agent)).map(|agent| agent.heard);
    match (step.callers.last(), heard) {
        (Some(caller), _) => {
            let short = format!("{who} ‹ {}", caller.role);
            vec![
                (format!("{who} ‹ {}", titled(&caller.role)), age.clone()),
                (short.clone(), age),
                (short, String::new()),
            ]
        }
        (None, _) if red => vec![(format!("{who}, ward is red"), age), (format!("{who}, red"), String::new())],
        (None, Some(heard)) => {
            let heard = text::age(model.now.0 - heard.0);
            vec![(who.clone(), format!(", said this {heard} ago")), (who, format!(" · {heard}"))]
        }
        (None, None) => vec![(who, age)],
    }
}

fn stations(
    model: &Model,
    panel: &QuestPanel,
    quest: &QuestDocument,
    step: &StepDocument,
    cells: usize,
    lines: &mut Vec<Line<'static>>,
) {
    let look = model.look;
    let dim = look.style(Ink::Dim);
    let slot = quest.steps.iter().filter(|it| takes_slot(it)).position(|it| it.id == step.id);
    let slot = slot.map_or_else(String::new, |at| format!("slot {}", at + 1));
    lines.push(super::apart(
        vec![
            Span::raw(" "),
            Span::styled(step.id.to_string(), look.style(Ink::Bold)),
            Span::raw(format!("  {}", text::clean(&step.name))),
        ],
        vec![Span::styled(slot, dim)],
        cells.saturating_sub(1),
    ));
    let agent = step.agent.or_else(|| step.agents.last().map(|it| it.agent));
    let changed = agent.and_then(|agent| model.changes.get(&agent)).and_then(|it| it.lines).filter(|it| it.2 > 0);
    let changed = changed.map(|(added, removed, files)| {
        format!(" · +{added} −{removed} in {}", crate::tui::words::counted(files, "file"))
    });
    let tokens = match step.spent.tokens() {
        0 => String::new(),
        tokens => format!(" · {}k tokens", (tokens / 1_000).max(1)),
    };
    let words = format!(" {}{tokens}{}", dollars(step.spent.cost), changed.unwrap_or_default());
    lines.push(Line::styled(words, dim));
    // Signals and wards in the order in which they happened.
    let mut events: Vec<(i64, Line<'static>)> = Vec::new();
    for given in &step.signals {
        let (glyph, words) = match &given.signal {
            Signal::Complete { summary } => ("✓", summary.clone()),
            Signal::PartiallyComplete { progress, .. } => ("◌", format!("left off: {progress}")),
            Signal::NeedsUserInput { question, .. } => ("?", question.clone()),
            Signal::NeedsRoleFollowup { .. } => ("◌", "asked another role first".to_owned()),
        };
        let role = titled(&given.role);
        let words = text::clean(words.lines().next().unwrap_or_default()).into_owned();
        let at = text::clock(given.at, model.offset_s);
        // What does not fit beside the role stands below it.
        let beside = text::width(&role) + text::width(&words) + text::width(&at) + 7 <= cells;
        let mut left = vec![Span::styled(format!(" {glyph} "), dim), Span::raw(role)];
        left.extend(beside.then(|| Span::raw(format!("  {words}"))));
        events.push((given.at.0, super::apart(left, vec![Span::styled(at, dim)], cells.saturating_sub(1))));
        if !beside {
            let rows = text::wrap(&words, cells.saturating_sub(7));
            events.extend(rows.into_iter().map(|row| (given.at.0, Line::from(format!("     {row}")))));
        }
        if let Signal::NeedsRoleFollowup { target_role, reason, .. } = &given.signal {
            let below = |words: String, ink: Ink| {
                let words = text::cut(&format!("     {}", text::clean(&words)), cells.saturating_sub(1));
                (given.at.0, Line::styled(words, look.style(ink)))
            };
            events.push(below(format!("○ \"{reason}\""), Ink::Dim));
            let open = step.callers.iter().find(|caller| caller.role == given.role);
            if let Some(caller) = open {
                let (ring, _) = self::glyph(model, step);
                let age = text::age(model.now.0 - given.at.0);
                events.push(below(format!("{ring} {} acts on it, for {age}", titled(target_role)), Ink::Plain));
                if caller.resume {
                    events.push(below(format!("◌ then the {} goes on", titled(&given.role)), Ink::Dim));
                }
            }
        }
    }
    for ward in &step.wards {
        let lasted = ward.ended.map(|ended| text::lasted(ended.0 - ward.started.0)).unwrap_or_default();
        let (words, ink, details) = match &ward.verdict {
            Some(Verdict::Green) => ("✓ ward green".to_owned(), Ink::Good, Vec::new()),
            Some(Verdict::Red { findings }) => {
                let count = crate::tui::words::counted(findings.len(), "finding");
                (format!("⊗ ward red, {count}"), Ink::Bad, findings.clone())
            }
            Some(Verdict::Broken { why }) => ("⊗ ward broken".to_owned(), Ink::Bad, vec![why.clone()]),
            None => ("◶ the ward runs".to_owned(), Ink::Good, Vec::new()),
            Some(Verdict::Conflict { files }) => ("⊗ conflict with other steps".to_owned(), Ink::Bad, files.clone()),
        };
        let left = vec![Span::raw(" "), Span::styled(words, look.style(ink))];
        let head = super::apart(left, vec![Span::styled(lasted, dim)], cells.saturating_sub(1));
        events.push((ward.started.0, head));
        let shown = details.iter().take(SHOWN_FINDINGS);
        let rows = shown.flat_map(|it| text::wrap(&text::clean(it), cells.saturating_sub(7)));
        events.extend(rows.map(|row| (ward.started.0, Line::from(format!("     {row}")))));
    }
    events.sort_by_key(|(at, _)| *at);
    lines.extend(events.into_iter().map(|(_, line)| line));
    if takes_slot(step) && step.phase == Phase::Work && !step.callers.is_empty() {
        let merges = if quest.branch.is_some() { ", then merge" } else { "" };
        lines.push(Line::styled(format!(" ◌ ward{merges}"), dim));
    } else if let Some(doing) = step.doing.as_ref().filter(|_| step.status != StepStatus::Complete) {
        let (glyph, ink) = glyph(model, step);
        lines.push(Line::from(vec![
            Span::styled(format!(" {glyph} "), look.style(ink)),
            Span::raw(text::cut(&text::clean(doing), cells.saturating_sub(4))),
        ]));
    }
    if let Some((title, output)) = &panel.ward {
        lines.push(Line::default());
        lines.push(Line::styled(format!(" {title}"), look.style(Ink::Bold)));
        for row in output {
            lines.push(Line::styled(text::cut(&format!("   {}", text::clean(row)), cells.saturating_sub(1)), dim));
        }
    }
}
