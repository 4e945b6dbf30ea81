//! The settings of notifications: `[notify]` in `hatchery.toml`.

use crate::notifications::NoticeKind;
use crate::report::{Code, Report};
use crate::strict::Within;
use hyper::Uri;
use serde::Deserialize;
use std::time::Duration;

/// The least time between two notifications by default.
const PACE_MS: u64 = 3_000;

/// Where notifications go, and which.
#[derive(Clone, Debug)]
pub struct Notify {
    pub desktop: bool,
    /// For `/bin/sh -c`.
    pub command: Option<String>,
    pub webhook: Option<Uri>,
    pub on: Vec<NoticeKind>,
    /// The least time between two notifications. Those in between are counted in the next one.
    pub pace: Duration,
}

impl Notify {
    /// Whether there is anywhere to deliver to.
    pub fn is_wanted(&self) -> bool {
        self.desktop || self.command.is_some() || self.webhook.is_some()
    }
}

/// The settings as people write them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NotifySettings {
    desktop: Option<bool>,
    command: Option<String>,
    webhook: Option<String>,
    on: Option<Vec<NoticeKind>>,
    pace_ms: Option<Within<0, 3_600_000>>,
}

impl NotifySettings {
    pub(super) fn over_defaults(self) -> Result<Notify, Report> {
        let webhook = self.webhook.map(|text| {
            let url: Option<Uri> = text.parse().ok();
            let usable = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
            // The address may contain a secret, so it is not repeated.
            url.filter(usable).ok_or_else(|| {
                Report::new(Code::Usage, "`notify.webhook` is not an address").hint("use http://… or https://…")
            })
        });
        Ok(Notify {
            desktop: self.desktop.unwrap_or(false),
            command: self.command.filter(|line| !line.trim().is_empty()),
            webhook: webhook.transpose()?,
            on: self.on.unwrap_or_else(|| NoticeKind::ALL.to_vec()),
            pace: Duration::from_millis(self.pace_ms.map_or(PACE_MS, |it| it.0)),
        })
    }
}
