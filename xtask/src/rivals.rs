//! `cargo xtask rivals`: durable steps of Restate and of DBOS, beside what the disk itself needs for one write.
//!
//! Their programs are kept in the user's cache folder, in the versions that are named here; nothing else of the system is changed. Their
//! data is on the disk that the build is on. What cannot be installed or started is left out, aloud.

mod dbos;
mod guest;
mod restate;

use crate::{Failure, command};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const CLIENTS: u32 = 32;
const PAGE_BYTES: usize = 4_096;
/// Overwrites before a rival has its turn, and as many after it.
const OVERWRITES: usize = 500;

/// How much is measured: the steps of an invocation, and the invocations of a client.
#[derive(Debug, Clone, Copy)]
struct Effort {
    steps: u32,
    rounds: u32,
}

#[derive(Debug)]
struct Rival {
    name: &'static str,
    version: String,
    effort: Effort,
    measure: fn(&Lab, Effort) -> Result<Figures, Failure>,
}

/// What a rival's own program prints: two numbers.
#[derive(Debug)]
struct Figures {
    p50_us: f64,
    per_second: f64,
}

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let quick = match arguments {
        [] => false,
        [only] if only == "--quick" => true,
        other => return Err(Failure(format!("`{}`: only --quick is understood", other.join(" ")))),
    };
    let lab = Lab::open()?;
    let load = load();
    let mut rows = Vec::new();
    for Rival { name, version, effort, measure } in [restate::rival(quick), dbos::rival(quick)] {
        let mut overwrites = lab.overwrites()?;
        match measure(&lab, effort) {
            Ok(Figures { p50_us, per_second }) => {
                overwrites.extend(lab.overwrites()?);
                let f = median(overwrites);
                rows.push(format!("| {name} | {version} | {p50_us:.0} µs | {per_second:.0} | {f:.0} µs |"));
            }
            Err(Failure(why)) => eprintln!("xtask: SKIPPED: {name} was NOT measured: {why}"),
        }
    }
    println!("| system | version | p50 of a step, 1 client | steps/s, {CLIENTS} clients | F, p50 |");
    println!("|---|---|---|---|---|");
    rows.iter().for_each(|row| println!("{row}"));
    eprintln!(
        "\nThe load was {load} when this began: on a machine that is busy, the figures say little.\n\
         Ours: `cargo bench --bench quests -- durable crowd`. Hold \"a step's signal recorded\" against the first figure, each divided by\n\
         the F of its own run, and \"steps' signals recorded, 32 at once\" against the second."
    );
    Ok(())
}

/// Where the rivals' programs are kept, and a folder for their data that goes when we do.
#[derive(Debug)]
struct Lab {
    cache: PathBuf,
    data: PathBuf,
}

impl Lab {
    fn open() -> Result<Self, Failure> {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
        let cache = cache.ok_or(Failure("neither XDG_CACHE_HOME nor HOME says where to keep the rivals".into()))?;
        // Not the system's temporary folder: that may be memory, where a sync costs nothing.
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| command::root().join("target"), PathBuf::from);
        let data = target.join(format!("tmp/rivals-{}", std::process::id()));
        let lab = Self { cache: cache.join("hatchery/rivals"), data };
        for folder in [&lab.cache, &lab.data] {
            fs::create_dir_all(folder).map_err(|error| Failure(format!("{}: {error}", folder.display())))?;
        }
        Ok(lab)
    }

    /// The folder of a rival's programs. An installation that was cut short is made anew.
    fn installed(&self, name: &str, install: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<PathBuf, Failure> {
        let folder = self.cache.join(name);
        let whole = folder.join("installed");
        if !whole.exists() {
            install(&folder)?;
            fs::write(&whole, "").map_err(|error| Failure(format!("{}: {error}", whole.display())))?;
        }
        Ok(folder)
    }

    /// F: one 4 KB overwrite and its `fdatasync`, in µs.
    fn overwrites(&self) -> Result<Vec<f64>, Failure> {
        let measure = || {
            let file = File::create(self.data.join("overwritten"))?;
            file.write_all_at(&[0; PAGE_BYTES], 0)?;
            file.sync_all()?;
            let mut costs = Vec::with_capacity(OVERWRITES);
            for _ in 0..OVERWRITES {
                let start = Instant::now();
                file.write_all_at(&[1; PAGE_BYTES], 0)?;
                file.sync_data()?;
                costs.push(start.elapsed().as_secs_f64() * 1e6);
            }
            Ok(costs)
        };
        measure().map_err(|error: std::io::Error| Failure(format!("F cannot be measured: {error}")))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.data));
    }
}

impl Effort {
    /// Runs a rival's own program, with how much it has to do as its last arguments.
    fn figures(self, program: &mut Command) -> Result<Figures, Failure> {
        program.args([self.steps, self.rounds, CLIENTS].map(|number| number.to_string()));
        let output = program.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| Failure(format!("{}: {error}", program.get_program().display())))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = said.split_whitespace().flat_map(str::parse).collect();
        match numbers[..] {
            [p50_us, per_second] if output.status.success() => Ok(Figures { p50_us, per_second }),
            _ => Err(Failure(format!("{}: {}, {said}", program.get_program().display(), output.status))),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Of the last minute, before ours is part of it.
fn load() -> String {
    let loads = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or_default().to_owned()
}
