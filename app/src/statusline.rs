//! The status line: one or two lines about a project, for the prompt of a terminal program. Reads what it finds and shows what it can:
//! nothing that a file may hold is an error here. Needs no daemon, and starts nothing.

use crate::cli::terminal::reorders;
use crate::context_use;
use crate::glance::Glance;
use crate::project::Project;
use crate::state_file::{StatusFolder, read_bounded};
use hatchery_core::idea_inbox::{IdeaInbox, ItemStatus};
use hatchery_core::status::foreign;
use hatchery_core::status::view::{ChunkProgress, Share};
use hatchery_core::status::{MAX_DOCUMENT_BYTES, Path as StatusPath, StatusDocument};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Settings and heads are small; more is not what it seems to be.
const MAX_SMALL_BYTES: usize = 1024 * 1024;
/// No field takes more of the line than this.
const MAX_FIELD_CHARS: usize = 80;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const MAGENTA: &str = "35";
const CYAN: &str = "36";
const DIM: &str = "2";

/// What the terminal program says about its session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusLineInput {
    pub folder: Option<PathBuf>,
    /// Percent of the context window in use.
    pub context: Option<f64>,
}

/// What is known about the project.
#[derive(Debug, Default)]
pub struct Facts {
    pub name: String,
    pub version: Option<String>,
    pub branch: Option<String>,
    pub spec_version: Option<String>,
    pub context: Option<f64>,
    /// True if the project has the folder `.fctry`.
    pub has_status: bool,
    pub has_spec: bool,
    /// True if the folder has more than what Hatchery puts there.
    pub uses_fctry: bool,
    pub state: StatusDocument,
    /// Why the state cannot be shown.
    pub trouble: Option<&'static str>,
    pub pending_ideas: usize,
    /// What the agents do, if a daemon runs.
    pub glance: Option<Glance>,
    /// The project whose status this is.
    pub project: Option<Project>,
}

impl StatusLineInput {
    /// Reads the JSON that Claude Code writes to a status line's standard input. Whatever cannot be read is left out.
    pub fn read(text: &str) -> Self {
        let Ok(session) = StatusDocument::parse(text) else { return Self::default() };
        let at = |path: &str| session.get(&path.parse::<StatusPath>().ok()?);
        let folder =
            ["workspace.current_dir", "cwd"].iter().find_map(|path| at(path)?.words().filter(|it| !it.is_empty()));
        let context = at("context_window.used_percentage").and_then(|used| used.text().parse::<f64>().ok());
        Self { folder: folder.map(PathBuf::from), context: context.filter(|used| used.is_finite()) }
    }
}

impl Facts {
    /// Looks at the project that a folder belongs to.
    pub fn gather(session: &StatusLineInput, current: &Path) -> Self {
        let start = session.folder.as_deref().unwrap_or(current);
        let marked = |folder: &&Path| [".fctry", ".hatchery", ".git"].iter().any(|mark| folder.join(mark).exists());
        let root = start.ancestors().find(marked).unwrap_or(start);
        // The root of a worktree: its status may be that of another folder.
        let linked = root.join(".git").is_file().then(|| Project::find_for_status(root).ok()).flatten();
        let status_root = linked.as_ref().map_or(root, Project::root);
        let folder = StatusFolder::of(status_root);
        let project = Project::find(status_root).ok();
        let (mut state, trouble) = match read_bounded(&folder.state_file(), MAX_DOCUMENT_BYTES) {
            Ok(None) => (StatusDocument::default(), None),
            Ok(Some(bytes)) => match StatusDocument::parse(&String::from_utf8_lossy(&bytes)) {
                Ok(state) => (state, None),
                Err(_) => (StatusDocument::default(), Some("state.json is damaged")),
            },
            Err(_) => (StatusDocument::default(), Some("state.json cannot be read")),
        };
        if foreign::lacks_run(&state)
            && let Some(kept) = project.as_ref().and_then(|project| StatusFolder::of_project(project).noted_run())
        {
            foreign::restore(&mut state, &kept);
        }
        let config = small(&folder.path().join("config.json"))
            .and_then(|text| StatusDocument::parse(&text).ok())
            .unwrap_or_default();
        let version = |name: &str| config.get(&format!("versions.{name}.current").parse().ok()?)?.words();
        let inbox = read_bounded(&folder.inbox_file(), MAX_DOCUMENT_BYTES).ok().flatten();
        let inbox = inbox.and_then(|bytes| IdeaInbox::parse(&String::from_utf8_lossy(&bytes)).ok()).unwrap_or_default();
        Self {
            name: root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_else(|| "/".into()),
            version: version("external"),
            branch: branch(root),
            spec_version: version("spec").or_else(|| state.words("specVersion")),
            context: session.context,
            has_status: folder.path().is_dir(),
            has_spec: folder.path().join("spec.md").is_file(),
            uses_fctry: folder.path().join("config.json").is_file() || state.words("currentCommand").is_some(),
            pending_ideas: inbox.items().iter().filter(|item| item.status == ItemStatus::Pending).count(),
            glance: project.as_ref().and_then(Glance::read),
            state,
            trouble,
            project,
        }
    }

