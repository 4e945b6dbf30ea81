//! What an agent may do without asking: the policy of its run, the rules that the user has set, and the decision about a request. Paths are
//! compared as text, because the core reads no files; `docs/permissions.md` says what this means for symbolic links.

use crate::ask::About;
use crate::event::{PermissionEvent, QuestionEvent, RunEvent};
use crate::history::said;
use crate::run::{AttemptId, Conversation, Run};
use crate::{AgentId, Event, EventId, MessageKind, Refusal, Timestamp, World, quest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// How many requests of one process can be open. A process asks for a few tools at once, never for so many.
pub const MAX_PENDING: usize = 64;
/// How long the process of a quest's agent waits for an answer. After that the process is stopped, so that another step can use its slot.
/// The agent continues when the answer is there.
pub const PATIENCE_MS: u64 = 10 * 60 * 1_000;
/// How many rules a project can have. Each request is compared with all of them.
pub const MAX_RULES: usize = 1_000;
/// How many characters of a reason, a command or an input a question shows.
const MAX_SHOWN_CHARS: usize = 1_000;

/// Files and folders in an agent's folder that can give the agent more rights, or that belong to other programs. The policy `edits` does
/// not allow changes to them.
pub const PROTECTED: [&str; 9] = [
    ".git",
    ".hatchery",
    // Settings of agent programs, which can name programs to run.
    ".claude",
    ".mcp.json",
    ".codex",
    ".opencode",
    "opencode.json",
    ".gemini",
    ".qwen",
];

/// The first words of commands that only read.
const LOOKING: [&[&str]; 12] = [
    &["git", "diff"],
    &["git", "status"],
    &["git", "log"],
    &["git", "show"],
    &["git", "rev-parse"],
    &["ls"],
    &["pwd"],
    &["cat"],
    &["head"],
    &["tail"],
    &["wc"],
    &["grep"],
];

/// What a run allows when its agent asks for permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionPolicy {
    /// Every request is a question to the user, unless a rule allows it.
    Ask,
    /// Reading and changing files in the agent's folder, the ward's command, and commands that only read are allowed. Everything else is a
    /// question.
    Edits,
    /// Everything is allowed.
    All,
    /// Nothing that needs a permission is allowed, and the user is not asked.
    None,
}

impl PermissionPolicy {
    pub const ALL: [Self; 4] = [Self::Ask, Self::Edits, Self::All, Self::None];

    /// The policy if nothing names one. In a worktree of Hatchery edits are allowed, because it contains no files of the user's own.
    pub fn by_place(in_worktree: bool) -> Self {
        if in_worktree { Self::Edits } else { Self::Ask }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
            Self::None => "none",
        }
    }

    /// The meaning of the policy, as part of a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ask => "each tool that needs a permission is a question to you",
            Self::Edits => {
                "edits in its own folder, the ward and looking around are allowed; the rest is a question to you"
            }
            Self::All => "everything is allowed",
            Self::None => "no tool that needs a permission is allowed, and you are not asked",
        }
    }
}

impl fmt::Display for PermissionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a tool would do, as far as the harness can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Read a file or a folder.
    Read { path: String },
    /// Change a file.
    Edit { path: String },
    /// Run a command in a shell.
    Execute { command: String },
    /// Use one of Hatchery's tools, which need no permission. Some harnesses ask nevertheless.
    OwnTool,
    /// The program asks for something that is not a permission and that Hatchery does not offer. It is refused without a question.
    NotOffered,
    /// Anything else.
    #[default]
    Other,
}

