//! How fast agents that run are: taking in what they say, starting them, and holding many that wait. Each figure stands beside its
//! limit, measured in the same run. Never a test: a figure depends on the machine.
//!
//! `cargo bench --bench runs [-- FILTER…] [--quick]` prints one table. A filter is the beginning of a group's name.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on has nothing better to do than stop")]

mod idle;
mod intake;
#[path = "../foundation/raw.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod raw;
mod shop;
mod spawn;
#[path = "../foundation/table.rs"]
#[allow(dead_code, reason = "the foundation's benchmarks use the rest")]
mod table;

use table::Table;

/// How much is measured.
#[derive(Clone, Copy)]
struct Effort {
    quick: bool,
}

impl Effort {
    fn pick<T>(self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

type Group = fn(Effort, &mut Table);

const GROUPS: [(&str, Group); 3] = [("intake", intake::run), ("spawn", spawn::run), ("idle", idle::run)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let effort = Effort { quick: arguments.iter().any(|argument| argument == "--quick") };
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut table = Table::default();
    for (name, measure) in GROUPS {
        if filters.is_empty() || filters.iter().any(|filter| name.starts_with(filter.as_str())) {
            eprintln!("measuring {name} …");
            measure(effort, &mut table);
        }
    }
    println!("{table}");
}