    /// Remembers what only the status line is told.
    pub fn remember(&self) {
        if let (Some(project), Some(context)) = (&self.project, self.context) {
            context_use::note(project, context);
        }
    }

    /// The line, or two, without a line break at the end.
    pub fn render(&self, colours: bool) -> String {
        let ink = Paint { colours };
        let first = self.first_row(&ink);
        let second = self.second_row(&ink);
        let between = format!(" {} ", ink.paint(DIM, "│"));
        let mut line = first.join(&between);
        if !second.is_empty() {
            line.push('\n');
            line.push_str(&second.join(&between));
        }
        line
    }

    fn first_row(&self, ink: &Paint) -> Vec<String> {
        let version = self.version.as_deref().map(|version| format!(" {}", shown(version.trim_start_matches('v'))));
        let mut row = vec![format!("{}{}", shown(&self.name), version.unwrap_or_default())];
        row.extend(self.branch.as_deref().map(|branch| format!("⎇ {}", shown(branch))));
        row.extend(self.spec_version.as_deref().map(|version| format!("§ {}", shown(version))));
        row.extend(self.context.map(|used| {
            let used = used.clamp(0.0, 100.0);
            let colour = if used >= 90.0 {
                RED
            } else if used >= 70.0 {
                YELLOW
            } else {
                GREEN
            };
            ink.paint(colour, &format!("◔ {used:.0}%"))
        }));
        row
    }

    fn second_row(&self, ink: &Paint) -> Vec<String> {
        let state = &self.state;
        let mut row = Vec::new();
        row.extend(self.trouble.map(|trouble| ink.paint(RED, &format!("✗ {trouble}"))));
        if let Some(glance) = &self.glance {
            if glance.questions > 0 {
                row.push(ink.paint(YELLOW, &format!("? {}", glance.questions)));
            }
            if glance.running > 0 {
                row.push(ink.paint(GREEN, &format!("● {}", glance.running)));
            }
            if glance.nanodollars > 0 {
                row.push(ink.paint(DIM, &format!("${:.2}", glance.nanodollars as f64 / 1e9)));
            }
        }
        let command = state.words("currentCommand");
        if let Some(command) = &command {
            let scan = state.scan_progress().filter(|_| command == "review");
            let scan = scan.map(|scan| format!(" scanning {}/{}", scan.done, scan.total)).unwrap_or_default();
            let step = state.words("workflowStep").map(|step| format!(" {}", ink.paint(DIM, &shown(&step))));
            row.push(format!("{}{scan}{}", ink.paint(CYAN, &shown(command)), step.unwrap_or_default()));
        }
        row.extend(state.chunk_progress().map(|progress| chunks(&progress, ink)));
        row.extend(state.active_section().map(|section| {
            let number = section.number.map(|number| format!(" ({})", shown(&number))).unwrap_or_default();
            ink.paint(MAGENTA, &format!("{}{number}", shown(&section.alias)))
        }));
        row.extend(state.scenario_score().map(|score| {
            let ink_of = if score.done == 0 { DIM } else { colour_of(score) };
            ink.paint(ink_of, &format!("✓ {}/{}", score.done, score.total))
        }));
        row.extend(
            state.readiness().map(|ready| ink.paint(colour_of(ready), &format!("◆ {}/{}", ready.done, ready.total))),
        );
        let untracked = state.untracked_changes();
        if untracked > 0 {
            row.push(ink.paint(YELLOW, &format!("△ {untracked}")));
        }
        if self.pending_ideas > 0 {
            row.push(ink.paint(CYAN, &format!("✉ {}", self.pending_ideas)));
        }
        let next = state.words("nextStep").or_else(|| self.advice().filter(|_| command.is_none()));
        row.extend(next.map(|next| format!("› {}", shown(&next))));
        row
    }

