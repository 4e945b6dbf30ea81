// The events that match the filters, the newest first. The daemon looks for them, backwards from the end.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { EventObject } from "../api/types";
import { store } from "../store/store";
import { isFit, type LogFilters } from "./log_filters";
import { LogHead, LogRow } from "./log_rows";
import { group } from "./words";

/** How many events that fit are asked for at once. */
const FOUND = 100;

export function Matches({ filters }: { filters: LogFilters }) {
  const { asked } = filters;
  const [found, setFound] = useState<EventObject[]>([]);
  const [before, setBefore] = useState<number | null>(null);
  const [total, setTotal] = useState<{ count: number; whole: boolean } | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [busy, setBusy] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const here = useRef(true);
  /** Ids have no gaps, so a time is a place in the log. */
  const bounds = useRef({ after: 0, before: Number.MAX_SAFE_INTEGER });
  const look = async (from: number) => {
    setBusy(true);
    try {
      let place = Math.min(from, bounds.current.before);
      let events: EventObject[] = [];
      let more = true;
      // One answer looks at a part of the log; what is rare may be further back.
      while (more && events.length === 0 && here.current) {
        const page = await api.find(asked, place, FOUND);
        events = page.events.filter((it) => it.id > bounds.current.after);
        place = page.events[0]?.id ?? page.from + 1;
        more = page.more && place > bounds.current.after + 1;
        setBefore(more ? place : null);
      }
      if (here.current) setFound((now) => [...now, ...events.reverse()]);
    } catch (it) {
      setProblem(it as Problem);
    }
    setBusy(false);
  };
  const count = async () => {
    let [sum, after] = [0, bounds.current.after];
    for (let round = 0; round < 10 && here.current && bounds.current.before === Number.MAX_SAFE_INTEGER; round += 1) {
      const part = await api.countEvents(asked, after);
      sum += part.count;
      after = part.upto;
      setTotal({ count: sum, whole: part.upto >= part.head });
      if (part.upto >= part.head) return;
    }
  };
  useEffect(() => {
    here.current = true;
    const begin = async () => {
      const { since, until } = filters;
      if (since !== null) bounds.current.after = (await api.eventAt(since)).after;
      if (until !== null) bounds.current.before = (await api.eventAt(until)).after + 1;
      await Promise.all([look((store.state?.head ?? 0) + 1), count()]);
    };
    begin().catch((it: Problem) => {
      setProblem(it);
      setBusy(false);
    });
    const stop = store.tap((event) => {
      if (filters.until !== null || !isFit(event, asked)) return;
      setFound((now) => [event, ...now].slice(0, 2000));
      setTotal((now) => (now ? { ...now, count: now.count + 1 } : now));
    });
    return () => {
      here.current = false;
      stop();
    };
  }, []);
  const head = group(store.state?.head ?? 0);
  return (
    <>
      <p class="small faint num matches">
        {total ? `${group(total.count)}${total.whole ? "" : " or more"} of ${head} match` : busy ? "Looking …" : ""}
      </p>
      {problem && (
        <p class="refused">
          {problem.message} <span class="faint">{problem.hint}</span>
        </p>
      )}
      {found.length === 0 && !busy && !problem && (
        <div class="empty">
          <h3>No event matches these filters</h3>
          <p>{head} events are there.</p>
          <div class="actions">
            <a class="btn line" href="/log">
              Clear the filters
            </a>
          </div>
        </div>
      )}
      {found.length > 0 && (
        <div class="log" role="grid" aria-label="Events that match" aria-rowcount={total?.count ?? -1}>
          <LogHead />
          <div role="rowgroup">
            {found.map((event) => (
              <LogRow
                key={event.id}
                id={event.id}
                event={event}
                chosen={chosen === event.id}
                choose={() => setChosen(chosen === event.id ? null : event.id)}
              />
            ))}
          </div>
        </div>
      )}
      {before !== null && (
        <button class="btn line" type="button" disabled={busy} onClick={() => void look(before)}>
          {busy ? "Looking …" : "Look further back"}
        </button>
      )}
    </>
  );
}
