//! What follows: an agent's run is over, a ward has a verdict, a merge is done, a person has answered, a slot is free. Each gives the
//! events that come next, and nothing here looks further than that: the next thing follows when those are true.

use super::{Brief, Caller, Course, Merge, Next, Quest, Step, StepId, StepState, Verdict, Work, going, words};
use super::{Isolation, MAX_CALLERS, MAX_CONTINUATIONS, MAX_FOLLOW_UPS, MAX_MENDINGS, Signal, agent_id};
use crate::agent::{self, Birth, Origin};
use crate::ask::{About, StepTrouble};
use crate::outcome::Cause;
use crate::roles::{Phase, WARD};
use crate::run::{self, RunSpec, RunState, StopWhy};
use crate::{AgentId, Event, MessageKind, QuestId, Refusal, Timestamp, World, history};

/// Something of a quest follows by itself: a slot can be filled, or all is done.
pub(crate) fn serve(world: &World, id: QuestId, now: Timestamp) -> Vec<Event> {
    let Some((quest, charter)) = world.quest(id).zip(world.charter(id)) else { return Vec::new() };
    if quest.is_done() {
        return vec![Event::QuestCompleted { quest: id }];
    }
    let first = quest.queue.get_min().filter(|_| quest.can_begin(charter));
    first.map(|place| begin(world, id, quest, &place.step, now)).unwrap_or_default()
}

/// The next in the queue takes a slot.
fn begin(world: &World, id: QuestId, quest: &Quest, step_id: &StepId, now: Timestamp) -> Vec<Event> {
    let Some(step) = quest.step(step_id) else { return Vec::new() };
    let StepState::Queued(next) = &step.state else { return Vec::new() };
    let number = step.chores + 1;
    let of = (id, step_id.clone());
    match next {
        Next::Ward => vec![Event::WardBegun { quest: of.0, step: of.1, number }],
        Next::Merge => vec![Event::MergeBegun { quest: of.0, step: of.1, number }],
        Next::Begin { role, brief } => hire(world, id, quest, step_id, role, brief, now),
        Next::Resume { agent, role } => match recall(world, *agent, spec(world, id, step_id, step)) {
            Some(events) => {
                let begun = Event::StepBegun { quest: id, step: step_id.clone(), agent: *agent, role: role.clone() };
                [begun].into_iter().chain(events).collect()
            }
            // Somebody killed it meanwhile: another one takes its place.
            None => hire(world, id, quest, step_id, role, &lost_hand(), now),
        },
    }
}

/// A fresh agent for a step.
fn hire(
    world: &World,
    id: QuestId,
    quest: &Quest,
    step_id: &StepId,
    role: &str,
    brief: &Brief,
    now: Timestamp,
) -> Vec<Event> {
    let Some((charter, root)) = world.charter(id).zip(world.root()) else { return Vec::new() };
    let Some((step, line)) = quest.step(step_id).zip(charter.table.role(role)) else { return Vec::new() };
    let agent = agent_id(id, quest.agents);
    let Some(spec) = spec(world, id, step_id, step) else { return Vec::new() };
    let birth = Birth {
        name: Some(format!("{role}-{step_id}").chars().take(agent::MAX_NAME_BYTES).collect()),
        model: spec.model.clone().filter(|model| model.len() <= agent::MAX_NAME_BYTES),
        prompt: Some(words::prompt(id, quest, charter, step_id, step.phase, line, brief)),
        run: Some(Box::new(spec)),
        ..Birth::of(agent)
    };
    // Agents of a quest know what they are told, and nothing of what was said to agent 0.
    let origin = Origin { agent: root, upto: None };
    let begun = Event::StepBegun { quest: id, step: step_id.clone(), agent, role: role.to_owned() };
    let mut events = agent::born(root, origin, &birth, now);
    // After the birth, so that the errand speaks of somebody who exists; before the run, so that the run is known for what it is.
    events.insert(1, begun);
    events
}

