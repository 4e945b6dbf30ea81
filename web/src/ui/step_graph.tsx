// The steps of a quest and what they depend on. The list is the truth, the lines are decoration; the layout comes when it is needed.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { QuestDocument, StepDocument } from "../api/types";
import { to } from "../app/router";
import { store, useTopics } from "../store/store";
import { questionWords } from "./ask";
import { Glyph, standingOfStep } from "./glyph";
import { withDuty } from "./roles";
import { HIGH, type Layout, layOut, WIDE } from "./step_layout";
import { isRed } from "./steps";
import { Age, Ago } from "./time";
import { firstLine, list, money, plain } from "./words";

/** Above this many steps lines say nothing any more. */
const DRAWN = 300;

/** Scrolls a graph that is larger than its place to a step. A step that is in sight stays where it is. */
function show(box: HTMLElement, { x, y }: { x: number; y: number }): void {
  const { scrollLeft, scrollTop, clientWidth, clientHeight } = box;
  if (x < scrollLeft || x + WIDE > scrollLeft + clientWidth) box.scrollLeft = x - (clientWidth - WIDE) / 2;
  if (y < scrollTop || y + HIGH > scrollTop + clientHeight) box.scrollTop = y - (clientHeight - HIGH) / 2;
}

export function StepGraph({ quest, chosen }: { quest: QuestDocument; chosen: string | null }) {
  const steps = quest.steps.filter(
    (step) => step.phase === "work" || step.status === "failed" || step.question != null,
  );
  const [layout, setLayout] = useState<Layout | null>(null);
  const shape = steps.map((step) => `${step.id}:${step.dependsOn.join(",")}`).join(" ");
  useEffect(() => {
    if (steps.length > DRAWN) return;
    let here = true;
    layOut(steps).then(
      (it) => here && setLayout(it),
      () => {
        // The list says everything that the lines say. They are drawn when the library can be loaded.
      },
    );
    return () => {
      here = false;
    };
  }, [shape]);
  const drawn = layout && steps.every((step) => layout.at.has(step.id)) ? layout : null;
  const box = useRef<HTMLDivElement>(null);
  const place = chosen ? drawn?.at.get(chosen) : undefined;
  useLayoutEffect(() => {
    if (box.current && place) show(box.current, place);
  }, [place]);
  return (
    <div
      ref={box}
      class={`graph${drawn ? "" : " is-list"}`}
      role="group"
      aria-label="Steps and what they depend on"
      tabIndex={0}
    >
      {drawn && (
        <svg width={drawn.width} height={drawn.height} aria-hidden="true">
          {steps.flatMap((step) =>
            step.dependsOn.map((on) => {
              const [a, b] = [drawn.at.get(on), drawn.at.get(step.id)];
              if (!a || !b) return null;
              const [x1, y1, x2, y2] = [a.x + WIDE, a.y + HIGH / 2, b.x, b.y + HIGH / 2];
              const bend = Math.max(24, (x2 - x1) * 0.55);
              const done = steps.find((it) => it.id === on)?.status === "complete";
              return (
                <path
                  key={`${on} ${step.id}`}
                  class={done ? "is-done" : ""}
                  d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
                />
              );
            }),
          )}
        </svg>
      )}
      <ol style={drawn ? { "--w": `${drawn.width}px`, "--h": `${drawn.height}px` } : undefined}>
        {steps.map((step) => (
          <Node key={step.id} quest={quest} step={step} chosen={step.id === chosen} place={drawn?.at.get(step.id)} />
        ))}
      </ol>
    </div>
  );
}

