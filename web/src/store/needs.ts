// Who needs the human: one list, the oldest first.
import type { QuestionView, StepDocument } from "../api/types";
import type { Store } from "./store";

export type Need =
  | { kind: "question"; key: string; at: number; question: QuestionView }
  | { kind: "failed"; key: string; at: number; quest: string; request: string; step: StepDocument; blocks: number };

export function needs(store: Store): Need[] {
  const state = store.state;
  if (!state) return [];
  const found: Need[] = [];
  for (const question of state.questions.values()) {
    found.push({ kind: "question", key: `q${question.id}`, at: question.asked, question });
  }
  for (const line of state.quests.values()) {
    if (line.state !== "open" || line.failed === 0) continue;
    const document = store.quest(line.id);
    for (const step of document?.steps ?? []) {
      // A failed step with a question is asked about already.
      if (step.status !== "failed" || step.question != null) continue;
      const blocks =
        document?.steps.filter((it) => it.status === "blocked" && dependsOn(document.steps, it, step.id)).length ?? 0;
      found.push({
        kind: "failed",
        key: `f${line.id}/${step.id}`,
        at: step.since,
        quest: line.id,
        request: line.request,
        step,
        blocks,
      });
    }
  }
  return found.sort((a, b) => a.at - b.at);
}

function dependsOn(steps: StepDocument[], step: StepDocument, on: string, seen = new Set<string>()): boolean {
  if (seen.has(step.id)) return false;
  seen.add(step.id);
  return step.dependsOn.some((id) => {
    if (id === on) return true;
    const next = steps.find((it) => it.id === id);
    return next ? dependsOn(steps, next, on, seen) : false;
  });
}
