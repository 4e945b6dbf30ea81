//! Configuration, resolved once: defaults, then `hatchery.toml`, then `HATCHERY_*`, then flags. A key that nobody knows is
//! an error that names the nearest known one.

mod quests;
mod shape;

use crate::nearest::nearest;
use crate::project::Project;
use crate::report::{Code, Report};
use crate::store::StoreUrl;
use config::{Environment, File, FileFormat, Source as _};
use hatchery_core::run;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use quests::{Isolated, Quests};

/// Environment variables with our prefix that are not settings.
const NOT_SETTINGS: [&str; 7] = ["project", "seed", "seeds", "soak", "attempt", "launcher", "sim_state"];

#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    pub store: StoreUrl,
    pub auth: Auth,
    /// Host names, besides loopback and bare addresses, under which the daemon may be asked.
    pub allowed_hosts: Vec<String>,
    pub open: bool,
    pub log: String,
    pub heartbeat: Duration,
    pub request_timeout: Duration,
    pub max_connections: usize,
    pub max_body_bytes: usize,
    pub snapshot_every: u64,
    pub runs: Runs,
    pub quests: Quests,
}

/// How agents are run, unless a command says otherwise.
#[derive(Clone, Debug)]
pub struct Runs {
    pub harness: String,
    pub claude_path: PathBuf,
    pub claude_args: Vec<String>,
    /// What children get of the daemon's environment besides the usual.
    pub pass_env: Vec<String>,
    pub script: Option<String>,
    pub stall_ms: u64,
    pub kill_stuck: bool,
    pub retries: u32,
    pub park: bool,
    pub stop_grace: Duration,
    /// How long the folder of an attempt that is over stays; for ever without.
    pub keep_runs: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    Token,
    /// Whoever reaches the port may do everything. On loopback only.
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
struct Settings {
    listen: Option<String>,
    port: Option<u16>,
    store: Option<String>,
    auth: Option<Auth>,
    allowed_hosts: Option<Vec<String>>,
    open: Option<bool>,
    log: Option<String>,
    heartbeat_ms: Option<u64>,
    request_timeout_ms: Option<u64>,
    max_connections: Option<usize>,
    max_body_bytes: Option<usize>,
    snapshot_every: Option<u64>,
    harness: Option<String>,
    claude_path: Option<PathBuf>,
    claude_args: Option<Vec<String>>,
    pass_env: Option<Vec<String>>,
    script: Option<String>,
    stall_ms: Option<u64>,
    kill_stuck: Option<bool>,
    retries: Option<u32>,
    park: Option<bool>,
    stop_grace_ms: Option<u64>,
    keep_runs_days: Option<u64>,
    #[serde(default)]
    quests: quests::Settings,
}

const KNOWN: [&str; 24] = [
    "listen",
    "port",
    "store",
    "auth",
    "allowed_hosts",
    "open",
    "log",
    "heartbeat_ms",
    "request_timeout_ms",
    "max_connections",
    "max_body_bytes",
    "snapshot_every",
    "harness",
    "claude_path",
    "claude_args",
    "pass_env",
    "script",
    "stall_ms",
    "kill_stuck",
    "retries",
    "park",
    "stop_grace_ms",
    "keep_runs_days",
    "quests",
];

impl Config {
    /// What counts where nothing is set.
    pub fn defaults(project: &Project) -> Result<Self, Report> {
        Settings::default().over_defaults(project, &Flags::default())
    }

    pub fn resolve(project: &Project, flags: &Flags) -> Result<Self, Report> {
        let environment = std::env::vars().collect();
        let claude_path = flags.claude_path.clone().or_else(|| std::env::var_os("CLAUDE_CLI_PATH").map(PathBuf::from));
        Self::resolve_in(project, &Flags { claude_path, ..flags.clone() }, environment)
    }

