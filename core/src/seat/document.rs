//! Identity documents of seats, in the form that other programs and machines use, and how two of them are merged.
//!
//! Merging is commutative, associative and idempotent, so the same documents give the same result in any order and any number of times. No
//! soul is lost: a document keeps every soul that was ever merged into it. The oldest one is shown.

use super::{FaceVariant, Identity, Position, Seat, SeatState};
use crate::Timestamp;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The document of one seat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatDocument))]
#[serde(rename_all = "camelCase")]
pub struct SeatDocument {
    #[serde(rename = "gridPosition")]
    pub position: Position,
    /// The last known state of the seat.
    pub vital: Vital,
    /// The identities of the seat. The first one is shown; there are others only after a merge of different souls.
    pub births: Vec<Born>,
}

/// The status and the facts that it is based on. They are always taken from the same document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatVital))]
#[serde(rename_all = "camelCase")]
pub struct Vital {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_alive_at: Option<Timestamp>,
    pub status: SeatStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_session_id: Option<String>,
}

/// The status in a document. The order of the variants decides which one wins if two documents are equally old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatStatus))]
#[serde(rename_all = "snake_case")]
pub enum SeatStatus {
    Expired,
    Hatching,
    #[default]
    Sleeping,
    Alive,
}

/// One identity of a seat: a soul and the fields that belong to it. Without a soul it is a placeholder.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatBirth))]
#[serde(rename_all = "camelCase")]
pub struct Born {
    #[serde(rename = "individuationArtifact", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub soul: Option<Arc<str>>,
    #[serde(flatten)]
    pub fields: SeatFields,
}

/// The fields of an identity besides the soul.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = SeatFields))]
#[serde(rename_all = "camelCase")]
pub struct SeatFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gender: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub face_variant: Option<FaceVariant>,
}

impl SeatStatus {
    /// Reads the status, or the flag `hatching` of older documents.
    pub fn read(status: Option<&str>, hatching: Option<bool>) -> Option<Self> {
        match (status, hatching) {
            (Some("hatching"), _) | (None, Some(true)) => Some(Self::Hatching),
            (Some("alive"), _) => Some(Self::Alive),
            // `unknown` was a status of older documents, for a seat that was not confirmed yet.
            (Some("sleeping" | "unknown"), _) | (None, _) => Some(Self::Sleeping),
            (Some("expired"), _) => Some(Self::Expired),
            (Some(_), _) => None,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Hatching => "hatching",
            Self::Sleeping => "sleeping",
            Self::Alive => "alive",
        }
    }
}

impl From<SeatState> for SeatStatus {
    fn from(state: SeatState) -> Self {
        match state {
            SeatState::Hatching { .. } => Self::Hatching,
            SeatState::Alive => Self::Alive,
            SeatState::Sleeping { .. } => Self::Sleeping,
            SeatState::Expired => Self::Expired,
        }
    }
}

/// The newer one wins. The status is compared last: a name or a soul that arrives later may change it ([`SeatDocument::settled`]), and such
/// a change must not decide which of two reports is newer.
impl Ord for Vital {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |vital: &Self| (vital.last_alive_at, vital.last_session_id.clone(), vital.status);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Vital {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl SeatDocument {
    pub fn of(position: Position, seat: &Seat) -> Self {
        let vital = Vital {
            last_alive_at: seat.last_alive,
            status: seat.state.into(),
            last_session_id: seat.last_session.clone(),
        };
        let own = Born::of(&seat.identity, seat.created);
        Self { position, vital, births: [own].into_iter().chain(seat.others.iter().cloned()).collect() }
    }

    /// The document for other machines: its births are in the order that is the same everywhere.
    #[must_use]
    pub fn shared(&self) -> Self {
        self.merge(self)
    }

    /// The identity that is shown.
    pub fn born(&self) -> Option<&Born> {
        self.births.first()
    }

    /// An imported document as seen here: an agent that is alive elsewhere is not alive here.
    #[must_use]
    pub fn seen_from_here(&self) -> Self {
        let status = match self.vital.status {
            SeatStatus::Alive => SeatStatus::Sleeping,
            other @ (SeatStatus::Hatching | SeatStatus::Sleeping | SeatStatus::Expired) => other,
        };
        Self { vital: Vital { status, ..self.vital.clone() }, ..self.clone() }.settled()
    }

