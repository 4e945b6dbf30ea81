// The whole log on one strip: where much happened, where somebody was asked and where something failed. A click goes there.
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { EventMap, EventObject } from "../api/types";
import { store } from "../store/store";
import { lookOf } from "./event_words";
import { group, when } from "./words";

const PARTS = 100;
/** How many notable events are marked, of each kind. */
const MARKED = 100;
const NOTABLE: EventObject["type"][][] = [
  ["question_asked"],
  ["step_failed", "run_crashed"],
  ["run_parked", "step_parked"],
];

interface Strip {
  map: EventMap;
  marks: { id: number; look: string }[];
}

export function LogMap({ first, last, goTo }: { first: number; last: number; goTo: (id: number) => void }) {
  const [strip, setStrip] = useState<Strip | null>(null);
  useEffect(() => {
    let gone = false;
    const read = async () => {
      const map = await api.eventMap(PARTS);
      const found = await Promise.all(
        NOTABLE.map((types) => api.find({ type: types.join() }, map.head + 1, MARKED).then((page) => page.events)),
      );
      const marks = found.flat().map((event) => ({ id: event.id, look: lookOf(event.type, event) }));
      if (!gone) setStrip({ map, marks });
    };
    // Without the strip the log is as usable as with it.
    read().catch(() => {});
    return () => {
      gone = true;
    };
  }, []);
  if (!strip || strip.map.parts.length < 2) return null;
  const { parts, head } = strip.map;
  const ends = [...parts.slice(1).map((part) => part.ts), store.now()];
  // Few milliseconds for an equal number of events: much happened. The scale is logarithmic, as days and seconds stand side by side.
  const paces = parts.map((part, at) => 1 / Math.log2(2 + Math.max(0, (ends[at] ?? part.ts) - part.ts)));
  const most = Math.max(...paces);
  const place = (id: number) => `${(100 * (head - id)) / head}%`;
  return (
    <div
      class="log-map"
      aria-hidden="true"
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        goTo(Math.max(1, Math.round(head * (1 - (event.clientY - box.top) / box.height))));
      }}
    >
      {parts.map((part, at) => (
        <i
          key={part.first}
          title={`#${group(part.first)}, ${when(part.ts, store.now())}`}
          style={{
            bottom: `${(100 * at) / parts.length}%`,
            height: `${60 / parts.length}%`,
            width: `${Math.round(10 + (90 * (paces[at] ?? 0)) / most)}%`,
          }}
        />
      ))}
      {strip.marks.map(({ id, look }) => (
        <i key={id} class={`mark ${look}`} style={{ top: place(id) }} title={`#${group(id)}`} />
      ))}
      <span
        class="here"
        style={{ top: place(Math.min(head, last)), height: `${Math.max(2, (100 * (last - first)) / head)}%` }}
      />
    </div>
  );
}
