//! Agents that run: real processes, held by launchers, supervised by a daemon that may be killed.

mod acp;
mod acp_broken;
mod acp_codex;
mod acp_killed;
mod acp_node;
mod adopting;
mod adoption;
mod calls;
mod ceiling;
mod claude;
mod codex;
mod codex_killed;
mod codex_money;
mod codex_sandbox;
mod life;
mod live;
mod money;
mod passing;
mod permissions;
mod stopping;
mod talking;