    /// Corrects the status: a seat with a name or a soul is neither hatching nor expired, whatever the newest report says.
    #[must_use]
    pub fn settled(self) -> Self {
        let succeeded = |born: &Born| born.fields.name.is_some() || born.soul.as_ref().is_some_and(|it| !it.is_empty());
        match self.vital.status {
            SeatStatus::Hatching | SeatStatus::Expired if self.births.iter().any(succeeded) => {
                Self { vital: Vital { status: SeatStatus::Sleeping, ..self.vital.clone() }, ..self }
            }
            SeatStatus::Hatching | SeatStatus::Expired | SeatStatus::Sleeping | SeatStatus::Alive => self,
        }
    }

    /// Merges two documents of the same seat.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        let mut souls: BTreeMap<Option<Arc<str>>, SeatFields> = BTreeMap::new();
        for Born { soul, fields } in self.births.iter().chain(&other.births) {
            let soul = soul.clone().filter(|soul| !soul.is_empty());
            let known = souls.entry(soul).or_insert_with(|| fields.clone());
            *known = known.join(fields);
        }
        // A placeholder is dropped if there is an identity with a soul.
        if souls.keys().any(Option::is_some) {
            souls.remove(&None);
        }
        let mut births: Vec<Born> = souls.into_iter().map(|(soul, fields)| Born { soul, fields }).collect();
        births.sort_by_key(Born::rank);
        Self { position: self.position, vital: self.vital.clone().max(other.vital.clone()), births }
    }
}

impl Born {
    pub fn of(identity: &Identity, created_at: Option<Timestamp>) -> Self {
        let Identity { name, color, color_name, gender, face_variant, soul } = identity.clone();
        Self { soul, fields: SeatFields { created_at, name, color, color_name, gender, face_variant } }
    }

    pub fn identity(&self) -> Identity {
        let SeatFields { name, color, color_name, gender, face_variant, .. } = self.fields.clone();
        Identity { name, color, color_name, gender, face_variant, soul: self.soul.clone() }
    }