impl Access {
    fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// A process asks for permission to use a tool, and waits for the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PermissionRequest {
    /// The id that the process gave to the request.
    pub request: String,
    pub tool: String,
    #[serde(default)]
    pub tool_use: Option<String>,
    /// JSON text.
    pub input: String,
    #[serde(default, skip_serializing_if = "Access::is_other")]
    pub access: Access,
    /// The folder in which the process works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// A request whose answer the process has not received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPermission {
    pub request: PermissionRequest,
    pub state: PendingState,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PendingState {
    /// The decision or the question follows in the same batch.
    New,
    Asked {
        question: EventId,
        since: Timestamp,
    },
    /// The answer has to be written to the process.
    Decided {
        at: EventId,
        decision: PermissionDecision,
    },
}

impl PendingPermission {
    pub fn question(&self) -> Option<EventId> {
        match self.state {
            PendingState::Asked { question, .. } => Some(question),
            PendingState::New | PendingState::Decided { .. } => None,
        }
    }
}

/// An answer that came after the process had ended. It counts for the next process, if that process asks the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyAnswer {
    pub tool: String,
    pub input: String,
    pub decision: PermissionDecision,
}

impl EarlyAnswer {
    pub fn is_for(&self, request: &PermissionRequest) -> bool {
        self.tool == request.tool && self.input == request.input
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionDecision {
    Allow,
    /// The reason is sent to the agent.
    Deny {
        reason: String,
    },
}

/// The beginning of the reason that an agent receives when the user has denied its request.
const USER_DENIED: &str = "The user did not allow it";

impl PermissionDecision {
    /// The reason that the user wrote for a denial, without the sentence around it. Empty if the user gave no reason.
    pub fn words_of_user(&self) -> Option<&str> {
        match self {
            Self::Allow => None,
            Self::Deny { reason } => {
                let rest = reason.strip_prefix(USER_DENIED)?;
                Some(rest.strip_prefix(": ").unwrap_or_default())
            }
        }
    }
}

/// What a decision is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    Policy,
    Rule,
    Human,
}

/// What is allowed without a question from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionRule {
    /// Reading in a folder. None: in the agent's own folder.
    Read { below: Option<String> },
    /// Changing files in a folder. None: in the agent's own folder.
    Edit { below: Option<String> },
    /// This command, word for word.
    Execute { command: String },
    /// Every use of a tool.
    Tool { name: String },
}

impl PermissionRule {
    /// The rule that allows requests like this one.
    pub fn of(request: &PermissionRequest) -> Self {
        let below = |path: &str| match in_own_folder(request, path).is_some_and(|rest| !is_protected(&rest)) {
            true => None,
            false => Some(parent(&absolute(request, path))),
        };
        match &request.access {
            Access::Read { path } => Self::Read { below: below(path) },
            Access::Edit { path } => Self::Edit { below: below(path) },
            Access::Execute { command } => Self::Execute { command: command.clone() },
            Access::Other | Access::OwnTool | Access::NotOffered => Self::Tool { name: request.tool.clone() },
        }
    }

    pub fn covers(&self, request: &PermissionRequest) -> bool {
        match (self, &request.access) {
            (Self::Read { below: None }, Access::Read { path }) => in_own_folder(request, path).is_some(),
            (Self::Edit { below: None }, Access::Edit { path }) => {
                in_own_folder(request, path).is_some_and(|rest| !is_protected(&rest))
            }
            (Self::Read { below: Some(folder) }, Access::Read { path })
            | (Self::Edit { below: Some(folder) }, Access::Edit { path }) => {
                relative(folder, &absolute(request, path)).is_some()
            }
            (Self::Execute { command }, Access::Execute { command: asked }) => command == asked,
            (Self::Tool { name }, _) => *name == request.tool,
            (Self::Read { .. } | Self::Edit { .. } | Self::Execute { .. }, _) => false,
        }
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { below: None } => f.write_str("reading in the agent's own folder"),
            Self::Read { below: Some(folder) } => write!(f, "reading in {folder}"),
            Self::Edit { below: None } => f.write_str("changing files in the agent's own folder"),
            Self::Edit { below: Some(folder) } => write!(f, "changing files in {folder}"),
            Self::Execute { command } => write!(f, "the command `{command}`"),
            Self::Tool { name } => write!(f, "every use of {name}"),
        }
    }
}

