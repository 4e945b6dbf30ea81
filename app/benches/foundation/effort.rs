//! How much is measured, and which groups: the same for all benchmarks.

use crate::table::Table;
use std::time::Duration;

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Effort {
    quick: bool,
}

pub type Group = fn(Effort, &mut Table);

impl Effort {
    pub fn pick<T>(self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Many short rounds: what disturbs one of them leaves the median alone.
    pub fn rounds(self) -> usize {
        self.pick(3, 15)
    }

    /// How long one side has its turn.
    pub fn turn(self) -> Duration {
        Duration::from_millis(self.pick(100, 400))
    }
}

/// Measures the groups that the command line names by the beginnings of their names, or all, and prints one table.
pub fn measure(groups: &[(&str, Group)]) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let effort = Effort { quick: arguments.iter().any(|argument| argument == "--quick") };
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut table = Table::default();
    for (name, measure) in groups {
        if filters.is_empty() || filters.iter().any(|filter| name.starts_with(filter.as_str())) {
            eprintln!("measuring {name} …");
            measure(effort, &mut table);
        }
    }
    println!("{table}");
}
