// The events that match the filters, the newest first. The daemon alone decides what matches: it looks backwards from the end, and at what is
// new it looks when the stream says that there is something new.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { EventObject } from "../api/types";
import { store } from "../store/store";
import type { LogFilters } from "./log_filters";
import { detailHeight, LogHead, LogRow, rowHeight } from "./log_rows";
import { Virtual } from "./virtual";
import { group } from "./words";

/** How many events that fit are asked for at once. */
const FOUND = 100;
/** How many matches are kept at hand. Older ones can be looked for again. */
const KEPT = 20_000;
/** New events are looked at together, so that many of them do not become as many requests. */
const GATHER_MS = 100;

/** Matches among the events up to a place. */
interface Total {
  count: number;
  upto: number;
  whole: boolean;
}

interface Props {
  filters: LogFilters;
  following: boolean;
  /** Somebody has scrolled away or reads an event: nothing may move. */
  stop: () => void;
  follow: () => void;
  /** Says how many matches wait behind "2 new". */
  waiting: (count: number) => void;
}

export function Matches({ filters, following, stop, follow, waiting }: Props) {
  const { asked } = filters;
  /** The newest first, all that were found. */
  const [found, setFound] = useState<EventObject[]>([]);
  /** The newest match that is shown while nothing may move. */
  const [newest, setNewest] = useState<number | null>(null);
  const [before, setBefore] = useState<number | null>(null);
  const [total, setTotal] = useState<Total | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [busy, setBusy] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [jump, setJump] = useState<{ at: number; id: number } | null>(null);
  const [row] = useState(rowHeight);
  const here = useRef(true);
  /** Ids have no gaps, so a time is a place in the log. */
  const bounds = useRef({ after: 0, before: Number.MAX_SAFE_INTEGER });
  /** How far the new events were looked at. */
  const seen = useRef(0);

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
      setTotal({ count: sum, upto: part.upto, whole: part.upto >= part.head });
      if (part.upto >= part.head) return;
    }
  };
  /** Asks which of the new events match, until none is left. */
  const lookAhead = async () => {
    while (here.current && seen.current < (store.state?.head ?? 0)) {
      const page = await api.findAfter(asked, seen.current, FOUND);
      if (page.upto <= seen.current) return;
      seen.current = page.upto;
      const fresh = page.events.reverse();
      if (fresh.length > 0) setFound((now) => [...fresh, ...now]);
    }
  };

  useEffect(() => {
    here.current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const ahead = () => {
      if (timer !== undefined || isAsking || filters.until !== null) return;
      timer = setTimeout(() => {
        timer = undefined;
        isAsking = true;
        lookAhead()
          // When the daemon is back, the next event leads to another try.
          .catch(() => {})
          .finally(() => {
            isAsking = false;
          });
      }, GATHER_MS);
    };
    const begin = async () => {
      const { since, until } = filters;
      if (since !== null) bounds.current.after = (await api.eventAt(since)).after;
      if (until !== null) bounds.current.before = (await api.eventAt(until)).after + 1;
      const head = store.state?.head ?? 0;
      seen.current = Math.max(head, bounds.current.after);
      await Promise.all([look(head + 1), count()]);
      ahead();
    };
    begin().catch((it: Problem) => {
      setProblem(it);
      setBusy(false);
    });
    const leave = store.tap(() => {
      if (seen.current > 0) ahead();
    });
    return () => {
      here.current = false;
      clearTimeout(timer);
      leave();
    };
  }, []);

  useEffect(() => {
    if (found.length <= KEPT) return;
    setFound(found.slice(0, KEPT));
    setBefore(found[KEPT - 1]?.id ?? null);
  }, [found.length]);
  useLayoutEffect(() => {
    if (following) setJump((now) => ({ at: 0, id: (now?.id ?? 0) + 1 }));
    setNewest(following ? null : (found[0]?.id ?? store.state?.head ?? 0));
  }, [following]);

  const shown = newest === null ? found : found.filter((it) => it.id <= newest);
  const hidden = found.length - shown.length;
  useEffect(() => waiting(hidden), [hidden]);
  const head = group(store.state?.head ?? 0);
  const matching = total && total.count + found.filter((it) => it.id > total.upto).length;
  const at = shown.findIndex((it) => it.id === chosen);
  const open = shown[at];
  return (
    <>
      <p class="small faint num matches">
        {matching !== null
          ? `${group(matching)}${total?.whole ? "" : " or more"} of ${head} match`
          : busy
            ? "Looking …"
            : ""}
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
      {shown.length > 0 && (
        <div class="log" role="grid" aria-label="Events that match" aria-rowcount={(matching ?? shown.length) + 1}>
          <LogHead />
          <Virtual
            count={shown.length}
            height={row}
            open={open ? { at, extra: detailHeight(open) } : null}
            label="Events that match, the newest first"
            jump={jump}
            toTop={follow}
            seen={(_, __, isAtTop) => {
              if (following && !isAtTop) stop();
            }}
            row={(place) => {
              const event = shown[place];
              if (!event) return null;
              const isChosen = chosen === event.id;
              return (
                <LogRow
                  id={event.id}
                  at={place}
                  event={event}
                  chosen={isChosen}
                  choose={() => {
                    stop();
                    setChosen(isChosen ? null : event.id);
                  }}
                />
              );
            }}
          />
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