/// A rule with its scope: one agent, or the whole project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopedRule {
    pub agent: Option<AgentId>,
    pub rule: PermissionRule,
}

/// The decision about a request without the user. None: the user is asked.
pub fn decide<'a>(
    policy: PermissionPolicy,
    rules: impl IntoIterator<Item = &'a PermissionRule>,
    ward: Option<&str>,
    request: &PermissionRequest,
) -> Option<(PermissionDecision, DecidedBy)> {
    let allowed = |by| Some((PermissionDecision::Allow, by));
    match request.access {
        Access::OwnTool => return allowed(DecidedBy::Policy),
        Access::NotOffered => {
            let reason = "Hatchery does not offer this.".to_owned();
            return Some((PermissionDecision::Deny { reason }, DecidedBy::Policy));
        }
        Access::Read { .. } | Access::Edit { .. } | Access::Execute { .. } | Access::Other => {}
    }
    match policy {
        PermissionPolicy::All => allowed(DecidedBy::Policy),
        PermissionPolicy::None => {
            let reason = "The permissions of this run are `none`: no tool that needs a permission can be used. Continue without it, \
                          and say so if your work needs it.";
            Some((PermissionDecision::Deny { reason: reason.to_owned() }, DecidedBy::Policy))
        }
        PermissionPolicy::Edits if is_part_of_edits(request, ward) => allowed(DecidedBy::Policy),
        PermissionPolicy::Edits | PermissionPolicy::Ask => {
            rules.into_iter().any(|rule| rule.covers(request)).then_some(())?;
            allowed(DecidedBy::Rule)
        }
    }
}

fn is_part_of_edits(request: &PermissionRequest, ward: Option<&str>) -> bool {
    match &request.access {
        Access::Read { path } => in_own_folder(request, path).is_some(),
        Access::Edit { path } => in_own_folder(request, path).is_some_and(|rest| !is_protected(&rest)),
        Access::Execute { command } => {
            ward.is_some_and(|ward| ward.trim() == command.trim()) || only_looks(command.trim())
        }
        Access::Other | Access::OwnTool | Access::NotOffered => false,
    }
}

/// Whether a command only reads in the agent's folder. The user is asked about any command that might do more: with special characters of a
/// shell, a path that leads out of the folder, or an option that writes.
fn only_looks(command: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_./=:,@+^%~".contains(c);
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let leads_out =
        |word: &&str| word.starts_with(['/', '~']) || word.contains("=/") || word.split('/').any(|part| part == "..");
    let writes = |word: &&str| word.starts_with("--output") || word.starts_with("--ext-diff");
    command.chars().all(plain)
        && LOOKING.iter().any(|looking| words.starts_with(looking))
        && !words.iter().any(|word| leads_out(word) || writes(word))
}

/// The path relative to the agent's own folder. None if the path is outside of this folder.
fn in_own_folder(request: &PermissionRequest, path: &str) -> Option<String> {
    relative(request.folder.as_deref()?, &absolute(request, path))
}

fn is_protected(rest: &str) -> bool {
    rest.split('/').any(|part| PROTECTED.contains(&part))
}

/// The absolute form of a path in a request.
fn absolute(request: &PermissionRequest, path: &str) -> String {
    match &request.folder {
        Some(folder) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
}

/// The path relative to a folder. None if the path is not in the folder, or if one of them is not absolute.
fn relative(folder: &str, path: &str) -> Option<String> {
    let (folder, path) = (parts(folder)?, parts(path)?);
    path.strip_prefix(folder.as_slice()).map(|rest| rest.join("/"))
}

/// The parts of an absolute path, without `.` and `..`.
fn parts(path: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for part in path.strip_prefix('/')?.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts)
}

fn parent(path: &str) -> String {
    let parts = parts(path).unwrap_or_default();
    format!("/{}", parts.split_last().map(|(_, rest)| rest.join("/")).unwrap_or_default())
}