function Node({
  quest,
  step,
  chosen,
  place,
}: {
  quest: QuestDocument;
  step: StepDocument;
  chosen: boolean;
  place: { x: number; y: number } | undefined;
}) {
  useTopics(step.agent ? `agent:${step.agent}` : "none");
  const looks = [
    "node",
    chosen ? "is-chosen" : "",
    step.question != null ? "is-you" : "",
    step.status === "failed" ? "is-failed" : "",
    step.status === "complete" ? "is-done" : "",
    ["pending", "blocked", "queued"].includes(step.status) ? "is-off" : "",
  ];
  const spent = step.spent?.cost;
  const after = step.dependsOn.length > 0 ? `after ${step.dependsOn.join(", ")}` : "";
  return (
    <li>
      <a
        class={looks.filter(Boolean).join(" ")}
        href={to.quest(quest.id, step.id)}
        aria-current={chosen ? "true" : undefined}
        style={place ? { "--x": `${place.x}px`, "--y": `${place.y}px` } : undefined}
      >
        <Glyph as={step.question != null ? "you" : standingOfStep(step.status)} />
        <b class="cut">{step.id}</b>
        <span class="cost num">{spent && spent.nanodollars > 0 ? money(spent) : ""}</span>
        <span class="sub-line">{subOf(quest, step)}</span>
        <span class="age cut">
          <AgeOf step={step} />
        </span>
        {after && step.status !== "pending" && <span class="after">{after}</span>}
      </a>
    </li>
  );
}

function subOf(quest: QuestDocument, step: StepDocument): string {
  const asked = step.question != null ? store.state?.questions.get(step.question) : undefined;
  if (asked && step.status !== "waiting_for_human") return questionWords(asked);
  switch (step.status) {
    case "complete":
      return step.name || firstLine(step.summary ?? "complete");
    case "pending":
      return step.dependsOn.length > 0 ? `after ${step.dependsOn.join(", ")}` : step.name;
    case "queued":
      return `waits for a slot, then ${step.doing ? withDuty(step.doing) : "goes on"}`;
    case "blocked":
      return blockedBy(quest, step);
    case "waiting_for_human": {
      const question = store.state?.questions.get(step.question ?? -1);
      return question ? `asks: ${questionWords(question)}` : "asks you";
    }
    case "failed":
      return plain(firstLine(step.doing ?? "failed"));
    case "running":
    case "waiting_for_role":
      return workOf(step);
    default:
      return step.doing ? withDuty(step.doing) : step.name;
  }
}

/** Who works on it. A node has room for the duty of its role, or for what it works on: then the slots above tell the duty. */
function workOf(step: StepDocument): string {
  const whom = forWhom(step);
  const doing = step.doing ?? step.name;
  return whom ? doing + whom : withDuty(doing);
}

/** For which role it acts, or what it mends. */
function forWhom(step: StepDocument): string {
  const caller = step.status === "waiting_for_role" ? step.callers?.at(-1)?.role : undefined;
  if (caller) return ` for ${caller}`;
  return step.agent && isRed(step) ? ", ward is red" : "";
}

function blockedBy(quest: QuestDocument, step: StepDocument): string {
  const failed = step.dependsOn.filter((id) =>
    quest.steps.some((it) => it.id === id && (it.status === "failed" || it.status === "blocked")),
  );
  return failed.length > 0 ? `blocked by ${list(failed)}` : "blocked: a step before it has failed";
}

function AgeOf({ step }: { step: StepDocument }) {
  if (step.status === "pending" || step.status === "blocked" || step.status === "queued") return null;
  const entry = step.agent ? store.agent(step.agent) : undefined;
  if (step.status === "complete") return <Ago at={step.since} before="complete " />;
  if (step.status === "failed") return <Ago at={step.since} before="failed " />;
  if (step.status === "waiting_for_human")
    return (
      <>
        waits <Age at={step.since} />, slot given back
      </>
    );
  if (entry)
    return (
      <Ago
        at={entry.doing?.at ?? entry.lastSign}
        before={entry.doing ? "said this " : "last sign "}
        staleAfter={entry.stallMs ? entry.stallMs / 10 : null}
      />
    );
  return <Ago at={step.since} before="since " after="" />;
}
