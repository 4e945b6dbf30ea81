//! Decides commands. A command in a world leads to events or to a refusal; `settle` then adds the events that are due, until there are
//! none. The decisions about a noun are in the noun's module; this module only calls them.

use crate::agent::{self, Birth, Lifecycle, Origin};
use crate::event::{AgentEvent, QuestionEvent, SessionEvent};
use crate::run::{self, StopWhy};
use crate::session::{self, EndReason};
use crate::status::kept;
use crate::world::Due;
use crate::{AgentId, Command, Event, MessageKind, Record, Refusal, Stream, Timestamp, World, history, mail};
use crate::{ask, budget, permission, quest, request, seat};
use std::collections::BTreeSet;

/// Decides, applies and settles. This is the only way to advance a world. A refusal leaves the world unchanged.
pub fn step(world: &mut World, command: &Command, now: Timestamp) -> Result<Vec<Record>, Refusal> {
    let mut events = decide(world, command, now)?;
    let mut records = Vec::with_capacity(events.len());
    loop {
        records.extend(events.into_iter().map(|event| world.record(event, now)));
        events = settle(world, now);
        if events.is_empty() {
            return Ok(records);
        }
    }
}

/// The events that a command leads to in this world, or a refusal.
pub fn decide(world: &World, command: &Command, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    match command {
        Command::StartSession { session, label, idle_ms } => {
            session::start(world, *session, label.as_deref(), *idle_ms)
        }
        Command::EndSession { session, reason } => session::end(world, *session, reason),
        Command::CloseSession { session } => session::close(world, *session),
        Command::FoundRegistry { agent, name } => agent::found(world, *agent, name.as_deref()),
        Command::Fork { parent, at, birth } => agent::fork(world, *parent, *at, birth, now),
        Command::RenameAgent { agent, name } => {
            agent::check_name(name.as_deref())?;
            agent::living(world, *agent)?;
            Ok(vec![Event::Agent { agent: *agent, what: AgentEvent::Renamed { name: name.clone() } }])
        }
        Command::WakeAgent { agent, session } => {
            if let Some(session) = session {
                session::open(world, *session)?;
            }
            match agent::living(world, *agent)?.lifecycle {
                Lifecycle::Sleeping => {
                    Ok(vec![Event::Agent { agent: *agent, what: AgentEvent::Woken { session: *session } }])
                }
                Lifecycle::Hatching { .. }
                | Lifecycle::Alive { .. }
                | Lifecycle::Expired { .. }
                | Lifecycle::Dead { .. } => Err(Refusal::AgentAwake(*agent)),
            }
        }
        Command::Kill { agent, cascade, by, remark } => agent::kill(world, *agent, *cascade, *by, remark.as_deref()),
        Command::AddMessage { agent, kind, content } => {
            history::add(world, *agent, *kind, content).map(|said| hatched(world, *agent, *kind, said))
        }
        Command::Rewind { agent, to } => history::rewind(world, *agent, to),
        Command::ImportHistory { items } => history::import(world, items, now),
        Command::SendMail { from, to, body } => mail::send(world, *from, *to, body),
        Command::TakeMail { to, from } => mail::take(world, *to, *from),
        Command::ReadMail { to, mail } => mail::read(world, *to, *mail),
        Command::AdoptHarnessSession { agent, harness_session, name } => {
            run::adopt(world, *agent, harness_session, name.as_deref())
        }
        Command::StartRun { agent, spec } => run::request(world, *agent, spec),
        Command::Say { agent, text, spec } => run::say(world, *agent, text, spec.as_ref()),
        Command::ReportWaiting { of } => run::waits(world, *of),
        Command::ReportSpawn { of, process, session, copy_of, capabilities } => {
            run::spawned(world, *of, process, session.as_deref(), copy_of.as_deref(), *capabilities)
        }
        Command::TakeOutput { of, from, upto, outputs } => run::take_output(world, *of, *from, *upto, outputs, now),
        Command::TakeCall { of, number, ask } => run::take_call(world, *of, *number, ask, now),
        Command::ReportExit { of, exit, evidence } => run::exited(world, *of, *exit, evidence.as_deref(), now),
        Command::ReportUnreachable { of } => run::unreachable(world, *of),
        Command::AnswerQuestion { question, answer } => ask::answer(world, *question, answer, now),
        Command::RemovePermissionRule { rule } => permission::remove_rule(world, *rule),
        Command::SetBudget { agent, limit } => budget::set(world, *agent, *limit, now),
        Command::InterruptRun { agent } => run::interrupt(world, *agent),
        Command::StopRun { agent } => run::stop(world, *agent, &StopWhy::User),
        Command::CreateQuest { quest, quest_spec, budget, start } => {
            quest::create(world, *quest, quest_spec, *budget, start)
        }
        Command::PauseQuest { quest } => quest::pause(world, *quest),
        Command::ResumeQuest { quest } => quest::resume(world, *quest),
        Command::AbandonQuest { quest } => quest::abandon(world, *quest),
        Command::SetQuestBudget { quest, limit } => quest::set_budget(world, *quest, *limit),
        Command::SetWard { quest, command, limit_ms } => quest::set_ward(world, *quest, command.as_deref(), *limit_ms),
        Command::RetryStep { quest, step, fresh } => quest::retry(world, *quest, step, *fresh),
        Command::SetRequirements { agent, requirements } => quest::require(world, *agent, requirements),
        Command::PlanSteps { agent, steps } => quest::hand_in(world, *agent, steps),
        Command::GiveSignal { agent, step, signal } => quest::give(world, *agent, step, signal),
        Command::ReportWard { quest, step, number, verdict, artifact, restored } => {
            quest::warded(world, *quest, step, *number, verdict, artifact, restored)
        }
        Command::ReportMerge { quest, step, number, merge, left_out } => {
            quest::merged(world, *quest, step, *number, merge, left_out)
        }
        Command::OpenSeats { session, opened, lead } => seat::open(world, opened, *session, lead.as_deref()),
        Command::SummonSeats { eggs, spec, message, hatch_ms } => {
            seat::summon(world, eggs, spec, message, *hatch_ms, now)
        }
        Command::WakeSeats { seats, spec, messages, hatch_ms } => {
            seat::rise(world, seats, spec, messages, *hatch_ms, now)
        }
        Command::RegisterSeat { agent, position, identity } => seat::register(world, *agent, *position, identity, now),
        Command::AddressSeat { to, text, speaker, lead, no_inbox } => {
            seat::address(world, *to, text, speaker, lead, *no_inbox)
        }
        Command::RelayMessage { to, message, text } => seat::relay(world, *to, *message, text),
        Command::TakeReply { key, from, text } => seat::take_reply(world, key, from, text),
        Command::ImportIdentities { documents } => seat::import(world, documents),
        Command::RestateSeats => seat::restate(world),
        Command::ChangeStatus { change } => kept::change(world, change, now),
        Command::ChangeIdeas { change } => kept::change_ideas(world, change, now),
        Command::TakeStatusEdits { edits, build_events } => Ok(kept::take_edits(world, edits, build_events, now)),
        Command::TakeInboxEdits { edits } => kept::take_ideas(world, edits),
        Command::Once { request, command } => request::once(world, request, command, now),
        Command::Tick => Ok(Vec::new()),
    }
}

