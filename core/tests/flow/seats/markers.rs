//! Any markers in any order, some of them in one read of the lead's output.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;

/// What happens next to a lead and its team.
#[derive(Clone, Debug)]
enum Next {
    /// One read of the lead's output.
    LeadSays(Vec<String>),
    Summon(u64),
    Wake(u64),
    Kill(u64),
    Import(SeatDocument),
    Minutes(i64),
}

fn name() -> impl Strategy<Value = Option<&'static str>> {
    proptest::option::of(select(&["Lyra", "Kael", ""][..]))
}

fn marker() -> impl Strategy<Value = String> {
    let field = |key: &str, value: Option<&str>| value.map(|it| format!(",\"{key}\":\"{it}\"")).unwrap_or_default();
    let soul = proptest::option::of(select(&["I am", "I am another"][..]));
    let registered = (0..5_u64, name(), soul).prop_map(move |(position, name, soul)| {
        let rest = [field("name", name), field("individuationArtifact", soul)].concat();
        format!("[AGENT_REGISTERED] {{\"gridPosition\":{position}{rest}}}")
    });
    let status = proptest::option::of(select(&["alive", "idle", "shutdown", "dancing"][..]));
    let listed = (0..5_u64, name(), status).prop_map(move |(position, name, status)| {
        format!("{{\"gridPosition\":{position}{}{}}}", field("name", name), field("status", status))
    });
    let reported = proptest::collection::vec(listed, 0..4)
        .prop_map(|listed| format!("[AGENT_STATUS] {{\"agents\":[{}]}}", listed.join(",")));
    prop_oneof![registered, reported]
}

fn document() -> impl Strategy<Value = SeatDocument> {
    let status = select(&[SeatStatus::Alive, SeatStatus::Sleeping, SeatStatus::Hatching, SeatStatus::Expired][..]);
    let soul = proptest::option::of(select(&["I am from elsewhere", "I am from far away"][..]));
    let moment = || proptest::option::of((0..5_000_000_i64).prop_map(Timestamp));
    (0..4_u64, status, name(), soul, moment(), moment()).prop_map(|(position, status, name, soul, alive, created)| {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        let identity = Identity { name, soul: soul.map(Into::into), ..Identity::default() };
        SeatDocument {
            position: at(position),
            vital: Vital { last_alive_at: alive, status, last_session_id: None },
            births: vec![Born::of(&identity, created)],
        }
    })
}

fn next() -> impl Strategy<Value = Next> {
    prop_oneof![
        5 => proptest::collection::vec(marker(), 1..4).prop_map(Next::LeadSays),
        1 => (0..4_u64).prop_map(Next::Summon),
        1 => (0..4_u64).prop_map(Next::Wake),
        1 => (0..4_u64).prop_map(Next::Kill),
        1 => document().prop_map(Next::Import),
        1 => (1..9_i64).prop_map(Next::Minutes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No decision is impossible, no soul is lost, and after the time of a birth or a wake the button can be pressed, or everybody is
    /// alive.
    #[test]
    fn whatever_a_lead_says_no_seat_is_left_behind(what in proptest::collection::vec(next(), 1..16)) {
        let mut play = Play::new();
        play.must(open(S, Mode::Lead));
        play.runs(LEAD);
        play.must(summon(&[0, 1], 0));
        let mut souls = Vec::new();
        for (ids, next) in (10_u8..).step_by(3).zip(what) {
            match next {
                Next::LeadSays(markers) => drop(play.says_text(LEAD, &markers.join("\n"))),
                Next::Summon(position) => drop(play.tries(summon(&[position], ids))),
                Next::Wake(position) => {
                    let has_soul = play.soul(position).is_some();
                    let Command::WakeSeats { mut seats, spec, messages, hatch_ms } = wake(&[(position, has_soul)])
                    else { panic!("a wake") };
                    seats[0].agent = agent(ids + 1);
                    drop(play.tries(Command::WakeSeats { seats, spec, messages, hatch_ms }));
                }
                Next::Kill(position) => {
                    if let Some(agent) = play.world.seats().seat(at(position)).and_then(|seat| seat.agent) {
                        play.must(Command::Kill { agent, cascade: false, by: None, remark: None });
                    }
                }
                Next::Import(document) => drop(play.tries(Command::ImportIdentities { documents: vec![document] })),
                Next::Minutes(minutes) => {
                    play.now += minutes * 60_000;
                    play.must(Command::Tick);
                }
            }
            let has = |position: &u64, soul: &String| {
                let seat = play.world.seats().seat(at(*position)).unwrap();
                let others = seat.others.iter().filter_map(|born| born.soul.as_deref());
                seat.identity.soul.as_deref().into_iter().chain(others).any(|it| it == soul)
            };
            for (position, soul) in &souls {
                prop_assert!(has(position, soul), "seat {} has lost \"{}\"", position, soul);
            }
            souls = (0..9).filter_map(|position| Some((position, play.soul(position)?))).collect();
        }
        play.now += HATCH_MS.max(WAKE_MS) as i64;
        play.must(Command::Tick);
        prop_assert_ne!(play.button(), Button::Waking);
    }
}