/// An agent goes on: a parked run is taken up again, one that a person began is gone along with, otherwise there is a new one.
/// Nothing when it is dead.
fn recall(world: &World, agent: AgentId, spec: Option<RunSpec>) -> Option<Vec<Event>> {
    let run = world.run(agent)?;
    match &run.state {
        RunState::Parked { .. } => Some(vec![Event::RunResumed { of: run.fence(agent).next() }]),
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. } => {
            Some(Vec::new())
        }
        RunState::Ended { .. } => run::request(world, agent, &spec?).ok(),
    }
}

/// How the agents of a step are run.
fn spec(world: &World, id: QuestId, step_id: &StepId, step: &Step) -> Option<RunSpec> {
    let charter = world.charter(id)?;
    Some(RunSpec {
        folder: charter.folder(step_id, step.phase),
        signals: true,
        stays: false,
        retries: super::CRASH_RETRIES,
        ..charter.spec.clone()
    })
}

/// An agent's run is over, or waits: what becomes of its step.
pub(crate) fn follow(world: &World, agent: AgentId) -> Vec<Event> {
    let Some(errand) = world.errand(agent) else { return Vec::new() };
    let (id, step_id) = (errand.quest, &errand.step);
    let Some((quest, run)) = world.quest(id).zip(world.run(agent)) else { return Vec::new() };
    let Some(step) = quest.step(step_id) else { return Vec::new() };
    let (role, signal, recalled) = match &step.state {
        StepState::Running(Work::Agent { role, signal, recalled, .. }) => (role, signal.as_ref(), *recalled),
        // A person has ended what waited.
        StepState::Parked { role, .. } => (role, None, false),
        _ => return Vec::new(),
    };
    let goes_on = Next::Resume { agent, role: role.clone() };
    let asked = |trouble, text: String| asks(id, step_id, step.course.clone(), goes_on.clone(), agent, trouble, text);
    let cause = match run.state {
        RunState::Parked { until, .. } => return vec![Event::StepParked { quest: id, step: step_id.clone(), until }],
        RunState::Ended { cause, .. } => cause,
        RunState::Starting | RunState::Spawned { .. } | RunState::Running { .. } | RunState::Stopping { .. } => {
            return Vec::new();
        }
    };
    match (signal, cause) {
        (Some(signal), _) => heed(world, id, quest, step_id, step, agent, role, signal),
        (None, _) if recalled => vec![queued_on(id, step_id, step.course.clone(), goes_on)],
        // A person had a word with it, which was not about its step.
        (None, _) if !run.spec.signals => vec![queued_on(id, step_id, step.course.clone(), goes_on)],
        // It has forgotten too much to be resumed; one that begins with little knows where the work is.
        (None, Cause::PromptTooLong) if step.course.continuations < MAX_CONTINUATIONS => {
            let course = Course { continuations: step.course.continuations + 1, ..step.course.clone() };
            vec![queued_on(id, step_id, course, Next::Begin { role: role.clone(), brief: lost_hand() })]
        }
        (None, Cause::Crashed | Cause::LostWithMachine | Cause::Completed | Cause::PromptTooLong) => {
            let why = format!("the {role} ({agent}) ended without a signal: {}", ending(world, agent));
            vec![Event::StepFailed { quest: id, step: step_id.clone(), why, then: goes_on }]
        }
        (
            None,
            Cause::UserEnded
            | Cause::Killed
            | Cause::Stuck
            | Cause::OutOfCredit
            | Cause::Unauthorised
            | Cause::RateLimited
            | Cause::Overloaded
            | Cause::OverBudget,
        ) => {
            let text = format!(
                "The {role} ({agent}) of step `{step_id}` ended before it was done: {} Answer `retry`, or something to say to it.",
                ending(world, agent)
            );
            asked(StepTrouble::Ended, text)
        }
    }
}

