//! Agents that run: real processes, held by launchers, supervised by a daemon that may be killed.

mod acp;
mod adopting;
mod adoption;
mod calls;
mod ceiling;
mod claude;
mod codex;
mod codex_killed;
mod life;
mod money;
mod passing;
mod permissions;
mod stopping;
mod talking;