    /// What to do next, if the state does not say it.
    fn advice(&self) -> Option<String> {
        // The advice is for users of fctry, and a folder alone is none of its traces.
        if !self.has_status || self.trouble.is_some() || !(self.has_spec || self.uses_fctry) {
            return None;
        }
        let state = &self.state;
        let ready = state
            .get(&"readinessSummary.ready-to-build".parse().ok()?)
            .and_then(|count| count.text().parse::<u64>().ok());
        let score = state.scenario_score();
        Some(match (score, ready) {
            _ if !self.has_spec => "/fctry:init to create a spec".into(),
            _ if state.untracked_changes() > 0 => "/fctry:evolve to take recent changes into the spec".into(),
            (Some(score), _) if score.done >= score.total => {
                "/fctry:review to confirm that all scenarios are satisfied".into()
            }
            (_, Some(ready)) if ready > 0 => format!("/fctry:execute to build {ready} specced sections"),
            (Some(_), _) => "/fctry:execute to satisfy the remaining scenarios".into(),
            _ => "/fctry:evolve to refine, or /fctry:execute to build".into(),
        })
    }
}

struct Paint {
    colours: bool,
}

impl Paint {
    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\u{1b}[{colour}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn chunks(progress: &ChunkProgress, ink: &Paint) -> String {
    match progress {
        ChunkProgress::Current(share) => format!("▶ {}/{}", share.done, share.total),
        ChunkProgress::Chunks { completed, active, failed, total, retry } => {
            let mut line = format!("▶ {completed}");
            let wrote = match (active, retry) {
                (0, _) => Ok(()),
                (active, Some(attempt)) if *attempt > 1 => write!(line, "+{active}(r{attempt})"),
                (active, _) => write!(line, "+{active}"),
            };
            wrote.and_then(|()| write!(line, "/{total}")).expect("a string takes what it is given");
            if *failed > 0 {
                line.push(' ');
                line.push_str(&ink.paint(RED, &format!("{failed}✗")));
            }
            line
        }
    }
}

fn colour_of(share: Share) -> &'static str {
    let ratio = share.done as f64 / share.total.max(1) as f64;
    if ratio >= 0.8 {
        GREEN
    } else if ratio >= 0.5 {
        YELLOW
    } else {
        RED
    }
}

/// A text on one line, within bounds, that neither drives the terminal nor changes the order of what is shown beside it.
fn shown(text: &str) -> String {
    let plain = text.chars().map(|char| if char.is_whitespace() { ' ' } else { char });
    let clean = plain.filter(|char| !char.is_control() && !reorders(*char));
    let mut kept: String = clean.clone().take(MAX_FIELD_CHARS).collect();
    if clean.count() > MAX_FIELD_CHARS {
        kept.push('…');
    }
    kept.trim().to_owned()
}

/// The branch that is checked out, or the beginning of the commit. A worktree has a file that names its folder.
fn branch(root: &Path) -> Option<String> {
    let git = root.join(".git");
    let folder = match small(&git) {
        Some(link) => root.join(link.trim().strip_prefix("gitdir:")?.trim()),
        None => git,
    };
    let head = small(&folder.join("HEAD"))?;
    let head = head.trim();
    let name = head.strip_prefix("ref:").map(str::trim);
    Some(name.map_or_else(|| head.chars().take(7).collect(), |name| name.trim_start_matches("refs/heads/").to_owned()))
        .filter(|branch: &String| !branch.is_empty())
}

fn small(path: &Path) -> Option<String> {
    String::from_utf8(read_bounded(path, MAX_SMALL_BYTES).ok().flatten()?).ok()
}
