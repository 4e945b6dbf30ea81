//! The real program in a real terminal: tmux with a server of its own, which is gone when its owner is dropped.

use super::daemon::{Grounds, LOOK_AGAIN, PATIENCE, PROGRAM};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// A terminal with a command of Hatchery in it.
pub struct Terminal {
    socket: PathBuf,
    project: PathBuf,
    /// Variables for the program, as a shell reads them.
    environment: String,
    command: String,
}

impl Terminal {
    /// Opens a terminal of this size, or says that the test is left out because there is no tmux.
    pub fn open(grounds: &Grounds, size: (u16, u16), test: &str) -> Option<Self> {
        Self::with(grounds, "", "tui", size, test)
    }

    /// The same with another command than `hatchery tui`.
    pub fn of_command(grounds: &Grounds, command: &str, test: &str) -> Option<Self> {
        Self::with(grounds, "", command, (120, 40), test)
    }

    /// The same with variables for the program, as a shell reads them.
    pub fn with_environment(grounds: &Grounds, environment: &str, test: &str) -> Option<Self> {
        Self::with(grounds, environment, "tui", (80, 24), test)
    }

    fn with(grounds: &Grounds, environment: &str, command: &str, size: (u16, u16), test: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("SKIPPED {test}: tmux is not installed");
            return None;
        }
        let (socket, project) = (grounds.path().join("tmux"), grounds.path().to_owned());
        let (environment, command) = (environment.to_owned(), command.to_owned());
        let terminal = Self { socket, project, environment, command };
        terminal.start(size);
        Some(terminal)
    }

    /// Starts the program, in the first window or again after its end.
    pub fn start(&self, (width, height): (u16, u16)) {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).args([
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            &width.to_string(),
            "-y",
            &height.to_string(),
        ]);
        // A shell keeps the window when the program ends, so that its last words can be read.
        let (environment, project) = (&self.environment, self.project.display());
        tmux.arg(format!("{environment} {PROGRAM} {} --project {project}; echo LEFT; cat", self.command));
        tmux.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm-256color");
        tmux.env("LANG", "C.UTF-8")
            .env("HOME", self.project.join("home"))
            .env("SHELL", "/bin/sh")
            .current_dir(&self.project);
        let started = tmux.output().unwrap();
        assert!(started.status.success(), "{started:?}");
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Keys by their names: `Enter`, `C-x`, `Escape`.
    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Letters as they are.
    pub fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// A paste, as a terminal with bracketed paste makes it.
    pub fn paste(&self, text: &str) {
        let file = self.project.join("pasted");
        std::fs::write(&file, text).unwrap();
        self.tmux(&["load-buffer", &file.display().to_string()]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    pub fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until a text is on the screen, and gives the screen.
    #[track_caller]
    pub fn see(&self, text: &str) -> String {
        self.see_that(text, |screen| screen.contains(text))
    }

    #[track_caller]
    pub fn see_that(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "`{what}` did not come:\n{screen}");
            std::thread::sleep(LOOK_AGAIN * 4);
        }
    }

    /// `kill -9` of the program itself.
    pub fn kill_program(&self) {
        let shell: u32 = self.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let child: i32 = children.split_whitespace().next().unwrap().parse().unwrap();
        kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
        self.see("LEFT");
        self.tmux(&["kill-server"]);
        // The server says that it ends before it has ended.
        let server_lives =
            || Command::new("tmux").arg("-S").arg(&self.socket).arg("ls").output().unwrap().status.success();
        super::daemon::wait_until("the end of tmux", || !server_lives());
        std::fs::remove_file(&self.socket).unwrap_or_default();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails only when the server has ended already.
        Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output().map(drop).unwrap_or_default();
    }
}