/// The next events that are due without a command. Empty if there are none. The cost does not depend on the size of the world.
pub fn settle(world: &World, now: Timestamp) -> Vec<Event> {
    if let Some((parent, birth, upto)) = world.ready_fork() {
        return late_birth(world, parent, birth, Origin { agent: parent, upto }, now);
    }
    if let Some(agent) = world.run_to_stop() {
        let why = match agent::living(world, agent) {
            Err(_) => StopWhy::Killed,
            Ok(_) if world.step_fork(agent).is_some() => StopWhy::StepOver,
            Ok(_) => StopWhy::Session,
        };
        return run::stop(world, agent, &why).unwrap_or_default();
    }
    if let Some((agent, run, over)) = world.unaffordable_run(now) {
        return budget::park(world, agent, run, over);
    }
    if let Some((question, asked)) = world.question_to_withdraw() {
        let withdrawn = Event::Question { agent: asked.agent, what: QuestionEvent::Withdrawn { question } };
        return [withdrawn].into_iter().chain(budget::ask_instead(world, asked, now)).collect();
    }
    if let Some(agent) = world.next_unhandled_run_change() {
        return quest::follow(world, agent);
    }
    if let Some(quest) = world.next_quest_to_schedule() {
        return quest::serve(world, quest, now);
    }
    let seats = seat::follow(world);
    if !seats.is_empty() {
        return seats;
    }
    match world.next_deadline() {
        Some((at, Due::Session(session))) if at <= now => {
            vec![Event::Session { session, what: SessionEvent::Ending { reason: EndReason::Inactive } }]
        }
        Some((at, Due::Egg(agent))) if at <= now => agent::expire(world, agent),
        Some((at, Due::Run(agent))) if at <= now => run::due(world, agent),
        Some((at, Due::Assignment(agent))) if at <= now => quest::due(world, agent),
        Some((at, Due::Seat(position))) if at <= now => seat::due(world, position),
        _ => Vec::new(),
    }
}

