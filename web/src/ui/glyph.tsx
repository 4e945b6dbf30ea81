// How something stands: a shape, a colour and a word, never colour alone.
import type { JSX } from "preact";
import type { Activity, StepStatus } from "../api/types";

export type Standing =
  | "working"
  | "you"
  | "done"
  | "failed"
  | "parked"
  | "asleep"
  | "pending"
  | "queued"
  | "blocked"
  | "resting"
  | "dead"
  | "green";

const WORDS: Record<Standing, string> = {
  working: "working",
  you: "needs you",
  done: "done",
  failed: "failed",
  parked: "parked",
  asleep: "asleep",
  pending: "pending",
  queued: "queued",
  blocked: "blocked",
  resting: "resting",
  dead: "dead",
  green: "green",
};

const line = { fill: "none", stroke: "currentColor", "stroke-linecap": "round", "stroke-linejoin": "round" } as const;

const ring = (width = 1.5, r = 6.4) => <circle cx="8" cy="8" r={r} {...line} stroke-width={width} />;

const SHAPES: Record<Standing, () => JSX.Element> = {
  working: () => (
    <>
      <circle cx="8" cy="8" r="6.25" {...line} stroke-opacity=".25" stroke-width="1.5" />
      <path class="turns" d="M8 1.75A6.25 6.25 0 0 1 14.25 8" {...line} stroke-width="1.75" />
      <circle cx="8" cy="8" r="2.4" fill="currentColor" />
    </>
  ),
  you: () => (
    <>
      <circle cx="8" cy="8" r="7.25" fill="currentColor" />
      <path
        d="M6 6.3c.1-1.2 1-1.9 2.1-1.9 1.2 0 2 .7 2 1.7 0 1.4-2 1.5-2 3"
        {...line}
        stroke="var(--on-you)"
        stroke-width="1.4"
      />
      <circle cx="8.1" cy="11.4" r=".95" fill="var(--on-you)" />
    </>
  ),
  done: () => <path d="M3.2 8.6l3.1 3.1 6.5-7" {...line} stroke-width="1.7" />,
  failed: () => (
    <>
      {ring()}
      <path d="M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6" {...line} stroke-width="1.6" />
    </>
  ),
  parked: () => (
    <>
      {ring()}
      <path d="M6.3 5.4v5.2M9.7 5.4v5.2" {...line} stroke-width="1.6" />
    </>
  ),
  asleep: () => <path d="M13 9.8A5.6 5.6 0 0 1 6.2 3 5.6 5.6 0 1 0 13 9.8z" {...line} stroke-width="1.5" />,
  pending: () => <circle cx="8" cy="8" r="6.25" {...line} stroke-width="1.4" stroke-dasharray="1.6 2.33" />,
  queued: () => ring(1.5, 6.25),
  blocked: () => (
    <>
      {ring(1.5, 6.25)}
      <path d="M3.7 12.3l8.6-8.6" {...line} stroke-width="1.5" />
    </>
  ),
  resting: () => ring(1.5, 3),
  dead: () => <path d="M4.5 4.5l7 7M11.5 4.5l-7 7" {...line} stroke-width="1.5" />,
  green: () => (
    <>
      <circle cx="8" cy="8" r="7.25" fill="currentColor" />
      <path d="M4.9 8.3l2.1 2.1 4.1-4.4" {...line} stroke="var(--bg)" stroke-width="1.6" />
    </>
  ),
};

/** `word` names it for those who do not see it; without one it is decoration beside a word. */
export function Glyph({
  as,
  word,
  silent = false,
  x,
  y,
}: {
  as: Standing;
  word?: string;
  silent?: boolean;
  x?: number;
  y?: number;
}) {
  const place = x === undefined ? {} : { x, y, width: 16, height: 16 };
  const name = silent ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": word ?? WORDS[as] };
  return (
    <svg class={`g g-${as}`} viewBox="0 0 16 16" {...place} {...name}>
      {SHAPES[as]()}
    </svg>
  );
}

export function standingOf(activity: Activity): Standing {
  switch (activity) {
    case "starting":
    case "working":
    case "stopping":
      return "working";
    case "silent":
      return "you";
    case "parked":
      return "parked";
    case "dead":
    case "expired":
      return "dead";
    case "listening":
    case "resting":
      return "resting";
  }
}

export function standingOfStep(status: StepStatus): Standing {
  switch (status) {
    case "pending":
      return "pending";
    case "queued":
      return "queued";
    case "running":
    case "waiting_for_role":
      return "working";
    case "waiting_for_human":
      return "you";
    case "parked":
      return "parked";
    case "blocked":
      return "blocked";
    case "failed":
      return "failed";
    case "complete":
      return "done";
  }
}
