//! Whatever can be said about seats on the log.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

use super::{agent, runs, session, text};
use hatchery_core::event::{Egg, SeatEvent, WakeOrder, Waking};
use hatchery_core::seat::{
    ArtifactMeta, Born, FaceVariant, Identity, ListedStatus, Mode, Position, SeatDocument, SeatListed, Vital,
};
use hatchery_core::{Event, EventId, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn position() -> impl Strategy<Value = Position> {
    (0_u64..9).prop_map(|number| Position::new(number).unwrap())
}

fn moment() -> impl Strategy<Value = Timestamp> {
    any::<i64>().prop_map(Timestamp)
}

fn identity() -> impl Strategy<Value = Identity> {
    let words = [(); 4].map(|()| option::of(text()));
    (words, option::of((text(), text())), option::of(text())).prop_map(
        |([name, color, color_name, gender], face, soul)| {
            let face_variant = face.map(|(eyes, mouth)| FaceVariant { eyes, mouth });
            Identity { name, color, color_name, gender, face_variant, soul: soul.map(Into::into) }
        },
    )
}

fn document() -> impl Strategy<Value = SeatDocument> {
    let status = prop::sample::select(vec!["alive", "sleeping", "hatching", "expired"]);
    let born = (identity(), option::of(moment())).prop_map(|(identity, created)| Born::of(&identity, created));
    (position(), option::of(moment()), status, option::of(text()), vec(born, 0..3)).prop_map(
        |(position, last_alive_at, status, last_session_id, births)| {
            let status = hatchery_core::seat::SeatStatus::read(Some(status), None).unwrap();
            SeatDocument { position, vital: Vital { last_alive_at, status, last_session_id }, births }
        },
    )
}

fn listed() -> impl Strategy<Value = SeatListed> {
    let status = prop::sample::select(vec![ListedStatus::Alive, ListedStatus::Idle, ListedStatus::Shutdown]);
    (position(), option::of(text()), status).prop_map(|(position, name, status)| SeatListed { position, name, status })
}

fn waking() -> impl Strategy<Value = Waking> {
    let order =
        (session(), text(), runs::spec()).prop_map(|(session, prompt, spec)| WakeOrder { session, prompt, spec });
    let untold = option::of(any::<u64>().prop_map(EventId));
    (position(), agent(), moment(), any::<bool>(), any::<bool>(), untold, option::of(order.prop_map(Box::new)))
        .prop_map(|(position, agent, until, has_soul, has_transcript, untold_upto, order)| Waking {
            position,
            agent,
            until,
            has_soul,
            has_transcript,
            untold_upto,
            order,
        })
}

fn meta() -> impl Strategy<Value = ArtifactMeta> {
    [(); 3].map(|()| option::of(text())).prop_map(|[description, category, chapter]| ArtifactMeta {
        description,
        category,
        chapter,
    })
}

pub fn happened() -> impl Strategy<Value = Event> {
    let egg = (position(), agent(), option::of(text()), option::of(text()), moment())
        .prop_map(|(position, agent, color, gender, until)| Egg { position, agent, color, gender, until });
    let mode = prop::sample::select(vec![Mode::Direct, Mode::Lead]);
    let opened = (session(), mode, option::of(any::<u32>()), any::<[bool; 3]>(), option::of(text()));
    prop_oneof![
        opened.prop_map(|(session, mode, pid, [demo, with_transcript, with_catalog], model)| SeatEvent::Opened {
            session,
            mode,
            pid,
            demo,
            model,
            with_transcript,
            with_catalog
        }),
        session().prop_map(|session| SeatEvent::Closing { session }),
        agent().prop_map(|agent| SeatEvent::LeadNamed { agent }),
        (session(), runs::spec()).prop_map(|(session, spec)| SeatEvent::LeadAwaited { session, spec }),
        (position(), agent()).prop_map(|(position, agent)| SeatEvent::Filled { position, agent }),
        (position(), agent()).prop_map(|(position, agent)| SeatEvent::SpokenFor { agent, position }),
        (position(), agent(), any::<u64>().prop_map(EventId))
            .prop_map(|(position, agent, message)| SeatEvent::Relayed { agent, position, message }),
        vec(egg, 0..3).prop_map(|seats| SeatEvent::Summoned { seats }),
        (position(), identity()).prop_map(|(position, identity)| SeatEvent::Registered { position, identity }),
        (option::of(agent()), vec(listed(), 0..3)).prop_map(|(by, agents)| SeatEvent::Reported { by, agents }),
        vec(waking(), 0..3).prop_map(|seats| SeatEvent::Waking { seats }),
        position().prop_map(|position| SeatEvent::Expired { position }),
        position().prop_map(|position| SeatEvent::WakeExpired { position }),
        document().prop_map(|document| SeatEvent::Imported { document }),
        (agent(), option::of(position()), text()).prop_map(|(agent, position, speaker)| SeatEvent::Addressed {
            agent,
            position,
            speaker
        }),
        (agent(), text(), text()).prop_map(|(agent, marker, reason)| SeatEvent::MarkerRejected {
            agent,
            marker,
            reason
        }),
        (agent(), text(), text(), any::<u64>(), option::of(any::<bool>()), option::of(meta())).prop_map(
            |(agent, path, filename, bytes, is_new, meta)| SeatEvent::ArtifactWritten {
                agent,
                path,
                filename,
                bytes,
                is_new,
                meta
            }
        ),
        (text(), text(), option::of(position()), option::of(text()))
            .prop_map(|(key, from, position, text)| SeatEvent::ReplyTaken { key, from, position, text }),
    ]
    .prop_map(Event::Seat)
}