/// Creates the child of a fork that had to wait. If its session has ended in the meantime, the child is created asleep, like all agents of
/// that session, and is not run.
fn late_birth(world: &World, parent: AgentId, birth: &Birth, origin: Origin, now: Timestamp) -> Vec<Event> {
    match birth.session {
        Some(session) if session::open(world, session).is_err() => {
            let outside = Birth { session: None, run: None, ..birth.clone() };
            let asleep = Event::Agent { agent: birth.agent, what: AgentEvent::Slept };
            agent::born(parent, origin, &outside, now).into_iter().chain([asleep]).collect()
        }
        // The step has too many forks. The parent was told that this child would exist, so it is created, but it sleeps.
        _ => agent::born_from(world, parent, origin, birth, now).unwrap_or_else(|_| {
            let asleep = Event::Agent { agent: birth.agent, what: AgentEvent::Slept };
            let idle = Birth { run: None, ..birth.clone() };
            agent::born(parent, origin, &idle, now).into_iter().chain([asleep]).collect()
        }),
    }
}

/// The streams that must not have changed in the meantime, so that these records are valid: those that the command reads, and those that
/// the records change. The second part matters because events may follow that the command does not name: a closing session puts agents to
/// sleep, any command may find that a session is overdue, the child of a waiting fork is created in its session, and a run begins in the
/// session of its agent.
pub fn rests_on(command: &Command, records: &[Record]) -> BTreeSet<Stream> {
    let changed = records.iter().map(|record| record.event.stream());
    let enters = |record: &&Record| {
        matches!(
            record.event,
            Event::Agent { what: AgentEvent::Created { .. }, .. }
                | Event::Agent { what: AgentEvent::RunRequested { .. }, .. }
        )
    };
    let entered = records.iter().filter(enters).filter_map(|record| record.session.map(Stream::Session));
    command.reads().into_iter().chain(changed).chain(entered).collect()
}

/// An egg hatches with its own first message. Messages to the egg do not count; otherwise it would never expire.
fn hatched(world: &World, agent: AgentId, kind: MessageKind, said: Vec<Event>) -> Vec<Event> {
    match world.agent(agent).map(|it| it.lifecycle) {
        Some(Lifecycle::Hatching { .. }) if kind.is_spoken() && !world.seats().is_nameless(agent) => {
            [Event::Agent { agent, what: AgentEvent::Hatched }].into_iter().chain(said).collect()
        }
        _ => said,
    }
}
