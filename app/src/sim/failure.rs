//! How the real CLI tells of a service that fails: the words, the status, and what it calls it.

use super::script::ServiceFailure;

#[derive(Debug)]
pub struct PlayedFailure {
    pub status: u16,
    /// What the assistant's line calls it.
    pub error: &'static str,
    /// What the service called it.
    pub api_type: &'static str,
    pub terminal_reason: &'static str,
    /// How often it tries again before it gives up.
    pub retries: u32,
    pub text: &'static str,
}

impl PlayedFailure {
    pub fn of(api: ServiceFailure) -> Self {
        let bad_request = Self {
            status: 400,
            error: "invalid_request",
            api_type: "invalid_request_error",
            terminal_reason: "api_error",
            retries: 0,
            text: "",
        };
        match api {
            ServiceFailure::Unauthorised => Self {
                status: 401,
                error: "authentication_failed",
                api_type: "authentication_error",
                text: "Invalid API key · Fix external API key",
                ..bad_request
            },
            ServiceFailure::RateLimited => Self {
                status: 429,
                error: "rate_limit",
                api_type: "rate_limit_error",
                retries: 2,
                text: "API Error: Request rejected (429) · Rate limited",
                ..bad_request
            },
            ServiceFailure::Broken => Self {
                status: 500,
                error: "server_error",
                api_type: "api_error",
                retries: 2,
                text: "API Error: 500 Internal server error",
                ..bad_request
            },
            ServiceFailure::Overloaded => Self {
                status: 529,
                error: "server_error",
                api_type: "overloaded_error",
                retries: 2,
                text: "API Error: Repeated 529 Overloaded errors",
                ..bad_request
            },
            ServiceFailure::Credit => Self { error: "billing_error", text: "Credit balance is too low", ..bad_request },
            ServiceFailure::TooLong => {
                Self { terminal_reason: "prompt_too_long", text: "Prompt is too long", ..bad_request }
            }
        }
    }
}
