//! From spools to durable events: eight children have said all they have to say while nobody looked, and it is taken in.

use crate::Effort;
use crate::raw::{self, Producer};
use crate::shop::Shop;
use crate::table::{Goal, Table, Unit, in_turns};
use hatchery::clock::new_agent_id;
use hatchery::engine::Handle;
use hatchery_core::agent::Birth;
use hatchery_core::{AgentId, Command, MessageKind};
use std::time::{Duration, Instant};

const CHILDREN: usize = 8;
/// The producers of the foundation's own measurement.
const PRODUCERS: usize = 64;

pub fn run(effort: Effort, table: &mut Table) {
    let lines = effort.pick(1_000, 10_000);
    let shop = Shop::open();
    let mut producers: Vec<Speaker> = (0..PRODUCERS).map(|_| Speaker::new(&shop)).collect();
    let turn = Duration::from_millis(effort.pick(200, 1_000));
    let pairs = in_turns(effort.pick(2, 9), || intake(&shop, lines), || raw::rate(&shop.runtime, &mut producers, turn));
    let what = format!("lines taken in from the spools of {CHILDREN} children, against 64 producers that append");
    table.add(what, Unit::PerSecond, pairs, Goal::AtLeast(0.7));
}

/// Lines in a second.
fn intake(shop: &Shop, lines: usize) -> f64 {
    // The end of the script waits, so that nothing but lines is taken in.
    let bytes = raw::BODY_BYTES;
    let steps = format!(
        "{{\"flood\":{{\"lines\":{lines},\"bytes\":{bytes}}}}}\n{{\"write_file\":{{\"path\":\"NAME\",\"content\":\"\"}}}}\n"
    );
    let supervisor = shop.supervise();
    let agents: Vec<AgentId> =
        (0..CHILDREN).map(|child| shop.ask(&shop.script(&steps.replace("NAME", &format!("said-{child}"))))).collect();
    // They have heard what to do; from here on nobody looks while they speak.
    shop.wait(|world| {
        agents.iter().all(|agent| world.run(*agent).is_some_and(|run| run.attempt.in_turn || run.turns > 0))
    });
    supervisor.abort();
    let is_said = |child: usize| shop.folder.path().join(format!("said-{child}")).exists();
    while !(0..CHILDREN).all(is_said) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let said = |shop: &Shop| -> u64 {
        let world = shop.handle.view();
        agents.iter().map(|agent| world.agent(*agent).unwrap().messages).sum()
    };
    let before = said(shop);
    let start = Instant::now();
    let supervisor = shop.supervise();
    let all = ((lines + 1) * CHILDREN) as u64;
    shop.wait(|_| said(shop) >= all);
    let took = start.elapsed().as_secs_f64();
    shop.wait_for_end(&agents);
    supervisor.abort();
    (0..CHILDREN).for_each(|child| std::fs::remove_file(shop.folder.path().join(format!("said-{child}"))).unwrap());
    (all - before) as f64 / took
}

/// The foundation's producer: one message, one append.
#[derive(Clone)]
struct Speaker {
    handle: Handle,
    agent: AgentId,
}

impl Speaker {
    fn new(shop: &Shop) -> Self {
        let agent = new_agent_id();
        let fork = Command::Fork { parent: shop.root, at: None, birth: Birth::of(agent) };
        shop.runtime.block_on(shop.handle.submit(fork)).unwrap();
        Self { handle: shop.handle.clone(), agent }
    }
}

impl Producer for Speaker {
    async fn append(&mut self) {
        let message = Command::AddMessage { agent: self.agent, kind: MessageKind::Assistant, content: raw::body() };
        self.handle.submit(message).await.unwrap();
    }
}
