// Wards that are tried before their quests begin. The daemon goes on with a trial when the page is left.
import { useEffect } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { TriedWard } from "../api/types";
import { signal } from "../app/signal";
import { useAttempt } from "./store";

export type Trial =
  | { state: "none" }
  | { state: "running" }
  | { state: "over"; tried: TriedWard }
  | { state: "failed"; problem: Problem };

const known = signal<ReadonlyMap<string, Trial>>(new Map());

function note(quest: string, trial: Trial): void {
  known.set(new Map(known.get()).set(quest, trial));
}

/** Tries the ward of a quest that has not begun, and begins the quest if the ward is green. */
export function beginAfterTrial(quest: string): void {
  note(quest, { state: "running" });
  api.tryWard(quest).then(
    (tried) => note(quest, { state: "over", tried }),
    (problem: Problem) => note(quest, { state: "failed", problem }),
  );
}

/** The last trial of a quest that has not begun. One that was begun elsewhere, or before this page was loaded, counts as well. */
export function useTrial(quest: string): Trial | undefined {
  const trial = known.use().get(quest);
  const attempt = useAttempt(trial?.state === "failed" && trial.problem.away);
  useEffect(() => {
    if (known.get().get(quest)?.state === "running") return;
    let here = true;
    const look = async (wait: boolean): Promise<void> => {
      const { running, tried } = await api.wardTrial(quest, wait);
      if (!here) return;
      note(quest, running ? { state: "running" } : tried ? { state: "over", tried } : { state: "none" });
      if (running) await look(true);
    };
    look(false).catch((problem: Problem) => here && note(quest, { state: "failed", problem }));
    return () => {
      here = false;
    };
  }, [quest, attempt]);
  return trial;
}
