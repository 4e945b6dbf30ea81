//! Configuration, resolved once: defaults, then `hatchery.toml`, then `HATCHERY_*`, then flags. A wrong setting is an error that names
//! the setting, where it is set, and what would be right.

mod harnesses;
mod notifications;
mod prices;
mod quests;
mod seats;
mod settings_file;
mod takes_effect;
mod terminal;
mod worktrees;

use crate::harness::registry::built_in;
use crate::own_environment;
use crate::project::Project;
use crate::report::{Code, Report};
use crate::store::StoreUrl;
use crate::strict::{self, Given, Within};
use hatchery_core::permission::PermissionPolicy;
use hatchery_core::price::PriceTable;
use hatchery_core::run;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use harnesses::AcpAgent;
pub use notifications::Notify;
pub use quests::{Isolated, PROMPTS_FOLDER, Quests};
pub use seats::{Dialect, SeatDefaults, is_file_name};
pub use settings_file::SettingsFile;
pub use takes_effect::{TAKES_EFFECT, TakesEffect, WrittenSettings, changed};
pub use terminal::{Keys, Tui};
pub use worktrees::Worktrees;

/// What environment variables that are settings begin with.
const PREFIX: &str = "HATCHERY_";
/// Environment variables with this prefix that are not settings.
const NOT_SETTINGS: [&str; 13] = [
    "ascii",
    "page",
    "bless",
    "project",
    "seed",
    "seeds",
    "soak",
    "older",
    "attempt",
    "launcher",
    "sim_state",
    "safe_folders",
    "trust_all",
];

#[derive(Clone, Debug)]
pub struct Config {
    /// What the settings were read from.
    pub file: SettingsFile,
    pub listen: SocketAddr,
    pub store: StoreUrl,
    pub auth: Auth,
    /// Host names, besides loopback and bare addresses, under which the daemon may be asked.
    pub allowed_hosts: Vec<String>,
    pub open: bool,
    /// A command that is newer than the running daemon replaces it.
    pub replace_daemon: bool,
    pub log: String,
    pub heartbeat: Duration,
    pub request_timeout: Duration,
    pub max_connections: usize,
    pub max_body_bytes: usize,
    pub snapshot_every: u64,
    pub runs: Runs,
    pub quests: Quests,
    pub worktrees: Worktrees,
    pub seats: SeatDefaults,
    pub notify: Notify,
    pub tui: Tui,
    /// What tokens cost.
    pub prices: Arc<PriceTable>,
}

/// How agents are run, unless a command says otherwise.
#[derive(Clone, Debug)]
pub struct Runs {
    pub harness: String,
    pub claude_path: PathBuf,
    pub claude_args: Vec<String>,
    /// Leave out the MCP servers of the user and of the project.
    pub claude_strict: bool,
    pub codex_path: PathBuf,
    pub codex_args: Vec<String>,
    /// The agents that are spoken to by ACP, by the names of their harnesses.
    pub acp_agents: BTreeMap<String, AcpAgent>,
    /// What agents may do without asking; by the place they work in without.
    pub permissions: Option<PermissionPolicy>,
    /// What children get of the daemon's environment besides the usual.
    pub pass_env: Vec<String>,
    pub script: Option<String>,
    pub stall_ms: u64,
    pub kill_stuck: bool,
    pub retries: u32,
    pub park: bool,
    /// How many attempts have processes at once.
    pub max_runs: usize,
    pub stop_grace: Duration,
    /// How long the folder of an ended attempt is kept. Without this setting it is kept permanently.
    pub keep_runs: Option<Duration>,
}

