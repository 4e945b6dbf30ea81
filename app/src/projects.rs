//! The projects of this user on this machine: one small file for each, in the user's state folder. A daemon writes the file of its
//! project when it starts. Nothing depends on these files; they only let commands find the other projects.

use crate::client::Client;
use crate::project::Project;
use crate::report::{Code, Context as _, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a daemon of another project may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A project as a list shows it.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectLine {
    pub root: String,
    /// Whether its daemon runs and answers.
    pub running: bool,
    /// Whether its daemon runs and does not answer. Then nothing is known of its agents and questions.
    #[serde(default)]
    pub silent: bool,
    /// How many agents are at work.
    pub working: usize,
    /// How many questions wait for the human.
    pub questions: usize,
    pub agents: u64,
    /// The address of its page, with the token. None if its daemon does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl ProjectLine {
    /// From an answer of `/api/overview`.
    fn new(project: &Project, answer: Option<(Client, Value)>) -> Self {
        let (link, overview) = answer.map_or((None, Value::Null), |(client, value)| (Some(client.link()), value));
        let list = |name: &str| overview[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let works = |agent: &&Value| matches!(agent["activity"].as_str(), Some("working" | "starting" | "silent"));
        Self {
            root: project.root().display().to_string(),
            running: link.is_some(),
            silent: link.is_none() && project.is_served(),
            working: list("agents").iter().filter(works).count(),
            questions: list("questions").len(),
            agents: overview["agentCount"].as_u64().unwrap_or_default(),
            link,
        }
    }
}

/// All projects, with what their daemons say of them.
pub async fn lines() -> Result<Vec<ProjectLine>, Report> {
    Ok(everywhere("/api/overview")
        .await?
        .into_iter()
        .map(|(project, answer)| ProjectLine::new(&project, answer))
        .collect())
}

/// What all running daemons of this user answer, all asked at once. A project whose daemon does not answer in time has no answer.
pub async fn everywhere(path: &str) -> Result<Vec<(Project, Option<(Client, Value)>)>, Report> {
    let answers = all()?.into_iter().map(async |project| {
        let ask = async {
            let client = Client::running(&project).await.ok()??;
            let answer = client.get(path).await.ok()?;
            Some((client, answer))
        };
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, ask).await.ok().flatten();
        (project, answer)
    });
    Ok(futures_util::future::join_all(answers).await)
}

/// What to say of projects whose daemons run and do not answer: what they know is missing in the answers.
pub fn silent<T>(answers: &[(Project, Option<T>)]) -> Option<Report> {
    let is_silent = |(project, answer): &&(Project, Option<T>)| answer.is_none() && project.is_served();
    told_silent(answers.iter().filter(is_silent).map(|(project, _)| project.root().display().to_string()))
}

/// The same for projects whose daemons are known to be silent.
pub fn told_silent(roots: impl Iterator<Item = String>) -> Option<Report> {
    let roots: Vec<String> = roots.collect();
    let first = roots.first()?;
    let message = format!("the daemon does not answer in {}", roots.join(", "));
    Some(Report::new(Code::Unreachable, message).hint(format_args!(
        "`hatchery doctor --project {first}` says more; `hatchery down --force --project {first}` ends a daemon that hangs, and nothing is lost"
    )))
}

/// What is written about a project.
#[derive(Debug, Serialize, Deserialize)]
struct ProjectEntry {
    root: PathBuf,
}

/// The user's state folder: below `XDG_STATE_HOME` or `~/.local/state`. None for a user without a home.
pub fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("hatchery"))
}

fn folder() -> Option<PathBuf> {
    state_folder().map(|state| state.join("projects"))
}

/// Records that a project exists. It may happen as often as one likes.
pub fn record(project: &Project) -> std::io::Result<()> {
    let Some(folder) = folder() else { return Ok(()) };
    std::fs::create_dir_all(&folder)?;
    let entry = serde_json::to_vec(&ProjectEntry { root: project.root().to_owned() })?;
    let new = folder.join(format!("{}.{}", name_of(project.root()), std::process::id()));
    std::fs::write(&new, entry)?;
    std::fs::rename(&new, folder.join(name_of(project.root())).with_extension("json"))
}

/// Forgets a project whose folder goes.
pub fn forget(project: &Project) {
    if let Some(folder) = folder() {
        std::fs::remove_file(folder.join(name_of(project.root())).with_extension("json")).unwrap_or_default();
    }
}

/// All recorded projects that still exist, by their folder.
pub fn all() -> Result<Vec<Project>, Report> {
    let Some(folder) = folder() else { return Ok(Vec::new()) };
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context(format_args!("{} cannot be read", folder.display())),
    };
    let mut found = BTreeMap::new();
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "json"))
    {
        // A file that cannot be read is a project that is not listed; its daemon writes the file again.
        let read = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<ProjectEntry>(&bytes).ok());
        let Some(ProjectEntry { root }) = read else { continue };
        match Project::find(&root) {
            Ok(project) if project.root() == root && project.exists() => found.insert(root, project),
            // The folder was moved or removed.
            _ => {
                std::fs::remove_file(&path).ok();
                None
            }
        };
    }
    Ok(found.into_values().collect())
}

/// A file name for a folder, the same in every process.
pub fn name_of(root: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