    fn resolve_in(
        project: &Project,
        flags: &Flags,
        environment: std::collections::HashMap<String, String>,
    ) -> Result<Self, Report> {
        let path = project.config_file();
        let file = File::from(path.clone()).format(FileFormat::Toml).required(false);
        let environment = Environment::with_prefix("HATCHERY")
            .try_parsing(true)
            .list_separator(",")
            .with_list_parse_key("allowed_hosts")
            .with_list_parse_key("claude_args")
            .with_list_parse_key("pass_env")
            .source(Some(environment.into_iter().collect()));
        let wrong =
            |error: config::ConfigError| Report::new(Code::Usage, format_args!("the configuration is wrong: {error}"));
        let written = file.collect().map_err(wrong)?;
        for key in written.keys() {
            check_known(key, &path.display().to_string(), key)?;
        }
        written.get("quests").map_or(Ok(()), |quests| shape::check_quests(&path.display().to_string(), quests))?;
        for key in environment.collect().map_err(wrong)?.keys().filter(|key| !NOT_SETTINGS.contains(&key.as_str())) {
            check_known(key, "the environment", &format!("HATCHERY_{}", key.to_uppercase()))?;
        }
        let merged = config::Config::builder().add_source(file).add_source(environment).build().map_err(wrong)?;
        let settings: Settings = merged.try_deserialize().map_err(wrong)?;
        settings.over_defaults(project, flags)
    }
}

impl Settings {
    fn over_defaults(self, project: &Project, flags: &Flags) -> Result<Config, Report> {
        let usage = |message: String| Report::new(Code::Usage, message);
        let listen = flags.listen.clone().or(self.listen);
        let mut listen = match listen.as_deref() {
            None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            Some(text) => parse_listen(text).ok_or_else(|| {
                usage(format!("`{text}` is not an address to listen on"))
                    .hint("use an IP address, for example 127.0.0.1 or 127.0.0.1:8080")
            })?,
        };
        if let Some(port) = flags.port.or(self.port) {
            listen.set_port(port);
        }
        let store = match flags.store.clone().or(self.store) {
            None => StoreUrl::Sqlite(project.data().join("hatchery.db")),
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
        let in_range =
            |name: &str, value: u64, low: u64, high: u64| match (low..=high).contains(&value) {
                true => Ok(value),
                false => Err(usage(format!("{name} = {value} is out of range"))
                    .hint(format_args!("choose from {low} to {high}"))),
            };
        let count = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let heartbeat = in_range("heartbeat_ms", self.heartbeat_ms.unwrap_or(15_000), 100, 300_000)?;
        let timeout = in_range("request_timeout_ms", self.request_timeout_ms.unwrap_or(30_000), 1_000, 600_000)?;
        let connections = in_range("max_connections", self.max_connections.unwrap_or(4_096) as u64, 8, 1_000_000)?;
        let body = in_range("max_body_bytes", self.max_body_bytes.unwrap_or(8 << 20) as u64, 4_096, 64 << 20)?;
        let snapshot_every = in_range("snapshot_every", self.snapshot_every.unwrap_or(10_000), 100, 10_000_000)?;
        let stall_ms = in_range("stall_ms", self.stall_ms.unwrap_or(600_000), run::MIN_STALL_MS, run::MAX_STALL_MS)?;
        let retries = in_range("retries", self.retries.unwrap_or(3).into(), 0, run::MAX_RETRIES.into())?;
        let stop_grace = in_range("stop_grace_ms", self.stop_grace_ms.unwrap_or(5_000), 0, 600_000)?;
        let keep_days = in_range("keep_runs_days", self.keep_runs_days.unwrap_or(30), 0, 36_500)?;
        let runs = Runs {
            harness: self.harness.unwrap_or_else(|| "claude".into()),
            claude_path: flags.claude_path.clone().or(self.claude_path).unwrap_or_else(|| "claude".into()),
            claude_args: self.claude_args.unwrap_or_default(),
            pass_env: self.pass_env.unwrap_or_default(),
            script: self.script,
            stall_ms,
            kill_stuck: self.kill_stuck.unwrap_or(false),
            retries: u32::try_from(retries).unwrap_or(u32::MAX),
            park: self.park.unwrap_or(true),
            stop_grace: Duration::from_millis(stop_grace),
            keep_runs: (keep_days > 0).then(|| Duration::from_secs(keep_days * 24 * 3_600)),
        };
        Ok(Config {
            runs,
            quests: self.quests.over_defaults()?,
            listen,
            store,
            auth,
            allowed_hosts: self.allowed_hosts.unwrap_or_default(),
            open: self.open.unwrap_or(true) && !flags.no_open,
            log: self.log.unwrap_or_else(|| "info".into()),
            heartbeat: Duration::from_millis(heartbeat),
            request_timeout: Duration::from_millis(timeout),
            max_connections: count(connections),
            max_body_bytes: count(body),
            snapshot_every,
        })
    }
}

fn parse_listen(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| text.parse().ok().map(|ip: IpAddr| SocketAddr::new(ip, 0)))
}

fn check_known(key: &str, place: &str, written: &str) -> Result<(), Report> {
    if KNOWN.contains(&key) {
        return Ok(());
    }
    let report = Report::new(Code::Usage, format_args!("{place}: `{written}` is not a setting"));
    Err(match nearest(key, KNOWN) {
        Some(nearest) => report.hint(format_args!("did you mean `{nearest}`? The settings are: {}", KNOWN.join(", "))),
        None => report,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(toml: &str, environment: &[(&str, &str)], flags: &Flags) -> Result<Config, Report> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("hatchery.toml"), toml).unwrap();
        let project = Project::find(folder.path()).unwrap();
        let environment = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
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

    #[test]
    fn an_unknown_key_names_the_nearest() {
        let error = resolve("prot = 1", &[], &Flags::default()).unwrap_err();
        assert_eq!(error.code, Code::Usage);
        assert!(error.to_string().contains("did you mean `port`?"), "{error}");
        let error = resolve("", &[("HATCHERY_STORES", "x")], &Flags::default()).unwrap_err();
        assert!(error.to_string().contains("`HATCHERY_STORES` is not a setting"), "{error}");
        assert!(error.to_string().contains("`store`"), "{error}");
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
            ("slot = 2", &["`quests.slot` is not a setting", "did you mean `quests.slots`?"][..]),
            ("aprove_plan = true", &["did you mean `quests.approve_plan`?"]),
            ("slots = 0", &["quests.slots = 0 cannot be used", "a whole number from 1 to 64"]),
            ("slots = -1", &["quests.slots = -1", "from 1 to 64"]),
            ("slots = 'many'", &["quests.slots = \"many\"", "a whole number"]),
            ("ward = 3", &["quests.ward = 3 cannot be used", "a command in quotes"]),
            ("ward_limit_ms = 1", &["quests.ward_limit_ms = 1", "from 1000 to 86400000"]),
            ("isolation = 'docker'", &["quests.isolation = \"docker\"", "\"worktree\" or \"none\""]),
            ("approve_plan = 'yes'", &["quests.approve_plan = \"yes\"", "true or false"]),
            ("prompts = ['a']", &["quests.prompts = [\"a\"]", "a folder"]),
            ("mender = 1", &["quests.mender = 1", "the name of a role"]),
            ("paths = 1", &["quests.paths = 1", "a table with: requirements"]),
            ("[quests.paths]\nwrok = []", &["`quests.paths.wrok`", "did you mean `quests.paths.work`?"]),
            ("[quests.paths]\nwork = 'codeweaver'", &["quests.paths.work = \"codeweaver\"", "a list of roles"]),
            ("roles = 1", &["quests.roles = 1", "name, may, calls, prompt"]),
            ("roles = [1]", &["quests.roles = [1]", "each entry is a table"]),
            ("[[quests.roles]]\nname = 'x'", &["an entry of `quests.roles` has no `may`", "a list of signals"]),
            (
                "[[quests.roles]]\nname = 'x'\nmay = ['compleet']",
                &["quests.roles.may = [\"compleet\"]", "\"complete\""],
            ),
            ("[[quests.roles]]\nnmae = 'x'", &["`quests.roles.nmae`", "did you mean `quests.roles.name`?"]),
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
    fn every_setting_is_known_by_its_name() {
        let toml = "listen='127.0.0.1'\nport=1\nstore='x'\nauth='token'\nallowed_hosts=['h']\nopen=false\nlog='warn'\n\
                    heartbeat_ms=1000\nrequest_timeout_ms=1000\nmax_connections=10\nmax_body_bytes=5000\nsnapshot_every=100\n\
                    harness='scripted'\nclaude_path='/x'\nclaude_args=['a']\npass_env=['B']\nscript='s'\nstall_ms=1000\n\
                    kill_stuck=true\nretries=1\npark=false\nstop_grace_ms=0\nkeep_runs_days=0\nquests={slots=2}";
        assert_eq!(toml.lines().count(), KNOWN.len());
        resolve(toml, &[], &Flags::default()).unwrap();
    }
}
