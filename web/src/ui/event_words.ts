// An event in one line: who or which step, and what.

import type { EventObject } from "../api/types";
import { toolCall, toolName, toolResult, toolTarget } from "../store/state";
import { store } from "../store/store";
import { nameOf, questName } from "./names";
import { titled } from "./roles";
import { firstLine, group, money, plain, when } from "./words";

export function whoOf(event: EventObject): string {
  if ("step" in event && typeof event.step === "string") return event.step;
  if (event.type === "mail_sent") return nameOf(event.from);
  if ("to" in event && typeof event.to === "string" && event.type !== "message_added") return nameOf(event.to);
  if ("agent" in event && typeof event.agent === "string") return nameOf(event.agent);
  if ("quest" in event && typeof event.quest === "string") return questName(event.quest);
  if ("position" in event && event.position != null) return `seat ${event.position}`;
  if (event.type === "seat_imported") return `seat ${event.document.gridPosition}`;
  if (event.type === "inbox_reply_taken") return plain(event.from);
  if ("session" in event && typeof event.session === "string") return event.session.slice(0, 8);
  return "";
}

export function whatOf(event: EventObject): string {
  switch (event.type) {
    case "message_added": {
      if (event.kind === "tool_call") {
        const call = toolCall(event.content);
        return call ? `tool_call ${toolName(call.name)} ${toolTarget(call.input)}` : "tool_call";
      }
      if (event.kind === "tool_result") {
        const result = toolResult(event.content);
        return `tool_result ${result?.isError ? "failed: " : ""}${plain(firstLine(result?.content ?? event.content))}`;
      }
      return `${event.kind} ${plain(firstLine(event.content))}`;
    }
    case "message_heard":
      return `heard #${group(event.message)}`;
    case "output_taken":
      return `up to byte ${group(event.upto)}`;
    case "turn_ended":
      return `${turnResult(event.end.result)}, ${event.end.num_turns} turns, ${money(event.spent.cost)}`;
    case "usage_metered":
      return `${money(event.used.cost)} for a request to the model`;
    case "run_requested":
      return `run ${event.run} by ${event.spec.harness}`;
    case "run_spawned":
      return `process ${event.process.pid}, attempt ${event.attempt}`;
    case "run_waiting":
      return "waits for its turn: as many agents run as may";
    case "run_parked":
      return `${event.cause}${event.until ? `, goes on at ${when(event.until, store.now())}` : ""}`;
    case "run_crashed":
    case "run_ended":
      return `${event.cause}: ${firstLine(event.detail)}`;
    case "permission_decided": {
      const { decision } = event;
      return decision === "allow"
        ? `allowed by ${event.by}`
        : `denied by ${event.by}: ${plain(firstLine(decision.deny.reason))}`;
    }
    case "permission_rule_added":
      return Object.entries(event.allows)
        .map(([what, how]) => `${what} ${plain(firstLine(String(Object.values(how)[0] ?? "in its own folder")))}`)
        .join("");
    case "permission_rule_removed":
      return `#${group(event.rule)}`;
    case "question_asked":
      return plain(firstLine(event.text));
    case "question_answered":
      return `to #${group(event.question)}: ${plain(firstLine(event.answer))}`;
    case "question_withdrawn":
      return `#${group(event.question)}`;
    case "mail_sent":
      return `to ${nameOf(event.to)}: ${plain(firstLine(event.body))}`;
    case "mail_read":
    case "mail_delivered":
      return `#${group(event.mail)}`;
    case "agent_created":
      return event.name ?? "";
    case "agent_renamed":
      return event.name ?? "no name";
    case "agent_killed":
      return event.remark ?? "";
    case "quest_created":
      return firstLine(event.quest_spec.request);
    case "steps_planned":
      return `${event.steps.length} steps`;
    case "step_begun":
      return titled(event.role);
    case "signal_given": {
      const [kind, body] = Object.entries(event.signal)[0] ?? ["", {}];
      const words = Object.values(body as Record<string, unknown>).find((value) => typeof value === "string");
      return `${kind}: ${plain(firstLine(String(words ?? "")))}`;
    }
    case "ward_begun":
    case "merge_begun":
      return `number ${event.number}`;
    case "ward_ended": {
      const { verdict } = event;
      if (verdict === "green") return "green";
      if (typeof verdict === "object" && "red" in verdict)
        return `red, ${verdict.red.findings.length} findings: ${plain(firstLine(verdict.red.findings[0] ?? ""))}`;
      if (typeof verdict === "object" && "conflict" in verdict)
        return `conflicts in ${verdict.conflict.files.map(plain).join(", ")}`;
      return `broken: ${typeof verdict === "object" && "broken" in verdict ? firstLine(verdict.broken.why) : ""}`;
    }
    case "merge_ended":
      return typeof event.merge === "string" ? event.merge : (Object.keys(event.merge)[0] ?? "");
    case "step_failed":
      return plain(firstLine(event.why));
    case "step_completed":
      return plain(firstLine(event.summary));
    case "call_taken":
      return event.refused ? `refused: ${event.refused.message}` : `call ${event.number}`;
    case "seats_summoned":
    case "seats_waking":
      return `seats ${event.seats.map((it) => it.position).join(", ")}`;
    case "seats_reported":
      return event.agents.map((it) => `${plain(it.name ?? `seat ${it.gridPosition}`)} ${it.status ?? ""}`).join(", ");
    case "seat_registered":
      return plain(event.identity.name ?? "");
    case "seat_imported":
      return plain(event.document.births[0]?.name ?? "");
    case "seat_filled":
    case "seat_message_relayed":
    case "seat_spoken_for":
      return `seat ${event.position}`;
    case "artifact_written":
      return plain(event.filename);
    case "seat_addressed":
      return `by ${plain(event.speaker)}`;
    case "inbox_reply_taken":
      return plain(firstLine(event.text ?? ""));
    case "marker_rejected":
      return `${plain(event.marker)}: ${plain(event.reason)}`;
    case "status_edited":
      return event.edits.map((edit) => plain(edit.path)).join(", ");
    case "build_event_recorded":
    case "idea_kept":
      return bodyWords(event.body);
    case "idea_dismissed":
      return plain(event.idea);
    case "budget_set":
    case "quest_budget_set":
      return event.limit ? money(event.limit) : "none";
    default:
      return "";
  }
}

/** The colour of what a person should notice. */
export function lookOf(type: EventObject["type"], event?: EventObject): string {
  if (type === "question_asked") return "is-you";
  if (type === "step_failed" || type === "run_crashed") return "is-failed";
  if (type === "ward_ended" && event?.type === "ward_ended" && event.verdict !== "green") return "is-failed";
  if (type === "run_parked" || type === "step_parked" || type === "run_silent") return "is-parked";
  return "";
}

/** How a turn ended, in a word or two. */
function turnResult(result: Extract<EventObject, { type: "turn_ended" }>["end"]["result"]): string {
  return typeof result === "string"
    ? result.replaceAll("_", " ")
    : `failed (${result.failed.kind.replaceAll("_", " ")})`;
}

/** An entry of the status files, in one line. */
function bodyWords(body: string): string {
  try {
    const { kind, chunk, summary, content } = JSON.parse(body) as Record<string, unknown>;
    return [kind, chunk, summary, content]
      .filter((it) => typeof it === "string")
      .map((it) => plain(firstLine(it as string)))
      .join(", ");
  } catch {
    return plain(firstLine(body));
  }
}
