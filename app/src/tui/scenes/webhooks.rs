//! The quest of the design's screens.

use super::project::{NOW, at, dollars, id, quest_id};
use crate::quest_document::QuestDocument;
use hatchery_core::Timestamp;
use hatchery_core::usage::{Money, Usage};
use serde_json::json;

pub(super) fn webhooks_quest() -> QuestDocument {
    let step = |name: &str,
                title: &str,
                status: &str,
                since: Timestamp,
                cost: f64,
                after: &[&str],
                rest: serde_json::Value| {
        let mut step = json!({
            "id": name, "phase": "work", "name": title, "description": "", "dependsOn": after, "filesToCreate": [], "filesToModify": [],
            "observables": [], "status": status, "doing": null, "agent": null, "question": null, "since": since.0, "attempts": 1,
            "agents": [], "wards": [], "signals": [], "callers": [], "spent": dollars(cost), "summary": null, "history": [],
        });
        for (key, value) in rest.as_object().cloned().unwrap_or_default() {
            step[key] = value;
        }
        step
    };
    let ago = |seconds: i64| Timestamp(NOW.0 - seconds * 1_000);
    let by = |begin: &str, role: &str| json!({ "agent": id(begin), "agents": [{ "agent": id(begin), "role": role, "session": null }] });
    let mut admin = by("0kGl", "codeweaver");
    admin["callers"] = json!([{ "role": "siegemaster", "agent": id("dn0"), "reason": "A retry can be started twice.", "resume": true }]);
    admin["signals"] = json!([
        { "agent": id("0kGl"), "at": at("13:22").0, "role": "codeweaver", "signal": { "complete": { "summary": "The page lists attempts." } } },
        { "agent": id("dn1"), "at": at("13:35").0, "role": "spiritmender", "signal": { "complete": { "summary": "The row hands it on now." } } },
        { "agent": id("dn0"), "at": at("14:03").0, "role": "siegemaster", "signal": { "needs-role-followup": {
            "target_role": "codeweaver", "reason": "A retry can be started twice.", "context": "", "resume": true,
        } } },
    ]);
    admin["wards"] = json!([
        { "number": 1, "started": at("13:23").0, "ended": at("13:23:41").0, "verdict": { "red": { "findings": ["admin/attempts.tsx:41:9 error: `retry` is not a function of AttemptRow"] } } },
        { "number": 2, "started": at("13:36").0, "ended": at("13:36:39").0, "verdict": "green" },
    ]);
    admin["spent"] = json!(Usage { output_tokens: 211_000, ..dollars(1.04) });
    let mut metrics = by("mM22", "spiritmender");
    metrics["wards"] = json!([
        { "number": 1, "started": at("14:04").0, "ended": at("14:05").0, "verdict": { "red": { "findings": ["one"] } } },
    ]);
    let queued = json!({ "question": 47_902, "agent": id("pT0a") });
    let of_phase = |phase: &str| json!({ "phase": phase });
    let steps = json!([
        step("requirements", "Requirements", "complete", ago(50 * 60), 0.2, &[], of_phase("requirements")),
        step("plan", "Plan", "complete", ago(45 * 60), 0.3, &[], of_phase("plan")),
        step("schema", "Store each attempt", "complete", ago(26 * 60), 0.57, &[], json!({})),
        step("queue", "Queue", "running", ago(3), 0.41, &[], by("qQ11", "codeweaver")),
        step("worker", "Worker", "waiting_for_human", ago(12 * 60), 0.36, &[], queued),
        step("metrics", "Metrics", "running", ago(9), 0.48, &[], metrics),
        step("admin-page", "List what failed, and send it again", "running", ago(14), 1.04, &[], admin),
        step("alerts", "Alerts", "failed", ago(120), 0.92, &[], json!({ "doing": "The ward was red three times" })),
        step("docs", "Docs", "pending", ago(60), 0.0, &["queue", "worker", "admin-page"], json!({})),
        step("runbook", "Runbook", "blocked", ago(60), 0.0, &["alerts"], json!({})),
        step("review", "Review", "pending", ago(60), 0.0, &[], of_phase("review")),
    ]);
    let document = json!({
        "schema": 1, "id": quest_id("q3f2"), "version": 48_000, "request": "Send failed webhooks again, with backoff", "state": "open",
        "created": at("13:12").0, "changed": at("14:05").0, "ended": null, "slots": 3, "harness": "claude",
        "ward": { "command": "cargo test", "limit_ms": 600_000, "guessed_from": null }, "branch": "hatchery/send-failed-webhooks-3f2a",
        "approvePlan": false, "budget": Money::from_dollars(15.0), "spent": dollars(4.92), "requirements": null, "steps": steps,
        "table": { "roles": [], "paths": { "requirements": [], "plan": [], "work": [], "review": [] }, "mender": "spiritmender", "planner": "pathseeker", "requirer": "chaoswhisperer" },
    });
    serde_json::from_value(document).unwrap()
}