    /// The oldest birth comes first. A birth without a time comes last.
    fn rank(&self) -> (bool, Option<Timestamp>, Option<Arc<str>>) {
        (self.fields.created_at.is_none(), self.fields.created_at, self.soul.clone())
    }
}

impl SeatFields {
    /// Merges field by field: a value wins over none, the earlier creation wins over the later one, and otherwise the greater value wins.
    /// The greater value means nothing, but it is the same on every machine.
    #[must_use]
    fn join(&self, other: &Self) -> Self {
        let created_at = match (self.created_at, other.created_at) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            created_at,
            name: self.name.clone().max(other.name.clone()),
            color: self.color.clone().max(other.color.clone()),
            color_name: self.color_name.clone().max(other.color_name.clone()),
            gender: self.gender.clone().max(other.gender.clone()),
            face_variant: self.face_variant.clone().max(other.face_variant.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Egg, SeatEvent};
    use crate::seat::{ListedStatus, SeatListed, Seats};
    use crate::{AgentId, EventId};
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn word() -> impl Strategy<Value = Option<String>> {
        option::of(select(&["a", "b", "c"][..]).prop_map(str::to_owned))
    }

    fn moment() -> impl Strategy<Value = Option<Timestamp>> {
        option::of((0_i64..4).prop_map(Timestamp))
    }

    fn born() -> impl Strategy<Value = Born> {
        let soul = option::of(select(&["", "I am one", "I am another", "I am a third"][..]).prop_map(Arc::from));
        (soul, moment(), word(), word(), word(), word()).prop_map(
            |(soul, created_at, name, color, color_name, gender)| Born {
                soul,
                fields: SeatFields { created_at, name, color, color_name, gender, face_variant: None },
            },
        )
    }

    /// Documents as they are read: one birth each. Merged ones come from merging.
    fn document() -> impl Strategy<Value = SeatDocument> {
        let status = select(&[SeatStatus::Alive, SeatStatus::Sleeping, SeatStatus::Hatching, SeatStatus::Expired][..]);
        (born(), moment(), status, word()).prop_map(|(born, last_alive_at, status, last_session_id)| {
            let vital = Vital { last_alive_at, status, last_session_id };
            SeatDocument { position: Position::LEAD, vital, births: vec![born] }
        })
    }

    /// A document that was merged with itself is in the form in which documents are compared.
    fn plain(document: &SeatDocument) -> SeatDocument {
        document.merge(document)
    }

    proptest! {
        #[test]
        fn merging_is_commutative(one in document(), two in document()) {
            prop_assert_eq!(one.merge(&two), two.merge(&one));
        }

        #[test]
        fn merging_is_associative(one in document(), two in document(), three in document()) {
            prop_assert_eq!(one.merge(&two).merge(&three), one.merge(&two.merge(&three)));
        }

        #[test]
        fn merging_is_idempotent(one in document(), two in document()) {
            prop_assert_eq!(plain(&one).merge(&one), plain(&one));
            let both = one.merge(&two);
            prop_assert_eq!(both.merge(&two), both.clone());
            prop_assert_eq!(both.merge(&both), both);
        }

        /// Two machines that get the same documents, in any order and any number of times, end up the same.
        #[test]
        fn machines_agree(documents in proptest::collection::vec(document(), 1..6), order in proptest::collection::vec(0_usize..6, 0..20)) {
            let fold = |indices: Vec<usize>| {
                indices.into_iter().map(|at| &documents[at % documents.len()]).fold(None, |merged: Option<SeatDocument>, next| {
                    Some(merged.map_or_else(|| plain(next), |merged| merged.merge(next)))
                })
            };
            let here = fold((0..documents.len()).collect());
            let there = fold(order.into_iter().chain((0..documents.len()).rev()).collect());
            prop_assert_eq!(here, there);
        }

        #[test]
        fn no_soul_is_lost(documents in proptest::collection::vec(document(), 1..6)) {
            let merged = documents.iter().skip(1).fold(plain(&documents[0]), |merged, next| merged.merge(next));
            for soul in documents.iter().flat_map(|it| &it.births).filter_map(|it| it.soul.clone()).filter(|it| !it.is_empty()) {
                prop_assert!(merged.births.iter().any(|born| born.soul.as_ref() == Some(&soul)));
            }
        }
    }

    proptest! {
        /// On whole machines, too, the documents of the seats after several imports do not depend on the order of the imports.
        #[test]
        fn seats_agree(documents in proptest::collection::vec(document(), 1..6), order in proptest::collection::vec(0_usize..6, 0..12)) {
            let documents: Vec<SeatDocument> = documents
                .into_iter()
                .map(|it| SeatDocument { position: Position::new(3).unwrap(), ..it })
                .collect();
            let machine = |now, indices: Vec<usize>| {
                let mut seats = Seats::default();
                for at in indices {
                    for document in seats.merged_with(&documents[at % documents.len()..][..1]) {
                        seats.apply(EventId::START, now, &SeatEvent::Imported { document });
                    }
                }
                seats.iter().map(|(position, seat)| SeatDocument::of(position, seat).shared()).collect::<Vec<_>>()
            };
            // Their clocks differ, and what they say about the past does not.
            let here = machine(Timestamp(9), (0..documents.len()).collect());
            let there = machine(Timestamp(50), order.into_iter().chain((0..documents.len()).rev()).collect());
            prop_assert_eq!(&here, &there);
            for document in here {
                let born = document.births.iter().any(|it| it.soul.as_ref().is_some_and(|soul| !soul.is_empty()));
                prop_assert!(!born || document.vital.status == SeatStatus::Sleeping, "a soul can always be woken");
            }
        }
    }

    /// What a machine did with its seat before it got documents from elsewhere.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Before {
        Nothing,
        /// An agent was summoned, and killed before it had a name.
        KilledEgg,
        /// An agent wrote a soul, and sleeps.
        Soul,
        /// An agent wrote a soul, and was killed.
        KilledSoul,
        /// A lead has reported an agent without a name, which sleeps now.
        Nameless,
    }

    /// The seats of such a machine, with seat 3, whose soul names the moment.
    fn machine(before: Before, now: Timestamp) -> Seats {
        let (position, agent) = (Position::new(3).unwrap(), AgentId::from_bytes([now.0 as u8; 16]));
        let egg = Egg { position, agent, color: None, gender: None, until: now };
        let summoned = SeatEvent::Summoned { seats: vec![egg] };
        let identity = Identity { name: Some("Lyra".into()), soul: Some(own_soul(now).into()), ..Identity::default() };
        let registered = SeatEvent::Registered { position, identity };
        let reported = |agents| SeatEvent::Reported { by: None, agents };
        let listed = SeatListed { position, name: None, status: ListedStatus::Alive };
        let (events, is_killed) = match before {
            Before::Nothing => (vec![], false),
            Before::KilledEgg => (vec![summoned], true),
            Before::Soul => (vec![summoned, registered, reported(vec![])], false),
            Before::KilledSoul => (vec![summoned, registered], true),
            Before::Nameless => {
                (vec![reported(vec![listed]), SeatEvent::Filled { position, agent }, reported(vec![])], false)
            }
        };
        let mut seats = Seats::default();
        events.iter().for_each(|event| seats.apply(EventId::START, now, event));
        if is_killed {
            seats.agent_gone(now, agent);
        }
        seats
    }