impl Runs {
    /// The program that plays the agents of a harness. None if this program does it itself, or if there is no such harness.
    pub fn program(&self, harness: &str) -> Option<PathBuf> {
        match built_in(harness) {
            Some(entry) => Some((entry.program?.of)(self).to_owned()),
            None => self.acp_agents.get(harness)?.acp.first().map(PathBuf::from),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    Token,
    /// Every client that reaches the port may do everything. On loopback only.
    None,
}

/// What the command line says. It wins.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub listen: Option<String>,
    pub port: Option<u16>,
    pub store: Option<String>,
    pub no_open: bool,
    /// From `CLAUDE_CLI_PATH`, which others know as well.
    pub claude_path: Option<PathBuf>,
}

/// The settings as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    listen: Option<String>,
    port: Option<u16>,
    store: Option<String>,
    auth: Option<Auth>,
    allowed_hosts: Option<Vec<String>>,
    open: Option<bool>,
    replace_daemon: Option<bool>,
    log: Option<String>,
    heartbeat_ms: Option<Within<100, 300_000>>,
    request_timeout_ms: Option<Within<1_000, 600_000>>,
    max_connections: Option<Within<8, 1_000_000>>,
    max_body_bytes: Option<Within<4_096, { 64 << 20 }>>,
    snapshot_every: Option<Within<100, 10_000_000>>,
    #[serde(default)]
    harness: harnesses::HarnessSettings,
    claude_path: Option<PathBuf>,
    claude_args: Option<Vec<String>>,
    claude_strict: Option<bool>,
    codex_path: Option<PathBuf>,
    codex_args: Option<Vec<String>>,
    permissions: Option<PermissionPolicy>,
    pass_env: Option<Vec<String>>,
    script: Option<String>,
    stall_ms: Option<Within<{ run::MIN_STALL_MS }, { run::MAX_STALL_MS }>>,
    kill_stuck: Option<bool>,
    retries: Option<Within<0, { run::MAX_RETRIES as u64 }>>,
    park: Option<bool>,
    max_runs: Option<Within<1, 100_000>>,
    stop_grace_ms: Option<Within<0, 600_000>>,
    keep_runs_days: Option<Within<0, 36_500>>,
    #[serde(default)]
    quests: quests::QuestSettings,
    #[serde(default)]
    worktrees: worktrees::WorktreeSettings,
    #[serde(default)]
    seats: seats::SeatSettings,
    #[serde(default)]
    notify: notifications::NotifySettings,
    #[serde(default)]
    tui: terminal::TerminalSettings,
    #[serde(default)]
    prices: prices::PriceSettings,
}

impl Config {
    /// What counts where nothing is set.
    pub fn defaults(project: &Project) -> Result<Self, Report> {
        Settings::default().over_defaults(project, &Flags::default(), SettingsFile::missing(project))
    }

    pub fn resolve(project: &Project, flags: &Flags) -> Result<Self, Report> {
        let environment = own_environment::entries();
        let claude_path = flags.claude_path.clone().or_else(|| std::env::var_os("CLAUDE_CLI_PATH").map(PathBuf::from));
        Self::resolve_in(project, &Flags { claude_path, ..flags.clone() }, environment)
    }