/// What a signal leads to, now that the agent is gone.
#[expect(clippy::too_many_arguments, reason = "everything about one step, looked up once by the caller")]
fn heed(
    world: &World,
    id: QuestId,
    quest: &Quest,
    step_id: &StepId,
    step: &Step,
    agent: AgentId,
    role: &str,
    signal: &Signal,
) -> Vec<Event> {
    let course = step.course.clone();
    let goes_on = Next::Resume { agent, role: role.to_owned() };
    match signal {
        Signal::Complete { summary } => {
            let rested = rest(world, agent);
            rested.into_iter().chain(done(world, id, quest, step_id, step, agent, role, summary)).collect()
        }
        Signal::PartiallyComplete { progress, continuation_point } if course.continuations < MAX_CONTINUATIONS => {
            let course = Course { continuations: course.continuations + 1, ..course };
            let (progress, continuation_point) = (progress.clone(), continuation_point.clone());
            let brief = Brief::Continue { progress, continuation_point };
            let next = queued_on(id, step_id, course, Next::Begin { role: role.to_owned(), brief });
            rest(world, agent).into_iter().chain([next]).collect()
        }
        Signal::PartiallyComplete { progress, .. } => {
            let text = format!(
                "The {role} of step `{step_id}` has handed its work on {MAX_CONTINUATIONS} times in a row and is still not done. \
                 It says: {progress}\nYour answer is told to it, and it goes on."
            );
            asks(id, step_id, Course { continuations: 0, ..course }, goes_on, agent, StepTrouble::Circle, text)
        }
        Signal::NeedsUserInput { question, context } => {
            let context = if context.is_empty() { String::new() } else { format!("\n\n{context}") };
            let text = format!("{question}{context}");
            asks(id, step_id, course, goes_on, agent, StepTrouble::Input, text)
        }
        Signal::NeedsRoleFollowup { target_role, reason, context, resume } => {
            // A target that waits for this very answer would wait for itself.
            let circles = course.callers.iter().any(|caller| caller.role == *target_role);
            if circles || course.callers.len() >= MAX_CALLERS || course.follow_ups >= MAX_FOLLOW_UPS {
                let text = words::circle(role, target_role, reason, agent);
                let course = Course { follow_ups: 0, ..course };
                return asks(id, step_id, course, goes_on, agent, StepTrouble::Circle, text);
            }
            let mut callers = course.callers.clone();
            callers.push(Caller { agent, role: role.to_owned(), resume: *resume });
            let course = Course { callers, follow_ups: course.follow_ups + 1, ..course };
            let (reason, context) = (reason.clone(), context.clone());
            let brief = Brief::FollowUp { from: role.to_owned(), reason, context };
            vec![queued_on(id, step_id, course, Next::Begin { role: target_role.clone(), brief })]
        }
    }
}

/// A role is done: whoever waits for it goes on, or the step moves on to its next station.
#[expect(clippy::too_many_arguments, reason = "everything about one step, looked up once by the caller")]
fn done(
    world: &World,
    id: QuestId,
    quest: &Quest,
    step_id: &StepId,
    step: &Step,
    agent: AgentId,
    role: &str,
    summary: &str,
) -> Vec<Event> {
    let Some(charter) = world.charter(id) else { return Vec::new() };
    let replanned = step.phase == Phase::Work && role == charter.table.planner;
    if step.dropped {
        return vec![Event::StepDropped { quest: id, step: step_id.clone() }];
    }
    let mut callers = step.course.callers.clone();
    while let Some(caller) = callers.pop() {
        // One that is not to go on is done with what it asked for.
        if !caller.resume || agent::living(world, caller.agent).is_err() {
            continue;
        }
        let plan = quest.plans.get(step_id).filter(|_| replanned);
        let told = history::said(caller.agent, MessageKind::User, words::outcome(role, summary, plan));
        let course = Course { callers, continuations: 0, ..step.course.clone() };
        let next = queued_on(id, step_id, course, Next::Resume { agent: caller.agent, role: caller.role });
        return vec![told, next];
    }
    let course = Course { callers, continuations: 0, ..step.course.clone() };
    if replanned {
        // Its plan may be another now.
        let course = Course { station: 0, mendings: 0, ..course };
        return vec![at_station(world, id, step_id, step, course, summary)];
    }
    if step.phase == Phase::Plan && charter.approve_plan {
        let text = format!(
            "The plan has {} steps: `hatchery quest show {id}` shows them. Answer `yes` to carry it out, or say what to change.",
            quest.plans.len()
        );
        let goes_on = Next::Resume { agent, role: role.to_owned() };
        return asks(id, step_id, course, goes_on, agent, StepTrouble::Approval, text);
    }
    // A mending is followed by the ward that asked for it; everything else by the next station.
    let mended = course.mendings > 0 && is_ward(charter.table.path(step.phase), course.station);
    let station = course.station + u32::from(!mended);
    vec![at_station(world, id, step_id, step, Course { station, ..course }, summary)]
}

