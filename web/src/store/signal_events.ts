// By which events the signals, wards and merges of a quest are known: the log says it. Read once, then added to by the stream.
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { EventObject } from "../api/types";
import { store, useAttempt } from "./store";

const TYPES = ["signal_given", "ward_ended", "merge_ended", "step_failed"];
/** More than a view shows, because the newest of all steps are wanted. */
const LOOK = 100;

/** What happened to a step at a moment, as the document of the quest tells it, too. */
export const happened = (type: string, step: string, at: number) => `${type} ${step} ${at}`;

function keyOf(event: EventObject, quest: string): string | null {
  if (!TYPES.includes(event.type) || !("quest" in event) || !("step" in event) || event.quest !== quest) return null;
  return happened(event.type, String(event.step), event.ts);
}

export function useSignalEvents(quest: string): ReadonlyMap<string, number> {
  const [events, setEvents] = useState<ReadonlyMap<string, number>>(new Map());
  const [failed, setFailed] = useState(false);
  const loaded = store.state !== null;
  const attempt = useAttempt(failed);
  useEffect(() => {
    if (!loaded) return;
    let here = true;
    const add = (found: EventObject[]) => {
      const known = found.flatMap((event) => {
        const key = keyOf(event, quest);
        return key ? [[key, event.id] as const] : [];
      });
      if (here && known.length > 0) setEvents((now) => new Map([...now, ...known]));
    };
    setEvents(new Map());
    const stop = store.tap((event) => add([event]));
    api.find({ quest, type: TYPES.join(",") }, (store.state?.head ?? 0) + 1, LOOK).then(
      (page) => {
        add(page.events);
        if (here) setFailed(false);
      },
      () => here && setFailed(true),
    );
    return () => {
      here = false;
      stop();
    };
  }, [quest, loaded, attempt]);
  return events;
}