    fn resolve_in(
        project: &Project,
        flags: &Flags,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Report> {
        let file = SettingsFile::read(project)?;
        let written = file.written()?;
        let environment: BTreeMap<String, String> =
            environment.into_iter().filter_map(|(name, value)| Some((setting(&name)?, value))).collect();
        let mut given: BTreeMap<String, Given> =
            written.into_iter().map(|(name, value)| (name, Given::Typed(value))).collect();
        for (name, value) in &environment {
            let value = harnesses::over(name, given.remove(name), value);
            given.insert(name.clone(), value);
        }
        let settings: Settings = strict::read(Given::Fields(given.into_iter().collect())).map_err(|wrong| {
            let name = wrong.path.split(['.', '[']).next().unwrap_or_default();
            let place = match environment.contains_key(name) {
                true => format!("the environment variable {PREFIX}{}", name.to_uppercase()),
                false => file.path.display().to_string(),
            };
            // What is written in the wrong place may be a secret.
            let wrong = wrong.without_values();
            let report = Report::new(Code::Usage, format_args!("{place}: {}", wrong.message()));
            wrong.hint().into_iter().fold(report, |report, hint| report.hint(hint))
        })?;
        settings.over_defaults(project, flags, file)
    }
}

/// The setting that an environment variable sets, if it sets one.
fn setting(variable: &str) -> Option<String> {
    let name = variable.strip_prefix(PREFIX)?.to_lowercase();
    (!NOT_SETTINGS.contains(&name.as_str())).then_some(name)
}

impl Settings {
    fn over_defaults(self, project: &Project, flags: &Flags, file: SettingsFile) -> Result<Config, Report> {
        let usage = |message: String| Report::new(Code::Usage, message);
        let listen = flags.listen.clone().or(self.listen);
        let mut listen = match listen.as_deref() {
            None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            Some(text) => parse_listen(text).ok_or_else(|| {
                usage("`listen` is not an address to listen on".into())
                    .hint("use an IP address, for example 127.0.0.1 or 127.0.0.1:8080")
            })?,
        };
        if let Some(port) = flags.port.or(self.port) {
            listen.set_port(port);
        }
        let store = match flags.store.clone().or(self.store) {
            None => StoreUrl::Sqlite(project.database_file()),
            Some(text) => match text.parse().map_err(|error| usage(format!("{error}")))? {
                StoreUrl::Sqlite(path) => StoreUrl::Sqlite(project.root().join(path)),
                shared @ StoreUrl::Postgres(_) => shared,
            },
        };
        let auth = self.auth.unwrap_or(Auth::Token);
        if auth == Auth::None && !listen.ip().is_loopback() {
            return Err(usage(format!("without a token the daemon may not listen on {}", listen.ip()))
                .hint("remove auth = \"none\", or listen on 127.0.0.1"));
        }
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let keep_days = self.keep_runs_days.map_or(30, |it| it.0);
        let runs = Runs {
            harness: self.harness.usual().unwrap_or_else(|| "claude".into()),
            claude_path: flags.claude_path.clone().or(self.claude_path).unwrap_or_else(|| "claude".into()),
            claude_args: self.claude_args.unwrap_or_default(),
            claude_strict: self.claude_strict.unwrap_or(false),
            codex_path: self.codex_path.unwrap_or_else(|| "codex".into()),
            codex_args: self.codex_args.unwrap_or_default(),
            acp_agents: self.harness.acp_agents()?,
            permissions: self.permissions,
            pass_env: self.pass_env.unwrap_or_default(),
            script: self.script,
            stall_ms: self.stall_ms.map_or(600_000, |it| it.0),
            kill_stuck: self.kill_stuck.unwrap_or(false),
            retries: u32::try_from(self.retries.map_or(3, |it| it.0)).unwrap_or(run::MAX_RETRIES),
            park: self.park.unwrap_or(true),
            max_runs: self.max_runs.map_or_else(usual_max_runs, |it| count(it.0)),
            stop_grace: Duration::from_millis(self.stop_grace_ms.map_or(5_000, |it| it.0)),
            keep_runs: (keep_days > 0).then(|| Duration::from_secs(keep_days * 24 * 3_600)),
        };
        Ok(Config {
            file,
            runs,
            quests: self.quests.over_defaults()?,
            worktrees: self.worktrees.over_defaults(),
            seats: self.seats.over_defaults(project.root())?,
            notify: self.notify.over_defaults()?,
            tui: self.tui.over_defaults()?,
            prices: Arc::new(self.prices.over_defaults()?),
            listen,
            store,
            auth,
            allowed_hosts: self.allowed_hosts.unwrap_or_default(),
            open: self.open.unwrap_or(true) && !flags.no_open,
            replace_daemon: self.replace_daemon.unwrap_or(false),
            log: self.log.unwrap_or_else(|| "info".into()),
            heartbeat: Duration::from_millis(self.heartbeat_ms.map_or(15_000, |it| it.0)),
            request_timeout: Duration::from_millis(self.request_timeout_ms.map_or(30_000, |it| it.0)),
            max_connections: count(self.max_connections.map_or(4_096, |it| it.0)),
            max_body_bytes: count(self.max_body_bytes.map_or(8 << 20, |it| it.0)),
            snapshot_every: self.snapshot_every.map_or(10_000, |it| it.0),
        })
    }
}

/// An agent mostly waits for its model, so there may be many more than cores. The floor lets a small machine run a family of agents
/// of which the parents wait for their children.
fn usual_max_runs() -> usize {
    const FOR_EACH_CORE: usize = 8;
    const LEAST: usize = 32;
    std::thread::available_parallelism().map_or(LEAST, |cores| (cores.get() * FOR_EACH_CORE).max(LEAST))
}

fn parse_listen(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, 0)))
}