/// What is to be done at a station. A ward that nobody named is passed by; after the last station the work is merged.
fn at_station(world: &World, id: QuestId, step_id: &StepId, step: &Step, course: Course, summary: &str) -> Event {
    let path = world.charter(id).map(|charter| charter.table.path(step.phase)).unwrap_or_default();
    let warded = world.ward(id).is_some();
    let mut course = course;
    while !warded && is_ward(path, course.station) {
        course.station += 1;
    }
    match path.get(course.station as usize) {
        Some(station) if station == WARD => queued_on(id, step_id, course, Next::Ward),
        Some(role) => {
            let next = Next::Begin { role: role.clone(), brief: Brief::Begin };
            queued_on(id, step_id, course, next)
        }
        None if is_merged(world, id, step.phase) => queued_on(id, step_id, course, Next::Merge),
        None => Event::StepCompleted { quest: id, step: step_id.clone(), summary: summary.to_owned() },
    }
}

fn is_ward(path: &[String], station: u32) -> bool {
    path.get(station as usize).is_some_and(|station| station == WARD)
}

/// Whether a step of this phase has a branch of its own.
fn is_merged(world: &World, id: QuestId, phase: Phase) -> bool {
    let isolated = |charter: &super::Charter| charter.isolation != Isolation::None;
    phase == Phase::Work && world.charter(id).is_some_and(isolated)
}

/// A ward has a verdict.
pub(crate) fn warded(
    world: &World,
    id: QuestId,
    step_id: &StepId,
    number: u32,
    verdict: &Verdict,
    artifact: &str,
) -> Result<Vec<Event>, Refusal> {
    let (step, last) = at_chore(world, id, step_id, &Work::Ward(number))?;
    let charter = world.charter(id).ok_or(Refusal::UnknownQuest(id))?;
    let (verdict, artifact) = (verdict.clone(), artifact.to_owned());
    let course = step.course.clone();
    let then = match &verdict {
        Verdict::Green => {
            let course = Course { station: course.station + 1, mendings: 0, ..course };
            vec![at_station(world, id, step_id, step, course, &last_words(step))]
        }
        Verdict::Red { findings } if course.mendings < MAX_MENDINGS => {
            let brief = Brief::Mend { findings: findings.clone(), artifact: artifact.clone() };
            let course = Course { mendings: course.mendings + 1, ..course };
            vec![queued_on(id, step_id, course, Next::Begin { role: charter.table.mender.clone(), brief })]
        }
        Verdict::Red { findings } => {
            let first = findings.first().map(|line| format!(": {line}")).unwrap_or_default();
            let why = format!("the ward is still red after {MAX_MENDINGS} mendings{first}");
            // Another try begins with another mending.
            let brief = Brief::Mend { findings: findings.clone(), artifact: artifact.clone() };
            let then = Next::Begin { role: charter.table.mender.clone(), brief };
            vec![Event::StepFailed { quest: id, step: step_id.clone(), why, then }]
        }
        Verdict::Broken { why } => {
            let text = format!(
                "The ward of step `{step_id}` could not be run: {why} Its output is in `{artifact}`. Answer `retry`, or `ward: COMMAND` \
                 for another ward."
            );
            asks(id, step_id, course, Next::Ward, last, StepTrouble::Ward, text)
        }
    };
    let ended = Event::WardEnded { quest: id, step: step_id.clone(), number, verdict, artifact };
    Ok([ended].into_iter().chain(then).collect())
}

