//! Projects whose agents are played by the real programs, each against a scripted model.

use super::claude_cli::{ClaudeCli, Home};
use super::codex_acp::CodexAcp;
use super::codex_cli::{CodexCli, CodexHome};
use super::model::Model;
use super::node_agents::{NodeAgent, NodeHome};
use super::opencode_cli::{OpencodeCli, OpencodeHome};
use super::workshop::Workshop;
use std::ffi::OsString;

/// How long a process may take to leave.
const STOP_GRACE: &str = "stop_grace_ms = 3000\n";

/// Agents are played by the Claude CLI.
pub fn of_claude(cli: &ClaudeCli, model: &Model) -> (Workshop, Home) {
    let home = Home::new(cli, model);
    let settings = format!("claude_path = '{}'\n{STOP_GRACE}", cli.program().display());
    (Workshop::with(&settings, owned(&home)), home)
}

/// Agents are played by codex.
pub fn of_codex(cli: &CodexCli, model: &Model) -> (Workshop, CodexHome) {
    let home = CodexHome::new(model);
    let settings = format!("harness = 'codex'\ncodex_path = '{}'\n{STOP_GRACE}", cli.program().display());
    (Workshop::with(&settings, home.environment()), home)
}

/// Agents are played by opencode, under a name of the project's own.
pub fn of_opencode(cli: &OpencodeCli, model: &Model) -> (Workshop, OpencodeHome) {
    let home = OpencodeHome::new(model);
    let program = cli.program().display();
    let settings = format!("{STOP_GRACE}[harness]\ndefault = 'own'\n[harness.own]\nacp = ['{program}', 'acp']\n");
    (Workshop::with(&settings, home.environment()), home)
}

/// Agents are played by codex behind its ACP adapter, under a name of the project's own.
pub fn of_codex_acp((acp, codex): (&CodexAcp, &CodexCli), model: &Model) -> (Workshop, CodexHome) {
    let home = CodexHome::new(model);
    let mut environment = home.environment();
    environment.push(("CODEX_PATH".to_owned(), codex.program().into()));
    // Otherwise a second model would judge what may be done.
    environment.push(("INITIAL_AGENT_MODE".to_owned(), "workspace-write".into()));
    let program = acp.program().display();
    let settings = format!(
        "{STOP_GRACE}pass_env = ['CODEX_HOME', 'CODEX_PATH', 'INITIAL_AGENT_MODE']\n\
         [harness]\ndefault = 'own'\n[harness.own]\nacp = ['node', '{program}']\n"
    );
    (Workshop::with(&settings, environment), home)
}

/// Agents are played by a script of Node that speaks ACP, under a name of the project's own.
pub fn of_node_agent<A: NodeAgent>(agent: &A, model: &Model) -> (Workshop, NodeHome) {
    let home = NodeHome::new::<A>(model);
    let command: Vec<String> = agent.command().iter().map(|word| format!("'{word}'")).collect();
    let command = command.join(", ");
    let settings = format!("{STOP_GRACE}[harness]\ndefault = 'own'\n[harness.own]\nacp = [{command}]\n");
    (Workshop::with(&settings, home.environment()), home)
}

/// Agents can be played by Claude and by codex, with further settings.
pub fn of_both(
    (claude, of_claude): (&ClaudeCli, &Model),
    (codex, of_codex): (&CodexCli, &Model),
    settings: &str,
) -> (Workshop, Home, CodexHome) {
    let (home, codex_home) = (Home::new(claude, of_claude), CodexHome::new(of_codex));
    let mut environment = owned(&home);
    let own = |entry: &(String, OsString)| matches!(entry.0.as_str(), "CODEX_HOME" | "OPENAI_API_KEY");
    environment.extend(codex_home.environment().into_iter().filter(own));
    let (claude, codex) = (claude.program().display(), codex.program().display());
    let settings = format!("claude_path = '{claude}'\ncodex_path = '{codex}'\n{STOP_GRACE}{settings}");
    (Workshop::with(&settings, environment), home, codex_home)
}

fn owned(home: &Home) -> Vec<(String, OsString)> {
    home.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
