// What the steps of a quest say of it.
import type { QuestDocument, StepDocument } from "../api/types";

/** Whether the last ward of a step did not accept its work. */
export function isRed(step: StepDocument): boolean {
  const verdict = step.wards?.at(-1)?.verdict;
  return typeof verdict === "object" && verdict !== null && "red" in verdict;
}

/** Whether the steps are only planned: the plan waits for consent, or is being made. */
export function isPlanned(quest: QuestDocument | null): boolean {
  return quest?.steps.some((step) => step.phase === "plan" && step.status !== "complete") ?? false;
}