/// An attempt to merge a step is over.
pub(crate) fn merged(
    world: &World,
    id: QuestId,
    step_id: &StepId,
    number: u32,
    merge: &Merge,
) -> Result<Vec<Event>, Refusal> {
    let (step, last) = at_chore(world, id, step_id, &Work::Merge(number))?;
    let charter = world.charter(id).ok_or(Refusal::UnknownQuest(id))?;
    let course = step.course.clone();
    let mend = |files: &Vec<String>| Next::Begin {
        role: charter.table.mender.clone(),
        brief: Brief::Reconcile { files: files.clone() },
    };
    let then = match merge {
        Merge::Merged => {
            vec![Event::StepCompleted { quest: id, step: step_id.clone(), summary: last_words(step) }]
        }
        Merge::Conflict { files } if course.conflicts < MAX_MENDINGS => {
            // What was reconciled has to pass the last ward again.
            let path = charter.table.path(step.phase);
            let ward = path.iter().rposition(|station| station == WARD).unwrap_or(path.len());
            let station = u32::try_from(ward).unwrap_or(u32::MAX);
            let course = Course { station, mendings: 1, conflicts: course.conflicts + 1, ..course };
            vec![queued_on(id, step_id, course, mend(files))]
        }
        Merge::Conflict { files } => {
            let why =
                format!("it still conflicts with other steps after {MAX_MENDINGS} mendings: {}", files.join(", "));
            vec![Event::StepFailed { quest: id, step: step_id.clone(), why, then: mend(files) }]
        }
        Merge::Broken { why } => {
            let text = format!("Step `{step_id}` could not be merged: {why} Answer `retry` when that is mended.");
            asks(id, step_id, course, Next::Merge, last, StepTrouble::Merge, text)
        }
    };
    let ended = Event::MergeEnded { quest: id, step: step_id.clone(), number, merge: merge.clone() };
    Ok([ended].into_iter().chain(then).collect())
}

/// A person has answered a question about a step.
pub(crate) fn answered(
    world: &World,
    id: QuestId,
    agent: AgentId,
    trouble: StepTrouble,
    answer: &str,
) -> Result<Vec<Event>, Option<Refusal>> {
    let quest = going(world, id).map_err(Some)?;
    let errand = world.errand(agent).ok_or(Some(Refusal::NoErrand(agent)))?;
    let step = quest.step(&errand.step).ok_or(None)?;
    let StepState::Asking(next) = &step.state else { return Err(None) };
    let course = Course { follow_ups: 0, ..step.course.clone() };
    let then = |next: Next| queued_on(id, &errand.step, course.clone(), next);
    let told = |text: String| match agent::living(world, agent) {
        Ok(_) => history::add(world, agent, MessageKind::User, &text).map_err(Some),
        Err(_) => Ok(Vec::new()),
    };
    let with = |said: Vec<Event>, next: Event| Ok(said.into_iter().chain([next]).collect());
    match (trouble, answer.trim()) {
        (StepTrouble::Input | StepTrouble::Circle, _) => with(told(words::answer(answer))?, then(next.clone())),
        (StepTrouble::Ended, "retry") => Ok(vec![then(next.clone())]),
        (StepTrouble::Ended, _) => with(told(words::answer(answer))?, then(next.clone())),
        (StepTrouble::Approval, "yes") => {
            let course = Course { station: course.station + 1, ..course };
            let summary = last_words(step);
            Ok(rest(world, agent)
                .into_iter()
                .chain([at_station(world, id, &errand.step, step, course, &summary)])
                .collect())
        }
        (StepTrouble::Approval, _) => with(told(words::answer(answer))?, then(next.clone())),
        (StepTrouble::Ward | StepTrouble::Merge, "retry") => Ok(vec![then(next.clone())]),
        (StepTrouble::Ward, other) => {
            let command = other.strip_prefix("ward:").map(str::trim).ok_or(None)?;
            super::check_ward(command).map_err(Some)?;
            Ok(vec![Event::WardChanged { quest: id, command: command.to_owned() }, then(next.clone())])
        }
        (StepTrouble::Merge, _) => Err(None),
    }
}

/// A failed step is tried again.
pub(crate) fn retry(world: &World, id: QuestId, step_id: &StepId) -> Result<Vec<Event>, Refusal> {
    let quest = going(world, id)?;
    let unknown = || Refusal::UnknownStep { quest: id, step: step_id.clone() };
    let step = quest.step(step_id).ok_or_else(unknown)?;
    match &step.state {
        StepState::Failed { then, .. } => {
            let course = Course { mendings: u32::from(step.course.mendings > 0), ..step.course.clone() };
            Ok(vec![queued_on(id, step_id, course, then.clone())])
        }
        StepState::Pending
        | StepState::Queued(_)
        | StepState::Running(_)
        | StepState::Asking(_)
        | StepState::Parked { .. }
        | StepState::Blocked
        | StepState::Complete { .. } => {
            Err(Refusal::StepNotFailed { step: step_id.clone(), status: step.status().word() })
        }
    }
}

