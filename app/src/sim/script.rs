//! A script: one step a line, as JSON. Empty lines and those that begin with `#` are passed over.

use hatchery_core::Usage;
use hatchery_core::usage::Money;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;
use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct Script {
    pub steps: Vec<ScriptStep>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptStep {
    Text(String),
    Think(String),
    /// A piece of a text that is not whole yet. The whole is said by the next `text`.
    Partial(String),
    /// The same for the next `think`.
    PartialThought(String),
    /// A tool that only seems to be used.
    Tool {
        name: String,
        #[serde(default = "nothing")]
        input: Value,
        #[serde(default)]
        result: String,
        #[serde(default)]
        is_error: bool,
    },
    /// A tool that is used only after permission was asked for and given. `Write` really writes; the others only seem to be used. A
    /// process that dies before the next step asks again when it is resumed.
    Ask {
        name: String,
        #[serde(default = "nothing")]
        input: Value,
        #[serde(default)]
        result: String,
    },
    /// A real call of a real MCP server; without a name, of the first one.
    Mcp {
        server: Option<String>,
        tool: String,
        #[serde(default)]
        arguments: serde_json::Map<String, Value>,
    },
    /// What a sub-agent says.
    Subagent {
        #[serde(default)]
        prompt: String,
        text: String,
    },
    SleepMs(u64),
    /// Numbered lines, each padded to this many bytes.
    Flood {
        lines: u64,
        #[serde(default)]
        bytes: usize,
    },
    /// One text of this many bytes.
    LongLine(usize),
    WriteFile {
        path: PathBuf,
        content: String,
    },
    /// A process of its own, in its own session, that outlives us.
    Child {
        sleep_s: u64,
    },
    Cost(ScriptedPrice),
    Compact,
    /// Ends the turn; the next step waits for the next message.
    Turn,
    /// The same, and the next message starts the script again.
    Again,
    /// The service fails, and the process ends with 1.
    Error {
        api: ServiceFailure,
        /// When the limit will be lifted, if it says so.
        resets_in_s: Option<u32>,
    },
    /// Ends at once, without a result.
    Exit(u8),
    /// Writes a text and ends at once, without a result.
    LastWords(String),
    /// Ends itself by a signal.
    Crash(CrashSignal),
    /// Does nothing, without an end. SIGTERM ends the process, unless the script ignores it.
    Hang {
        #[serde(default)]
        ignore_sigterm: bool,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedPrice {
    usd: f64,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
}

/// How the service fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceFailure {
    Unauthorised,
    RateLimited,
    Broken,
    Overloaded,
    Credit,
    TooLong,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CrashSignal {
    Abrt,
    Hup,
    Kill,
    Segv,
    Term,
}

impl Script {
    pub fn read(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let steps = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {at} of the script is not a step: {error}"))
        });
        Ok(Self { steps: steps.collect::<Result<_, _>>()? })
    }
}

impl ScriptedPrice {
    pub fn usage(&self) -> Usage {
        let Self { usd, input_tokens, output_tokens } = *self;
        Usage { cost: Money::from_dollars(usd), input_tokens, output_tokens, ..Usage::default() }
    }
}

impl<'de> Deserialize<'de> for ServiceFailure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Value::deserialize(deserializer)?;
        match word.as_str().map_or_else(|| word.to_string(), str::to_owned).as_str() {
            "401" => Ok(Self::Unauthorised),
            "429" => Ok(Self::RateLimited),
            "500" => Ok(Self::Broken),
            "529" => Ok(Self::Overloaded),
            "credit" => Ok(Self::Credit),
            "too_long" => Ok(Self::TooLong),
            other => Err(D::Error::custom(format!("`{other}` is none of 401, 429, 500, 529, credit, too_long"))),
        }
    }
}

fn nothing() -> Value {
    Value::Object(serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let problem = |text: &str| Script::read(text).unwrap_err();
        assert!(problem("# a comment\n\n{\"text\":\"a\"}\n{\"txt\":\"b\"}").starts_with("line 4 of the script"));
        assert!(
            problem(r#"{"error":{"api":404}}"#).contains("`404` is none of 401"),
            "{}",
            problem(r#"{"error":{"api":404}}"#)
        );
        assert!(problem(r#"{"crash":"PIPE"}"#).contains("unknown variant"));
        assert!(problem(r#"{"hang":{"ignore_sigtrem":true}}"#).contains("unknown field"));
    }

    #[test]
    fn each_step_has_its_form() {
        let script = r#"
            {"text":"hi"}
            {"sleep_ms":5}
            {"error":{"api":"credit"}}
            {"error":{"api":429,"resets_in_s":30}}
            "turn"
            "compact"
        "#;
        assert_eq!(Script::read(script).unwrap().steps.len(), 6);
    }
}