/// The events that follow a request: a decision, or a question.
pub(crate) fn follows(world: &World, of: AttemptId, run: &Run, request: &PermissionRequest) -> Vec<Event> {
    if run.attempt.permissions.len() >= MAX_PENDING {
        let reason = format!("{MAX_PENDING} of your requests wait for an answer. Wait for one of them.");
        return decided_and_told(world, of, run, request, PermissionDecision::Deny { reason }, DecidedBy::Policy);
    }
    if let Some(early) = run.early_answers.iter().find(|early| early.is_for(request)) {
        return vec![decided(of, request, early.decision.clone(), DecidedBy::Human)];
    }
    let decision = decide(run.spec.policy(), world.permission_rules_of(of.agent), ward_of(world, of.agent), request);
    match decision {
        Some((decision, by)) => decided_and_told(world, of, run, request, decision, by),
        None => {
            let what = QuestionEvent::Asked { about: About::Permission(of), text: question(request) };
            vec![Event::Question { agent: of.agent, what }]
        }
    }
}

/// The decision, and a message with its reason if the answer to the request cannot contain the reason.
///
/// The user's reason is always sent. The reason of a policy is sent only once, in the first turn: each message costs a turn, and the agent
/// may ask again in that turn.
fn decided_and_told(
    world: &World,
    of: AttemptId,
    run: &Run,
    request: &PermissionRequest,
    decision: PermissionDecision,
    by: DecidedBy,
) -> Vec<Event> {
    let waits = world.conversation(of.agent).is_some_and(Conversation::has_words);
    let is_told = match by {
        DecidedBy::Human => true,
        // The program asked by itself, without the agent, and the answer says that Hatchery does not offer this.
        DecidedBy::Policy | DecidedBy::Rule if request.access == Access::NotOffered => false,
        DecidedBy::Policy | DecidedBy::Rule => run.turns == 0 && !waits,
    };
    let told = match &decision {
        PermissionDecision::Deny { reason } if is_told && !run.attempt.capabilities.explains_denials => {
            let text = format!("Your request to use {} ({}) was denied. {reason}", request.tool, does(request));
            Some(said(of.agent, MessageKind::User, text))
        }
        PermissionDecision::Deny { .. } | PermissionDecision::Allow => None,
    };
    [decided(of, request, decision, by)].into_iter().chain(told).collect()
}

fn decided(of: AttemptId, request: &PermissionRequest, decision: PermissionDecision, by: DecidedBy) -> Event {
    Event::Run { of, what: RunEvent::PermissionDecided { request: request.request.clone(), decision, by } }
}

fn ward_of(world: &World, agent: AgentId) -> Option<&str> {
    let assignment = world.assignment(agent)?;
    world.quest_spec(assignment.quest)?.ward.as_ref().map(|ward| ward.command.as_str())
}

/// The text of the question, with its possible answers.
fn question(request: &PermissionRequest) -> String {
    let does = does(request);
    let folder = request.folder.as_deref().map(|folder| format!(", in {folder}")).unwrap_or_default();
    format!(
        "May it use {}? It wants to {does}{folder}. Answer `allow`, `deny` or `deny: REASON`; or `always-agent` or \
         `always-project` to allow {} from now on.",
        request.tool,
        shown(&PermissionRule::of(request).to_string())
    )
}

/// What a request would do, as text.
fn does(request: &PermissionRequest) -> String {
    match &request.access {
        Access::Read { path } => format!("read {}", shown(path)),
        Access::Edit { path } => format!("change {}", shown(path)),
        Access::Execute { command } => format!("run `{}`", shown(command)),
        Access::Other | Access::OwnTool | Access::NotOffered => format!("use it with {}", shown(&request.input)),
    }
}