/// Its time has come: a parked agent can go on, or one that has signalled has not left.
pub(crate) fn due(world: &World, agent: AgentId) -> Vec<Event> {
    match queue_parked(world, agent) {
        Some(queued) => vec![queued],
        None => run::stop(world, agent, &StopWhy::Signalled).unwrap_or_default(),
    }
}

/// The event by which a parked agent of a quest waits for a slot, instead of going on at once.
pub(crate) fn queue_parked(world: &World, agent: AgentId) -> Option<Event> {
    let errand = world.errand(agent)?;
    let step = world.quest(errand.quest)?.step(&errand.step)?;
    match &step.state {
        StepState::Parked { agent: parked, role, .. } if *parked == agent => {
            let next = Next::Resume { agent, role: role.clone() };
            Some(queued_on(errand.quest, &errand.step, step.course.clone(), next))
        }
        _ => None,
    }
}

/// The steps of a quest whose agents wait for money, and what they do when there is some.
pub(super) fn broke<'a>(world: &'a World, quest: &'a Quest) -> impl Iterator<Item = (&'a StepId, Next)> {
    quest.steps.iter().filter_map(|(id, step)| match &step.state {
        StepState::Parked { agent, role, .. } if world.run(*agent).is_some_and(run::Run::is_broke) => {
            Some((id, Next::Resume { agent: *agent, role: role.clone() }))
        }
        _ => None,
    })
}

pub(super) fn queued(world: &World, id: QuestId, step_id: &StepId, next: Next) -> Event {
    let course = world.quest(id).and_then(|quest| quest.step(step_id)).map(|step| step.course.clone());
    queued_on(id, step_id, course.unwrap_or_default(), next)
}

fn queued_on(id: QuestId, step_id: &StepId, course: Course, next: Next) -> Event {
    Event::StepQueued { quest: id, step: step_id.clone(), next, course }
}

/// The step waits for a person, who is asked.
fn asks(
    id: QuestId,
    step_id: &StepId,
    course: Course,
    then: Next,
    agent: AgentId,
    trouble: StepTrouble,
    text: String,
) -> Vec<Event> {
    let waits = Event::StepWaits { quest: id, step: step_id.clone(), course, then };
    let about = About::Step { quest: id, trouble };
    vec![waits, Event::QuestionAsked { agent, about, text }]
}

/// The step, if it is at this very chore, and who worked on it last.
fn at_chore<'a>(world: &'a World, id: QuestId, step_id: &StepId, chore: &Work) -> Result<(&'a Step, AgentId), Refusal> {
    let quest = going(world, id)?;
    let unknown = || Refusal::UnknownStep { quest: id, step: step_id.clone() };
    let step = quest.step(step_id).ok_or_else(unknown)?;
    let last = step.hands.last().map(|hand| hand.agent);
    match &step.state {
        StepState::Running(now) if now == chore => last.map(|last| (step, last)).ok_or_else(unknown),
        _ => Err(Refusal::StaleChore { step: step_id.clone() }),
    }
}

/// An agent that has done its work sleeps until it is needed.
fn rest(world: &World, agent: AgentId) -> Option<Event> {
    let alive = |it: &agent::Agent| matches!(it.life, agent::Life::Alive { .. });
    world.agent(agent).is_some_and(alive).then_some(Event::AgentSlept { agent })
}

/// What is known of how the last run of an agent ended.
fn ending(world: &World, agent: AgentId) -> String {
    let last = world.past_runs(agent).last();
    last.map(|(_, past)| past.detail.clone()).unwrap_or_default()
}

fn last_words(step: &Step) -> String {
    step.summary.clone()
}

fn lost_hand() -> Brief {
    Brief::Continue {
        progress: "unknown: the agent before you is gone; look at what is in the folder".into(),
        continuation_point: "where its work ends".into(),
    }
}
