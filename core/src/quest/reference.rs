//! Finds the quest that a user means by an id, a slug, or the beginning of one of them.

use super::QuestSpec;
use crate::{QuestId, Refusal, World, slug};
use std::fmt;

/// The longest reference that a refusal repeats, in characters.
const MAX_REFERENCE_CHARS: usize = 64;
/// How many quests an ambiguous reference lists.
const MAX_LISTED: usize = 10;
/// How many characters of a request are shown to distinguish quests.
const MAX_REQUEST_CHARS: usize = 60;

/// A quest that a reference may mean, with data that distinguishes it from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestCandidate {
    pub id: QuestId,
    pub slug: String,
    /// The state of the quest.
    pub state: &'static str,
    /// The beginning of the request.
    pub request: String,
}

/// All quests that a reference may mean, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestCandidates(pub Vec<QuestCandidate>);

/// The readable name of a quest: the name of its branch, or a name that is formed in the same way.
pub fn slug_of(id: QuestId, quest_spec: &QuestSpec) -> String {
    quest_spec.slug().map_or_else(|| slug::of(&quest_spec.request, id.as_bytes()), str::to_owned)
}

/// The quest that a reference means. A whole id or a whole slug comes before the beginning of another one.
pub fn resolve(world: &World, reference: &str) -> Result<QuestId, Refusal> {
    let whole = reference.parse().ok();
    if let Some(id) = whole.filter(|id| world.quest(*id).is_some()) {
        return Ok(id);
    }
    let slug = |id: QuestId| world.quest_spec(id).map(|quest_spec| slug_of(id, quest_spec));
    let meant = |is_meant: &dyn Fn(QuestId) -> bool| -> Vec<QuestId> {
        world.quests().map(|(id, _)| id).filter(|id| is_meant(*id)).collect()
    };
    let mut found = meant(&|id| slug(id).as_deref() == Some(reference));
    if found.is_empty() && !reference.is_empty() {
        let begins = |text: &str| text.starts_with(reference);
        found = meant(&|id| begins(&id.to_string()) || slug(id).as_deref().is_some_and(begins));
    }
    let shown = || reference.chars().take(MAX_REFERENCE_CHARS).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Err(whole.map_or_else(|| Refusal::NoQuestCalled(shown()), Refusal::UnknownQuest)),
        _ => {
            found.sort_by_key(|id| (world.quest(*id).map(|quest| quest.created), *id));
            let candidates = found.iter().filter_map(|id| candidate(world, *id)).collect();
            Err(Refusal::AmbiguousQuest { reference: shown(), candidates: QuestCandidates(candidates) })
        }
    }
}

fn candidate(world: &World, id: QuestId) -> Option<QuestCandidate> {
    let (quest, quest_spec) = (world.quest(id)?, world.quest_spec(id)?);
    let first_line = quest_spec.request.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Some(QuestCandidate {
        id,
        slug: slug_of(id, quest_spec),
        state: quest.state.word(),
        request: first_line.trim().chars().take(MAX_REQUEST_CHARS).collect(),
    })
}

impl fmt::Display for QuestCandidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} quests:", self.0.len())?;
        for QuestCandidate { id, slug, state, request } in self.0.iter().take(MAX_LISTED) {
            write!(f, "\n  {id}  {slug}, {state}: {request}")?;
        }
        match self.0.len().saturating_sub(MAX_LISTED) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
