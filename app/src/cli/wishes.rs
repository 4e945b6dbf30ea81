//! The options of commands that may start a run.

/// How a run differs from what is usual here.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Wishes {
    /// The program that plays the agent: claude or scripted [default: the setting `harness`]
    #[arg(long, value_name = "NAME")]
    harness: Option<String>,

    /// The model that the program shall use
    #[arg(long)]
    model: Option<String>,

    /// The folder to work in, relative to the project's root
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,

    /// For the scripted harness: a script, or a folder of scripts of which it takes one
    #[arg(long, value_name = "PATH")]
    script: Option<String>,

    /// Wait for further messages after a turn, instead of ending
    #[arg(long)]
    stay: bool,

    /// How often a crashed process is resumed [default: the setting `retries`]
    #[arg(long, value_name = "N")]
    retries: Option<u32>,

    /// Silence that counts as stuck, in seconds [default: the setting `stall_ms`]
    #[arg(long, value_name = "SECONDS")]
    stall: Option<u64>,
}

impl Wishes {
    pub fn as_json(&self) -> serde_json::Value {
        // A path is meant from where the command is given, and the daemon is elsewhere.
        let script = self.script.as_ref().map(|script| std::path::absolute(script).unwrap_or_else(|_| script.into()));
        serde_json::json!({
            "harness": self.harness, "model": self.model, "folder": self.folder, "script": script,
            "stays": self.stay.then_some(true), "retries": self.retries, "stall_ms": self.stall.map(|s| s * 1_000),
        })
    }
}
