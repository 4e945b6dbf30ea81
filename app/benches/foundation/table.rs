//! The table of figures, and the arithmetic behind one line of it.

use std::fmt;

/// What a figure counts, so that it can be written with its unit.
#[derive(Clone, Copy)]
pub enum Unit {
    PerSecond,
    Micros,
    Millis,
    Kib,
    Mib,
    Percent,
    Count,
}

/// What the ratio of ours to the raw limit should be.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Worth knowing, but nothing was promised.
    Open,
}

/// Both sides, round by round.
pub struct Pairs(Vec<(f64, f64)>);

#[derive(Default)]
pub struct Table(Vec<Line>);

struct Line {
    what: String,
    unit: Unit,
    pairs: Pairs,
    goal: Goal,
}

/// Measures both sides in turns, after one turn each that does not count. Who begins changes from round to round.
pub fn in_turns(rounds: usize, ours: impl FnMut() -> f64, raw: impl FnMut() -> f64) -> Pairs {
    Pairs(turns(rounds, ours, raw))
}

/// The same where a turn shows more than one figure.
pub fn turns<T>(rounds: usize, mut ours: impl FnMut() -> T, mut raw: impl FnMut() -> T) -> Vec<(T, T)> {
    ours();
    raw();
    let pairs = (0..rounds).map(|round| match round % 2 {
        0 => {
            let ours = ours();
            (ours, raw())
        }
        _ => {
            let raw = raw();
            (ours(), raw)
        }
    });
    pairs.collect()
}

impl Pairs {
    /// A figure against a limit that is a number and not a measurement.
    pub fn against(limit: f64, ours: impl IntoIterator<Item = f64>) -> Self {
        Self(ours.into_iter().map(|ours| (ours, limit)).collect())
    }

    pub fn new(pairs: Vec<(f64, f64)>) -> Self {
        Self(pairs)
    }

    fn ours(&self) -> f64 {
        median(self.0.iter().map(|pair| pair.0).collect())
    }

    fn raw(&self) -> f64 {
        median(self.0.iter().map(|pair| pair.1).collect())
    }

    /// The ratios of all rounds, the lowest first. Both sides of one ratio were measured close together.
    fn ratios(&self) -> Vec<f64> {
        let mut ratios: Vec<f64> = self.0.iter().map(|(ours, raw)| ours / raw).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }
}

impl Table {
    pub fn add(&mut self, what: impl Into<String>, unit: Unit, pairs: Pairs, goal: Goal) {
        let line = Line { what: what.into(), unit, pairs, goal };
        eprintln!("  {line}");
        self.0.push(line);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | ours | raw limit | ratio (lowest – highest) | goal | met? |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratios = self.pairs.ratios();
        let ratio = median(ratios.clone());
        let (goal, met) = match self.goal {
            Goal::AtLeast(goal) => (format!("≥ {goal}"), if ratio >= goal { "yes" } else { "NO" }),
            Goal::AtMost(goal) => (format!("≤ {goal}"), if ratio <= goal { "yes" } else { "NO" }),
            Goal::Open => ("–".into(), "–"),
        };
        let (lowest, highest) = (ratios[0], ratios[ratios.len() - 1]);
        let (ours, raw) = (self.unit.write(self.pairs.ours()), self.unit.write(self.pairs.raw()));
        write!(f, "| {} | {ours} | {raw} | {ratio:.2} ({lowest:.2} – {highest:.2}) | {goal} | {met} |", self.what)
    }
}

impl Unit {
    fn write(self, value: f64) -> String {
        match self {
            Self::PerSecond if value >= 10_000.0 => format!("{:.1}k/s", value / 1_000.0),
            Self::PerSecond => format!("{value:.0}/s"),
            Self::Micros if value < 100.0 => format!("{value:.1} µs"),
            Self::Micros => format!("{value:.0} µs"),
            Self::Millis => format!("{value:.1} ms"),
            Self::Kib => format!("{value:.1} KiB"),
            Self::Mib => format!("{value:.1} MiB"),
            Self::Percent => format!("{value:.2} %"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

pub fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

pub fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short list")]
    let place = ((values.len() - 1) as f64 * part).round() as usize;
    values[place]
}