fn shown(text: &str) -> String {
    match text.chars().count() > MAX_SHOWN_CHARS {
        true => text.chars().take(MAX_SHOWN_CHARS).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// The events of an answer to a question about a permission. None if the question does not accept the answer.
pub(crate) fn answered(
    world: &World,
    question: EventId,
    of: AttemptId,
    answer: &str,
) -> Result<Option<Vec<Event>>, Refusal> {
    let run = crate::run::at_attempt(world, of)?;
    let pending = run.attempt.permissions.iter().find(|pending| pending.question() == Some(question));
    let Some(PendingPermission { request, .. }) = pending else { return Err(Refusal::NoQuestion(question)) };
    let by_human = |decision| {
        let decided = decided_and_told(world, of, run, request, decision, DecidedBy::Human);
        decided.into_iter().chain(goes_on(world, of.agent, &BTreeSet::from([question]))).collect::<Vec<_>>()
    };
    let denied = |reason: &str| {
        let reason = match reason.trim() {
            "" => format!("{USER_DENIED}."),
            reason => format!("{USER_DENIED}: {}", shown(reason)),
        };
        by_human(PermissionDecision::Deny { reason })
    };
    let scope = match answer {
        "allow" | "yes" => return Ok(Some(by_human(PermissionDecision::Allow))),
        "deny" | "no" => return Ok(Some(denied(""))),
        "always-agent" => Some(of.agent),
        "always-project" => None,
        other => return Ok(other.strip_prefix("deny:").map(denied)),
    };
    let rule = PermissionRule::of(request);
    if world.permission_rules().len() >= MAX_RULES {
        return Err(Refusal::TooManyRules);
    }
    let covered = covered(world, question, scope, &rule);
    let closed: BTreeSet<EventId> = covered.iter().map(|(id, _, _)| *id).chain([question]).collect();
    let agents: BTreeSet<AgentId> = covered.iter().map(|(_, of, _)| of.agent).chain([of.agent]).collect();
    let added = Event::Permission(PermissionEvent::RuleAdded { agent: scope, allows: rule });
    let this = decided(of, request, PermissionDecision::Allow, DecidedBy::Human);
    let others = covered.iter().map(|(_, of, it)| decided(*of, it, PermissionDecision::Allow, DecidedBy::Rule));
    let go_on = agents.into_iter().filter_map(|agent| goes_on(world, agent, &closed));
    Ok(Some([added, this].into_iter().chain(others).chain(go_on).collect()))
}

/// The event that queues an agent that was stopped while it waited for answers, if `closed` are its last open questions.
fn goes_on(world: &World, agent: AgentId, closed: &BTreeSet<EventId>) -> Option<Event> {
    let run = world.run(agent).filter(|run| run.is_parked())?;
    let mut open = run.attempt.permissions.iter().filter_map(PendingPermission::question);
    open.all(|question| closed.contains(&question)).then(|| quest::queue_parked(world, agent)).flatten()
}

/// The other open requests that a new rule allows. Their questions are withdrawn, because nothing is left to decide.
fn covered<'a>(
    world: &'a World,
    except: EventId,
    scope: Option<AgentId>,
    rule: &PermissionRule,
) -> Vec<(EventId, AttemptId, &'a PermissionRequest)> {
    let open = world.questions().filter(|(id, _)| *id != except).filter_map(|(id, asked)| match asked.about {
        About::Permission(of) => scope.is_none_or(|agent| agent == of.agent).then_some((id, of)),
        About::Silence(_) | About::Budget { .. } | About::QuestBudget { .. } | About::Step { .. } => None,
    });
    open.filter_map(|(id, of)| {
        let run = world.run(of.agent).filter(|run| run.attempt_id(of.agent) == of)?;
        let pending = run.attempt.permissions.iter().find(|pending| pending.question() == Some(id))?;
        rule.covers(&pending.request).then_some((id, of, &pending.request))
    })
    .collect()
}

/// Removes a rule. Later requests that the rule would have allowed are questions again.
pub(crate) fn remove_rule(world: &World, rule: EventId) -> Result<Vec<Event>, Refusal> {
    let scoped = world.permission_rules().get(&rule).ok_or(Refusal::NoRule(rule))?;
    Ok(vec![Event::Permission(PermissionEvent::RuleRemoved { agent: scoped.agent, rule })])
}
