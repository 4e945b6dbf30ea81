//! The settings that a running daemon uses. An edited `hatchery.toml` is taken over without a restart as far as
//! [`config::TAKES_EFFECT`](crate::config::TAKES_EFFECT) allows it. A file that is wrong, or brings something for which the user was not asked, changes
//! nothing.

use crate::config::{self, Config, Flags, Notify, SettingsFile, TakesEffect, WrittenSettings};
use crate::http::RunDefaults;
use crate::project::Project;
use crate::report::{Code, Report};
use crate::runner::{RunSettings, RunnerContext};
use crate::trust;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often to look at the file. A command of the CLI that sees a change makes the daemon look at once; all other users wait for this.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct LiveSettings {
    project: Project,
    flags: Flags,
    context: Arc<RunnerContext>,
    /// What the daemon has read when it started.
    first: WrittenSettings,
    seats: config::SeatDefaults,
    used: Mutex<Used>,
    notify: watch::Sender<Notify>,
}

/// What counts now.
#[derive(Debug)]
struct Used {
    mark: String,
    written: WrittenSettings,
    defaults: Arc<RunDefaults>,
}

/// What became of a change of `hatchery.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SettingsTaken {
    /// The settings that count from now on.
    pub taken: Vec<String>,
    /// The settings that have changed and count when the daemon is started again.
    pub waiting: Vec<String>,
}

impl LiveSettings {
    /// `config` is what was resolved from the file and these flags. The file may have changed since; then it is taken over soon.
    pub fn new(project: &Project, flags: Flags, context: Arc<RunnerContext>, config: Config) -> Result<Self, Report> {
        let (mark, first) = (config.file.mark(), config.file.written()?);
        known_harness(&config, &context.settings())?;
        let defaults = Arc::new(RunDefaults::of(&context, config.runs, config.quests, config.seats.clone()));
        let used = Mutex::new(Used { mark, written: first.clone(), defaults });
        let notify = watch::Sender::new(config.notify);
        Ok(Self { project: project.clone(), flags, context, first, seats: config.seats, used, notify })
    }

    /// How agents are run now.
    pub fn defaults(&self) -> Arc<RunDefaults> {
        Arc::clone(&self.used().defaults)
    }

    /// Says which content of the file was taken over: see [`SettingsFile::mark`].
    pub fn mark(&self) -> String {
        self.used().mark.clone()
    }

    /// The settings that have changed and count when the daemon is started again.
    pub fn waiting(&self) -> Vec<String> {
        config::changed(&self.first, &self.used().written, TakesEffect::AtRestart)
    }

    pub fn notify(&self) -> watch::Receiver<Notify> {
        self.notify.subscribe()
    }

    /// Uses what the file says now. Reads files.
    pub fn take_over(&self) -> Result<SettingsTaken, Report> {
        let mut used = self.used();
        let mut taken = Vec::new();
        if SettingsFile::mark_now(&self.project).as_ref() != Some(&used.mark) {
            // Read once: what is checked is what is used. A change in between is seen the next time.
            let config = Config::resolve(&self.project, &self.flags)?;
            let (mark, written) = (config.file.mark(), config.file.written()?);
            trust::check(&self.project, &config.file)?;
            let settings = RunSettings::of(&self.project, &config, &self.context.program);
            known_harness(&config, &settings)?;
            self.context.use_settings(settings);
            // The seats wait for a restart, with the reader of the team's inbox.
            let defaults = RunDefaults::of(&self.context, config.runs, config.quests, self.seats.clone());
            self.notify.send_replace(config.notify);
            taken = config::changed(&used.written, &written, TakesEffect::AtOnce);
            *used = Used { mark, written, defaults: Arc::new(defaults) };
        }
        drop(used);
        Ok(SettingsTaken { taken, waiting: self.waiting() })
    }

    /// Takes changes over until the daemon ends.
    pub async fn keep(self: Arc<Self>, mut closing: watch::Receiver<bool>) {
        let mut refused = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                _ = closing.wait_for(|closing| *closing) => return,
            }
            let settings = Arc::clone(&self);
            let look = tokio::task::spawn_blocking(move || {
                let is_changed = SettingsFile::mark_now(&settings.project) != Some(settings.mark());
                is_changed.then(|| settings.take_over())
            });
            match look.await {
                Ok(Some(Ok(SettingsTaken { taken, waiting }))) => {
                    tracing::info!(?taken, ?waiting, "hatchery.toml has changed")
                }
                // Told once, and tried again: the user may agree to it.
                Ok(Some(Err(report))) if refused.as_ref() != Some(&report.message) => {
                    tracing::warn!(error = %report, "hatchery.toml has changed and cannot be used; the daemon goes on with what it has read");
                    refused = Some(report.message);
                }
                Ok(Some(Err(_)) | None) => {}
                Err(error) => tracing::error!(%error, "hatchery.toml cannot be looked at"),
            }
        }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn known_harness(config: &Config, settings: &RunSettings) -> Result<(), Report> {
    let name = &config.runs.harness;
    match settings.harnesses.named(name) {
        Some(_) => Ok(()),
        None => Err(Report::new(Code::Usage, format_args!("harness = `{name}` is not known"))
            .hint(format_args!("choose one of: {}", settings.harnesses.names().join(", ")))),
    }
}