    fn own_soul(now: Timestamp) -> String {
        format!("I am from {}", now.0)
    }

    fn import(seats: &mut Seats, now: Timestamp, documents: &[SeatDocument]) {
        for document in seats.merged_with(documents) {
            seats.apply(EventId::START, now, &SeatEvent::Imported { document });
        }
    }

    fn documents_of(seats: &Seats) -> Vec<SeatDocument> {
        seats.iter().map(|(position, seat)| SeatDocument::of(position, seat).shared()).collect()
    }

    fn before() -> impl Strategy<Value = Before> {
        select(&[Before::Nothing, Before::KilledEgg, Before::Soul, Before::KilledSoul, Before::Nameless][..])
    }

    proptest! {
        /// The documents do not depend on the order of the imports on machines where agents sit or sat in the seat, either. Each machine keeps
        /// showing the soul of its own agent, and no seat waits for the name of an agent that does not hatch.
        #[test]
        fn seats_with_agents_agree(
            befores in (before(), before()),
            documents in proptest::collection::vec(document(), 0..4),
        ) {
            let documents: Vec<SeatDocument> = documents
                .into_iter()
                .map(|it| SeatDocument { position: Position::new(3).unwrap(), ..it })
                .collect();
            let (here_now, there_now) = (Timestamp(9), Timestamp(50));
            let (mut here, mut there) = (machine(befores.0, here_now), machine(befores.1, there_now));
            documents.iter().for_each(|it| import(&mut here, here_now, std::slice::from_ref(it)));
            documents.iter().rev().for_each(|it| import(&mut there, there_now, std::slice::from_ref(it)));
            for _ in 0..2 {
                import(&mut here, here_now, &documents_of(&there));
                import(&mut there, there_now, &documents_of(&here));
            }
            prop_assert_eq!(documents_of(&here), documents_of(&there));
            prop_assert_eq!(here.merged_with(&documents), vec![], "the second time changes nothing");
            for (seats, before, now) in [(&here, befores.0, here_now), (&there, befores.1, there_now)] {
                for (_, seat) in seats.iter() {
                    let is_ghost = matches!(seat.state, SeatState::Hatching { .. }) && seat.agent.is_some();
                    prop_assert!(!is_ghost, "no button moves {:?}", seat);
                    if matches!(before, Before::Soul | Before::KilledSoul) {
                        prop_assert_eq!(seat.identity.soul.as_deref().map(str::to_owned), Some(own_soul(now)));
                    }
                }
            }
        }
    }

    #[test]
    fn a_status_is_read_as_it_was_meant() {
        assert_eq!(SeatStatus::read(None, None), Some(SeatStatus::Sleeping));
        assert_eq!(SeatStatus::read(None, Some(true)), Some(SeatStatus::Hatching));
        assert_eq!(SeatStatus::read(None, Some(false)), Some(SeatStatus::Sleeping));
        assert_eq!(SeatStatus::read(Some("unknown"), None), Some(SeatStatus::Sleeping));
        assert_eq!(SeatStatus::read(Some("alive"), Some(true)), Some(SeatStatus::Alive));
        assert_eq!(SeatStatus::read(Some("dreaming"), None), None);
    }

    #[test]
    fn the_newer_report_wins_for_the_status_and_the_soul_stays() {
        let document = |at, status, soul: Option<&str>| SeatDocument {
            position: Position::LEAD,
            vital: Vital { last_alive_at: Some(Timestamp(at)), status, last_session_id: None },
            births: vec![Born { soul: soul.map(Arc::from), fields: SeatFields::default() }],
        };
        let merged = document(1, SeatStatus::Alive, Some("mine")).merge(&document(2, SeatStatus::Sleeping, None));
        assert_eq!(merged.vital.status, SeatStatus::Sleeping);
        assert_eq!(merged.born().and_then(|born| born.soul.as_deref()), Some("mine"));
    }
}
