// Going on with a build that rests. What was built before its sections of the spec have changed is decided first.
import { api, type Problem } from "../api/client";
import { type Fields, pendingQuestion, text } from "../api/live_status";
import { confirm, notify } from "../app/dialogs";
import { plural } from "./words";

/** Whether a build rests, so that somebody can go on with it. A quest that asks something goes on with the answer. */
export function rests(run: Fields): boolean {
  if (text(run.questId)) return run.status === "paused" && !pendingQuestion(run);
  return run.status === "paused" || run.status === "partial";
}

export async function resumeBuild(run: Fields): Promise<void> {
  try {
    const quest = text(run.questId);
    if (quest) {
      await api.resume(quest);
      return;
    }
    const { outdated } = await api.buildResume();
    if (outdated.length === 0) {
      await api.resumeBuild(null);
      return;
    }
    const n = outdated.length;
    confirm({
      title: "Resume build",
      words: `${plural(n, "Chunk", "Chunks")} ${outdated.join(", ")} ${plural(n, "was", "were")} built before ${plural(n, "its sections", "their sections")} of the spec changed.`,
      keep: "Cancel",
      choices: [
        { words: "Keep what was built", calm: true, act: () => api.resumeBuild("keep") },
        { words: "Build again", calm: true, act: () => api.resumeBuild("rebuild") },
      ],
    });
  } catch (problem) {
    notify(problem as Problem);
  }
}

export function ResumeBuild({ run }: { run: Fields }) {
  return (
    <button class="btn line" type="button" onClick={() => void resumeBuild(run)}>
      Resume build
    </button>
  );
}