/// The settings of seats in a text, for tests.
#[cfg(test)]
pub(crate) fn seats_of(toml: &str) -> SeatDefaults {
    let settings: Settings = toml::from_str(toml).expect("a test's settings are right");
    settings.seats.over_defaults(std::path::Path::new("/mill")).expect("a test's settings are right")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn resolve(toml: &str, environment: &[(&str, &str)], flags: &Flags) -> Result<Config, Report> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hatchery.toml"), toml).unwrap();
        let project = Project::find(folder.path()).unwrap();
        let environment = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Config::resolve_in(&project, flags, environment)
    }

    #[test]
    fn flags_win_over_the_environment_and_that_over_the_file() {
        let toml = "port = 1\nmax_connections = 100\nstore = 'sqlite:a.db'";
        let flags = Flags { port: Some(3), ..Flags::default() };
        let config = resolve(toml, &[("HATCHERY_PORT", "2"), ("HATCHERY_MAX_CONNECTIONS", "200")], &flags).unwrap();
        assert_eq!((config.listen.port(), config.max_connections), (3, 200));
        assert!(config.store.to_string().ends_with("/a.db"));
    }

    /// serde lists the known fields when it refuses an unknown one.
    #[test]
    fn the_page_of_settings_lists_every_key_and_no_other() {
        let refused = serde_json::from_str::<Settings>(r#"{"no such key": 1}"#).unwrap_err().to_string();
        let known = refused.split_once("expected one of").unwrap().1.split('`').skip(1).step_by(2);
        let page = include_str!("../../docs/settings.md");
        let table = page.split_once("| Key |").unwrap().1.split_once("\n\n").unwrap().0;
        let listed = table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        assert_eq!(listed.collect::<BTreeSet<_>>(), known.collect::<BTreeSet<_>>());
    }

    #[test]
    fn the_page_of_settings_says_when_each_counts() {
        let page = include_str!("../../docs/settings.md");
        let table = page.split_once("| Key |").unwrap().1.split_once("\n\n").unwrap().0;
        let said = |row: &str| {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let counts = cells.into_iter().rfind(|cell| TAKES_EFFECT.iter().any(|(_, when)| when.to_string() == *cell));
            (row.split('`').nth(1).unwrap().to_owned(), counts.unwrap_or_default().to_owned())
        };
        let shown: BTreeSet<_> = table.lines().filter(|row| row.starts_with("| `")).map(said).collect();
        let known: BTreeSet<_> =
            TAKES_EFFECT.iter().map(|(name, when)| ((*name).to_owned(), when.to_string())).collect();
        assert_eq!(shown, known);
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let error = resolve("prot = 1", &[], &Flags::default()).unwrap_err();
        assert_eq!(error.code, Code::Usage);
        assert!(error.to_string().contains("did you mean `port`?"), "{error}");
        // What the terminal reads by itself is no setting, and no mistake.
        resolve("", &[("HATCHERY_ASCII", "1")], &Flags::default()).unwrap();
        let error = resolve("", &[("HATCHERY_STORES", "x")], &Flags::default()).unwrap_err();
        assert!(error.to_string().contains("HATCHERY_STORES: `stores` is not known"), "{error}");
        assert!(error.to_string().contains("`store`"), "{error}");
    }

    #[test]
    fn a_variable_is_text_that_stands_for_any_type() {
        let set =
            [("HATCHERY_OPEN", "no"), ("HATCHERY_PASS_ENV", "A, B"), ("HATCHERY_LOG", "1"), ("HATCHERY_RETRIES", "7")];
        let config = resolve("", &set, &Flags::default()).unwrap();
        assert_eq!((config.open, config.log.as_str(), config.runs.retries), (false, "1", 7));
        assert_eq!(config.runs.pass_env, ["A", "B"]);
        let error = resolve("", &[("HATCHERY_PORT", "high")], &Flags::default()).unwrap_err().to_string();
        assert!(error.contains("HATCHERY_PORT: `port` must be a whole number from 0 to 65535, not a text"), "{error}");
    }

    /// A secret in the wrong place, or in a place that is wrong in another way. Errors are logged.
    #[test]
    fn no_value_of_a_setting_is_repeated() {
        const SECRET: &str = "s3cret";
        for (toml, setting) in [
            ("claude_args = 's3cret'", "`claude_args` must be a list"),
            ("claude_args = { token = 's3cret' }", "`claude_args` must be a list"),
            ("claude_args = ['--x', ['s3cret']]", "`claude_args[1]` must be a text"),
            ("codex_args = 's3cret'", "`codex_args` must be a list"),
            ("pass_env = { TOKEN = 's3cret' }", "`pass_env` must be a list"),
            ("env = { TOKEN = 's3cret' }", "`env` is not known"),
            ("port = 's3cret'", "`port` must be a whole number"),
            ("auth = 's3cret'", "`auth` must be \"token\" or \"none\""),
            ("auth = { token = 's3cret' }", "`auth.token` must be \"token\" or \"none\""),
            ("auth = ['s3cret']", "`auth` must be \"token\" or \"none\""),
            ("permissions = 's3cret'", "`permissions` must be"),
            ("listen = 's3cret'", "`listen` is not an address"),
            ("store = { url = 's3cret' }", "`store` must be a text"),
            ("notify = 's3cret'", "`notify` must be a table"),
            ("[notify]\nwebhook = 's3cret'", "`notify.webhook` is not an address"),
            ("[notify]\nwebhook = ['s3cret']", "`notify.webhook` must be a text"),
            ("[notify]\ndesktop = 's3cret'", "`notify.desktop` must be true or false"),
            ("[notify]\non = ['s3cret']", "`notify.on[0]` must be"),
            ("[notify]\non = 's3cret'", "`notify.on` must be a list"),
            ("[notify]\npace_ms = 's3cret'", "`notify.pace_ms` must be a whole number"),
            ("[harness.goose]\nacp = 's3cret'", "`harness.goose.acp` must be a list"),
            ("[harness]\ngoose = 's3cret'", "`harness.goose` must be a table"),
            ("[worktrees]\nsetup = ['s3cret']", "`worktrees.setup` must be a text"),
            ("[worktrees]\ncopy = 's3cret'", "`worktrees.copy` must be a list"),
            ("[seats]\nhuman = 's3cret/'", "`seats.human` cannot be the name of a file"),
            ("[seats]\nmode = 's3cret'", "`seats.mode` must be"),
            ("[tui.keys]\nfork = 's3cret'", "`tui.keys.fork` is not one letter"),
            ("[prices.house]\ninput = 's3cret'\noutput = 1", "`prices.house.input` must be"),
            ("[prices]\nhouse = 's3cret'", "`prices.house` must be a table"),
            ("[quests]\nroles = 's3cret'", "`quests.roles` must be a list"),
            ("[quests.roles.siegemaster]\nprompt = ['s3cret']", "`quests.roles.siegemaster.prompt` must be a text"),
        ] {
            let error = resolve(toml, &[], &Flags::default()).unwrap_err();
            let told = format!("{error} {:?}", error.hint);
            assert!(told.contains(setting), "{toml} does not say {setting}: {told}");
            assert!(!told.contains(SECRET), "{toml}: {told}");
        }
        let error = resolve("", &[("HATCHERY_RETRIES", SECRET)], &Flags::default()).unwrap_err().to_string();
        assert!(error.contains("`retries` must be a whole number") && !error.contains(SECRET), "{error}");
        // A number may be a password, too, unless a number is wanted.
        let error = resolve("claude_args = 4711", &[], &Flags::default()).unwrap_err().to_string();
        assert!(error.contains("`claude_args` must be a list") && !error.contains("4711"), "{error}");
        let error = resolve("port = 4711000", &[], &Flags::default()).unwrap_err().to_string();
        assert!(error.contains("not 4711000"), "{error}");
    }

    #[test]
    fn without_a_token_only_loopback_is_possible() {
        assert!(resolve("auth = 'none'", &[], &Flags::default()).is_ok());
        let error = resolve("auth = 'none'\nlisten = '0.0.0.0'", &[], &Flags::default()).unwrap_err();
        assert!(error.to_string().contains("may not listen on 0.0.0.0"), "{error}");
    }

    #[test]
    fn nonsense_is_an_error_that_says_where() {
        for toml in [
            "port = 'x'",
            "port = 70000",
            "auth = 'maybe'",
            "listen = 'nowhere'",
            "max_connections = 1",
            "port =",
            "store = 'mysql://x'",
        ] {
            let error = resolve(toml, &[], &Flags::default()).unwrap_err();
            assert_eq!(error.code, Code::Usage, "{toml}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_with_quests_is_told_by_key_value_and_what_would_be_right() {
        for (toml, expected) in [
            ("slot = 2", &["`quests.slot` is not known", "did you mean `quests.slots`?"][..]),
            ("slots = 0", &["`quests.slots` must be a whole number from 1 to 64, not 0"]),
            ("slots = -1", &["from 1 to 64, not a negative number"]),
            ("slots = 'many'", &["from 1 to 64, not a text"]),
            ("ward = 3", &["`quests.ward` must be a text, not a whole number"]),
            ("ward_limit_ms = 1", &["`quests.ward_limit_ms`", "from 1000 to 86400000"]),
            ("isolation = 'docker'", &["`quests.isolation` must be \"worktree\" or \"none\", not another text"]),
            ("approve_plan = 'yes'", &["`quests.approve_plan` must be true or false, not a text"]),
            ("prompts = ['a']", &["`quests.prompts` must be a path"]),
            (
                "paths = 1",
                &["`quests.paths` must be a table with: requirements, plan, work, review, not a whole number"],
            ),
            ("[quests.paths]\nwrok = []", &["`quests.paths.wrok`", "did you mean `quests.paths.work`?"]),
            ("[quests.paths]\nwork = 'codeweaver'", &["`quests.paths.work` must be a list", "not a text"]),
            ("[quests.paths]\nwork = [1]", &["`quests.paths.work[0]` must be a text, not a whole number"]),
            ("roles = 1", &["`quests.roles` must be a list"]),
            (
                "roles = [1]",
                &[
                    "`quests.roles[0]` must be a table with: name, may, calls, prompt, permissions, harness, model, not a whole number",
                ],
            ),
            ("[[quests.roles]]\nname = 'x'", &["`quests.roles[0].may` is missing"]),
            (
                "[[quests.roles]]\nname = 'x'\nmay = ['compleet']",
                &["`quests.roles[0].may[0]` must be \"complete\" or", "did you mean \"complete\"?"],
            ),
            ("[[quests.roles]]\nnmae = 'x'", &["did you mean `quests.roles[0].name`?"]),
            ("[quests.roles.siegemaster]\nharnes = 'x'", &["did you mean `quests.roles.siegemaster.harness`?"]),
        ] {
            let error = resolve(&format!("[quests]\n{toml}"), &[], &Flags::default()).unwrap_err();
            assert_eq!(error.code, Code::Usage, "{toml}: {error}");
            for words in expected {
                assert!(error.to_string().contains(words), "{toml} does not say {words}: {error}");
            }
            assert!(error.to_string().contains("hatchery.toml"), "{toml}: {error}");
        }
    }

    #[test]
    fn a_role_can_have_a_harness_and_a_model_of_its_own() {
        let toml = "[quests.roles.siegemaster]\nharness = 'codex'\nmodel = 'gpt-5.5'";
        let table = resolve(toml, &[], &Flags::default()).unwrap().quests.table;
        let role = table.role("siegemaster").unwrap();
        assert_eq!((role.harness.as_deref(), role.model.as_deref()), (Some("codex"), Some("gpt-5.5")));
        assert!(!role.may.is_empty() && table.role("codeweaver").unwrap().harness.is_none());
        let error = resolve("[quests.roles.bard]\nharness = 'x'", &[], &Flags::default()).unwrap_err().to_string();
        assert!(error.contains("`quests.roles.bard` is not known: there are chaoswhisperer"), "{error}");
    }

    #[test]
    fn every_setting_of_quests_is_known_by_its_name() {
        let toml = "[quests]\nslots=2\nward='w'\nward_limit_ms=1000\nisolation='none'\napprove_plan=true\nprompts='p'\n\
                    mender='x'\nplanner='x'\nrequirer='x'\n[quests.paths]\nrequirements=['x']\nplan=['x']\nwork=['x','ward']\n\
                    review=[]\n[[quests.roles]]\nname='x'\nmay=['complete','partially-complete','needs-user-input',\
                    'needs-role-followup']\ncalls=['x']\nprompt='do it'";
        let quests = resolve(toml, &[], &Flags::default()).unwrap().quests;
        assert_eq!((quests.slots, quests.ward.as_deref(), quests.table.mender.as_str()), (2, Some("w"), "x"));
        assert_eq!((quests.isolation, quests.approve_plan), (Some(Isolated::None), true));
    }

    #[test]
    fn a_project_has_agents_of_its_own_that_speak_acp() {
        let toml = "[harness]\ndefault = 'goose'\n[harness.goose]\nacp = ['goose', 'acp']\n\
                    [harness.opencode]\nacp = ['/opt/opencode', 'acp', '--pure']";
        let runs = resolve(toml, &[], &Flags::default()).unwrap().runs;
        assert_eq!((runs.harness.as_str(), runs.acp_agents["goose"].acp.len()), ("goose", 2));
        assert_eq!(runs.acp_agents["opencode"].acp[0], "/opt/opencode");
        assert!(runs.acp_agents.contains_key("gemini"));
        assert_eq!(runs.program("opencode"), Some("/opt/opencode".into()));
        assert_eq!((runs.program("codex"), runs.program("scripted")), (Some("codex".into()), None));
        let runs = resolve(toml, &[("HATCHERY_HARNESS", "codex")], &Flags::default()).unwrap().runs;
        assert_eq!((runs.harness.as_str(), runs.acp_agents["goose"].acp.len()), ("codex", 2));
        let wrong = |toml| resolve(toml, &[], &Flags::default()).unwrap_err().to_string();
        assert!(wrong("[harness.claude]\nacp = ['x']").contains("`harness.claude` is built in"));
        assert!(wrong("[harness.goose]\nacp = []").contains("`harness.goose` needs a program"));
        assert!(wrong("[harness.goose]\nacpx = []").contains("`harness.goose.acpx` is not known"));
        assert!(wrong("harness = 1").contains("`harness` must be the name of a harness"));
    }

    #[test]
    fn a_project_has_prices_of_its_own() {
        let toml =
            "[prices.house]\ninput = 1\noutput = 2.5\n[prices.\"claude-opus-5.5\"]\ninput=1\noutput=1\ncache_read=0.5";
        let prices = resolve(toml, &[], &Flags::default()).unwrap().prices;
        let house = prices.of("house").unwrap();
        assert_eq!((house.output.nanodollars, house.cache_read.nanodollars), (2_500_000_000, 1_000_000_000));
        assert_eq!(prices.of("claude-opus-5.5").unwrap().cache_read.nanodollars, 500_000_000);
        let wrong = |toml| resolve(toml, &[], &Flags::default()).unwrap_err().to_string();
        let error = wrong("[prices.house]\ninput = -1\noutput = 1");
        assert!(error.contains("`prices.house.input` must be 0 to 100000 dollars, not -1"), "{error}");
        let error = wrong("[prices.house]\ninput = 1");
        assert!(error.contains("`prices.house.output` is missing"), "{error}");
        let error = wrong("[prices.house]\ninput = 1\noutput = 1\ncached = 1");
        assert!(error.contains("`prices.house.cached` is not known"), "{error}");
    }

    #[test]
    fn every_setting_is_known_by_its_name() {
        let toml = "listen='127.0.0.1'\nport=1\nstore='x'\nauth='token'\nallowed_hosts=['h']\nopen=false\nreplace_daemon=true\nlog='warn'\n\
                    heartbeat_ms=1000\nrequest_timeout_ms=1000\nmax_connections=10\nmax_body_bytes=5000\nsnapshot_every=100\n\
                    harness='scripted'\nclaude_path='/x'\nclaude_args=['a']\nclaude_strict=true\n\
                    codex_path='/y'\ncodex_args=['a']\n\
                    permissions='edits'\npass_env=['B']\nscript='s'\nstall_ms=1000\n\
                    kill_stuck=true\nretries=1\npark=false\nmax_runs=5\nstop_grace_ms=0\nkeep_runs_days=0\nquests={slots=2}\n\
                    worktrees={setup='true',setup_limit_ms=1000,copy=['.env'],by_products=['dist/']}\n\
                    seats={mode='lead',hatch_ms=1,transcript_chars=1000,human='h',dialect='julian',team='t',teams='x'}\n\
                    notify={desktop=true,command='true',webhook='http://localhost/x',on=['question','failure'],pace_ms=0}\n\
                    prices={house={input=1,output=2.5}}\n\
                    tui={bell=true,motion=false,mouse=true,follow_fork=false,keys={fork='g'}}";
        resolve(toml, &[], &Flags::default()).unwrap();
        let error = resolve("nonsense = 1", &[], &Flags::default()).unwrap_err();
        let known = error.hint.unwrap().split_once("Known are: ").unwrap().1.split(", ").count();
        assert_eq!(toml.lines().count(), known, "every setting is tried here");
    }
}
