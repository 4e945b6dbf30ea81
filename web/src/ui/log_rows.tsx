// One event as a row of the log, and all of it when the row is open.
import type { EventObject } from "../api/types";
import { to } from "../app/router";
import { store } from "../store/store";
import { lookOf, whatOf, whoOf } from "./event_words";
import { exact, group, whenLogged } from "./words";

/** The height of a row: one line, or two at a hand’s width. */
export const rowHeight = () => (matchMedia("(max-width: 860px)").matches ? 52 : 30);

export function LogHead() {
  return (
    <div class="log-row is-head" role="row" aria-rowindex={1}>
      <span role="columnheader">Event</span>
      <span role="columnheader">Time</span>
      <span role="columnheader">Type</span>
      <span role="columnheader">Who, or which step</span>
      <span role="columnheader">What</span>
    </div>
  );
}

export function LogRow({
  id,
  at,
  event,
  chosen,
  choose,
}: {
  id: number;
  /** Its place in the list. */
  at: number;
  event: EventObject | undefined;
  chosen: boolean;
  choose: () => void;
}) {
  if (!event) {
    return (
      <div class="log-row is-loading" role="row" aria-rowindex={at + 2}>
        <span class="id">{group(id)}</span>
        <span role="cell">…</span>
      </div>
    );
  }
  const what = whatOf(event);
  return (
    <>
      <div
        class={`log-row${chosen ? " is-chosen" : ""}`}
        role="row"
        aria-rowindex={at + 2}
        tabIndex={0}
        aria-selected={chosen}
        data-event={id}
        onClick={choose}
        onKeyDown={(key) => {
          if (key.key === "Enter" || key.key === " ") {
            key.preventDefault();
            choose();
          }
        }}
      >
        <span class="id" role="cell">
          {group(id)}
        </span>
        <time role="cell" title={exact(event.ts)}>
          {whenLogged(event.ts, store.now())}
        </time>
        <span class={`type cut ${lookOf(event.type, event)}`} role="cell">
          {event.type}
        </span>
        <span class="who cut" role="cell">
          {whoOf(event)}
        </span>
        <span class="what cut" role="cell" title={what.slice(0, 400)}>
          {what}
        </span>
      </div>
      {chosen && <Detail event={event} />}
    </>
  );
}

function json(event: EventObject): string {
  const text = JSON.stringify(event, null, 2);
  return text.length > 20_000 ? `${text.slice(0, 20_000)}\n… ${group(text.length)} characters in all` : text;
}

/** Rows have one height, so the open one says how tall it is. */
export function detailHeight(event: EventObject): number {
  const lines = json(event).split("\n").length;
  return Math.min(lines, 16) * 20 + 84;
}

function Detail({ event }: { event: EventObject }) {
  const agent = "agent" in event && typeof event.agent === "string" ? event.agent : null;
  const quest = "quest" in event && typeof event.quest === "string" ? event.quest : null;
  const step = "step" in event && typeof event.step === "string" ? event.step : undefined;
  return (
    <div class="log-detail" style={{ height: `${detailHeight(event) - 10}px` }}>
      <pre class="out" tabIndex={0}>
        {json(event)}
      </pre>
      <div class="actions">
        {agent && (
          <a
            class="btn line small-btn"
            href={to.agent(agent, event.type === "message_added" ? `e${event.id}` : undefined)}
          >
            Open agent
          </a>
        )}
        {quest && (
          <a class="btn quiet small-btn" href={to.quest(quest, step)}>
            Open {step ? "step" : "quest"}
          </a>
        )}
        <button
          class="btn quiet small-btn"
          type="button"
          onClick={() => void navigator.clipboard?.writeText(`${location.origin}/log#${event.id}`)}
        >
          Copy link
        </button>
      </div>
    </div>
  );
}
