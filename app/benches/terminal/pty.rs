//! The real program in a pseudo-terminal of our own, so that the end of each frame is seen.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// What the program writes after a frame: the end of a synchronized update.
const END_OF_FRAME: &[u8] = b"\x1b[?2026l";
/// How long something may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Nothing was drawn for so long: the screen has settled.
const SETTLED: Duration = Duration::from_secs(3);
/// The unit of the times in `/proc/PID/stat`, on every Linux that we know.
const TICKS_PER_SECOND: u64 = 100;

/// A screen with `hatchery tui` on it.
pub struct Screen {
    child: Child,
    terminal: File,
    /// The last bytes that were drawn.
    seen: Vec<u8>,
    bytes: u64,
    frames: u64,
}

impl Screen {
    pub fn open(project: &Path, (width, height): (u16, u16)) -> Self {
        let terminal: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let end = || OpenOptions::new().read(true).write(true).open(&name).unwrap();
        // `setsid --ctty` makes the pseudo-terminal the program's own.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait", env!("CARGO_BIN_EXE_hatchery"), "tui", "--project"])
            .arg(project)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("HOME", project)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        Self { child, terminal: File::from(terminal), seen: Vec::new(), bytes: 0, frames: 0 }
    }

    /// Reads until this text was drawn.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.seen.windows(text.len()).any(|window| window == text.as_bytes()) {
            assert!(Instant::now() < deadline, "`{text}` did not come: {}", String::from_utf8_lossy(&self.seen));
            self.read(Duration::from_millis(100));
        }
    }

    /// Reads until nothing has been drawn for a while.
    pub fn settle(&mut self) {
        while self.read(SETTLED) > 0 {}
    }

    pub fn read_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            self.read(left);
        }
    }

    /// Presses a key, and gives the time until the next frame is complete.
    pub fn press(&mut self, key: &[u8]) -> Duration {
        let (start, frames) = (Instant::now(), self.frames);
        self.terminal.write_all(key).unwrap();
        while self.frames == frames {
            assert!(start.elapsed() < PATIENCE, "no frame for a key");
            self.read(Duration::from_millis(100));
        }
        start.elapsed()
    }

    /// How much was drawn.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How often the program has gone to sleep by itself, in all of its threads.
    pub fn wake_ups(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.program())).unwrap();
        let count = |status: String| {
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or_default()
        };
        tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok()).map(count).sum()
    }

    /// The time of processors that the program has used.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.program())).unwrap();
        // The name of the program may contain anything but ends with the last bracket.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
    }

    /// The process of the program: the child of `setsid`, or `setsid` itself where it did not have to fork.
    fn program(&self) -> u32 {
        let of = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
        children.split_whitespace().next().and_then(|pid| pid.parse().ok()).unwrap_or(of)
    }

    /// Reads what was drawn, for at most so long. Gives the number of bytes.
    fn read(&mut self, patience: Duration) -> usize {
        const KEPT: usize = 1 << 20;
        let time = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut waits = [PollFd::new(&self.terminal, PollFlags::IN)];
        if poll(&mut waits, Some(&time)).unwrap() == 0 {
            return 0;
        }
        let mut buffer = [0; 64 << 10];
        let count = self.terminal.read(&mut buffer).unwrap_or(0);
        // An end may be in two reads.
        let from = self.seen.len().saturating_sub(END_OF_FRAME.len() - 1);
        self.seen.extend_from_slice(&buffer[..count]);
        let ends = self.seen[from..].windows(END_OF_FRAME.len()).filter(|window| *window == END_OF_FRAME).count();
        self.frames += ends as u64;
        self.bytes += count as u64;
        // As terminals do: the background is black, and these are the attributes.
        if buffer[..count].windows(3).any(|window| window == b"\x1b[c") {
            self.terminal.write_all(b"\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;c").unwrap();
        }
        if self.seen.len() > KEPT {
            self.seen.drain(..KEPT / 2);
        }
        count
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Ctrl-C sets a text aside and Ctrl-D leaves; the terminal goes away in any case.
        self.terminal.write_all(b"\x03\x04").unwrap_or_default();
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            self.read(Duration::from_millis(20));
        }
        self.child.kill().unwrap_or_default();
        self.child.wait().unwrap();
    }
}
