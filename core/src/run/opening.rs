//! How the session of an agent's next process is opened: the agent's own session continues, the session of its parent is copied, or a new
//! one starts.

use super::{Conversation, HarnessSession};
use crate::harness::{Capabilities, Opening, RepeatsHistory};
use crate::{AgentId, World};

/// The harness session of the agent's parent, if it contains exactly what the agent inherited, so that it can be copied.
pub fn inherited_session(world: &World, agent: AgentId) -> Option<&HarnessSession> {
    let child = world.agent(agent)?;
    let origin = child.origin?;
    let conversation = world.conversation(origin.agent)?;
    let unmoved = origin.upto.is_some() && world.agent(origin.agent)?.last_message == origin.upto;
    // A message that waits, or a turn that runs, may be in the harness session partly or not at all.
    let at_rest = !conversation.has_words() && world.run(origin.agent).is_none_or(|run| !run.attempt.in_turn);
    let copyable = child.cuts.is_empty() && world.conversation(agent).is_none_or(|own| !own.orphaned);
    conversation.harness_session.as_ref().filter(|_| unmoved && at_rest && copyable)
}

/// The harness session of the agent's parent, and the turn up to which it contains exactly what the agent inherited.
fn inherited_turn(world: &World, agent: AgentId) -> Option<(&HarnessSession, &str)> {
    let child = world.agent(agent)?;
    let origin = child.origin?;
    let conversation = world.conversation(origin.agent)?;
    let turn = conversation.turns.get(&origin.upto?)?;
    let copyable = child.cuts.is_empty() && world.conversation(agent).is_none_or(|own| !own.orphaned);
    conversation.harness_session.as_ref().filter(|_| copyable).map(|it| (it, turn.as_str()))
}

/// How the session of the agent's next process is opened. The agent's own session continues, if it is on this machine. Otherwise the
/// session of its parent is copied, if it contains exactly what the agent inherited, as a whole or up to a turn. Otherwise a new session
/// starts.
pub fn opening(world: &World, agent: AgentId, capabilities: Capabilities) -> Opening {
    let Some(run) = world.run(agent) else { return Opening::New };
    let is_here = |it: &&HarnessSession| it.harness == run.spec.harness && it.host == run.spec.host;
    let conversation = world.conversation(agent);
    let own = conversation.and_then(|conversation| conversation.harness_session.as_ref());
    if let Some(own) = own.filter(is_here) {
        let repeats_history = match own.capabilities.unwrap_or(capabilities).repeats_history {
            RepeatsHistory::Always => true,
            RepeatsHistory::OnRequest => conversation.is_some_and(Conversation::is_unsure),
            RepeatsHistory::Never => false,
        };
        return Opening::Resume { session: own.session.clone(), repeats_history };
    }
    // What the process has declared counts more than what the harness declares in general.
    let is_here = |it: &&HarnessSession| is_here(it) && it.capabilities.unwrap_or(capabilities).forks;
    if let Some(inherited) = inherited_session(world, agent).filter(is_here) {
        return Opening::Fork { from: inherited.session.clone(), upto: None };
    }
    match inherited_turn(world, agent).filter(|(session, _)| is_here(session)) {
        Some((session, turn)) => Opening::Fork { from: session.session.clone(), upto: Some(turn.to_owned()) },
        None => Opening::New,
    }
}
