// The log: what happened, exactly. Ids have no gaps, so a place in the list is an id.
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { EventObject } from "../api/types";
import { prompt } from "../app/dialogs";
import { useActions } from "../app/keys";
import { usePlace } from "../app/router";
import { store, useTopics } from "../store/store";
import { FilterBar, filtersOf, isFiltered } from "../ui/log_filters";
import { LogMap } from "../ui/log_map";
import { Matches } from "../ui/log_matches";
import { detailHeight, LogHead, LogRow, rowHeight } from "../ui/log_rows";
import { Virtual } from "../ui/virtual";
import { day, group, plural } from "../ui/words";
import { Loading } from "./home";

/** How many events are asked for at once. */
const CHUNK = 200;
/** How many events are kept at hand. */
const KEPT = 20_000;

/** Events by id, read in chunks as they are looked at, and forgotten when there are too many. */
class Pages {
  readonly events = new Map<number, EventObject>();
  private readonly asked = new Set<number>();

  constructor(private readonly changed: () => void) {}

  add(event: EventObject): void {
    this.events.set(event.id, event);
    this.trim();
  }

  want(first: number, last: number): void {
    for (let chunk = Math.floor(first / CHUNK); chunk <= Math.floor(last / CHUNK); chunk += 1) {
      if (this.asked.has(chunk)) continue;
      const from = Math.max(first, chunk * CHUNK);
      const to = Math.min(last, chunk * CHUNK + CHUNK - 1);
      let whole = true;
      for (let id = from; id <= to; id += 1) if (!this.events.has(id)) whole = false;
      if (whole) continue;
      this.asked.add(chunk);
      void this.read(chunk);
    }
  }

  private async read(chunk: number): Promise<void> {
    const end = chunk * CHUNK + CHUNK - 1;
    let after = Math.max(0, chunk * CHUNK - 1);
    try {
      while (after < end) {
        const page = await api.events(after, Math.min(1000, end - after));
        if (page.events.length === 0) break;
        for (const event of page.events) this.events.set(event.id, event);
        after = page.events.at(-1)?.id ?? end;
      }
    } catch {
      // It is asked for again when it is looked at again, or when the daemon is back.
    }
    this.asked.delete(chunk);
    this.trim();
    this.changed();
  }

  private trim(): void {
    for (const id of this.events.keys()) {
      if (this.events.size <= KEPT) return;
      this.events.delete(id);
    }
  }
}

export default function Log() {
  useTopics("log", "connection");
  const { query, hash } = usePlace();
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  const pages = useMemo(() => new Pages(() => again()), []);
  const [head, setHead] = useState(store.state?.head ?? 0);
  const [following, setFollowing] = useState(true);
  const [chosen, setChosen] = useState<number | null>(hash ? Number(hash) : null);
  const [jump, setJump] = useState<{ at: number; id: number } | null>(null);
  const jumps = useRef(0);
  /** The events in sight. */
  const [sight, setSight] = useState<[number, number]>([1, 1]);
  const [row] = useState(rowHeight);
  /** When the first event happened. */
  const [began, setBegan] = useState<number | null>(null);
  useEffect(() => {
    api.eventMap(1).then(
      ({ parts }) => setBegan(parts[0]?.ts ?? null),
      () => {},
    );
  }, []);
  /** Matches that wait behind "2 new". */
  const [matches, setMatches] = useState(0);
  const live = store.state?.head ?? 0;
  const shownHead = following ? live : head;

  const filter = String(query);
  const last = useRef(filter);
  useEffect(() => {
    // Other filters show another list, from its top.
    if (last.current !== filter) setFollowing(true);
    last.current = filter;
  }, [filter]);
  useEffect(() => store.tap((event) => pages.add(event)), [pages]);
  // What is in sight and could not be read is read when the daemon is back.
  useEffect(() => pages.want(...sight), [store.round]);
  const goTo = (id: number) => {
    setFollowing(false);
    setHead(live);
    setChosen(id);
    jumps.current += 1;
    setJump({ at: live - id, id: jumps.current });
  };
  useEffect(() => {
    if (hash && live > 0) goTo(Number(hash));
  }, [hash, live > 0]);
  const ask = () =>
    prompt({
      title: "Go to an event",
      words: `The log has #1 to #${group(live)}.`,
      label: "Number",
      value: "",
      button: "Go",
      act: async (text) => {
        const id = Number(text.replaceAll(/[#,\s]/g, ""));
        if (!Number.isInteger(id) || id < 1 || id > live)
          throw { message: `There is no event ${text}.`, hint: `Choose from 1 to ${group(live)}.` } as Problem;
        goTo(id);
      },
    });
  /** Nothing moves from now on. */
  const stop = () => {
    if (!following) return;
    setHead(live);
    setFollowing(false);
  };
  const resume = () => {
    setFollowing(true);
    jumps.current += 1;
    setJump({ at: 0, id: jumps.current });
  };
  const follow = following ? stop : resume;
  useActions([
    { key: "#", words: "Go to an event", act: ask },
    { words: following ? "Stop following" : "Follow", act: follow },
  ]);
  if (!store.state) return <Loading />;
  const filters = filtersOf(query);
  const filtered = isFiltered(filters);
  const fresh = filtered ? matches : live - head;
  const open = chosen === null ? null : pages.events.get(chosen);
  const extra = open ? detailHeight(open) : 0;
  return (
    <>
      <header class="head">
        <div>
          <h1 class="num">
            {group(live)} {plural(live, "event")}, each once and in order
          </h1>
          <p class="sub">
            {began !== null && `Since ${day(began)}. `}
            {following
              ? "Following: new events appear on top, unless you have scrolled away or opened one."
              : "Nothing moves under your hand. New events wait until you follow again."}
          </p>
        </div>
        <div class="actions right">
          <button class="btn line" type="button" aria-pressed={following} onClick={follow}>
            <span class={`live${following ? "" : " is-idle"}`} aria-hidden="true" />
            {following ? "Following" : fresh > 0 ? `${group(fresh)} new` : "Follow"}
          </button>
          <button class="btn quiet" type="button" onClick={ask}>
            Go to event <kbd>#</kbd>
          </button>
        </div>
      </header>
      <FilterBar query={query} />
      {filtered ? (
        <Matches
          key={filter}
          filters={filters}
          following={following}
          stop={stop}
          follow={resume}
          waiting={setMatches}
        />
      ) : (
        <div class="log-cols">
          <div class="log" role="grid" aria-label="Events" aria-rowcount={shownHead + 1}>
            <LogHead />
            <Virtual
              count={shownHead}
              height={row}
              open={open && chosen !== null && chosen <= shownHead ? { at: shownHead - chosen, extra } : null}
              label="Events, the newest first"
              jump={jump}
              toTop={resume}
              seen={(first, last, isAtTop) => {
                pages.want(Math.max(1, shownHead - last), shownHead - first);
                setSight([Math.max(1, shownHead - last), shownHead - first]);
                if (!isAtTop) stop();
              }}
              row={(at) => {
                const id = shownHead - at;
                const event = pages.events.get(id);
                return (
                  <LogRow
                    id={id}
                    at={at}
                    event={event}
                    chosen={chosen === id}
                    choose={() => {
                      stop();
                      setChosen(chosen === id ? null : id);
                    }}
                  />
                );
              }}
            />
          </div>
          <LogMap first={sight[0]} last={sight[1]} goTo={goTo} />
        </div>
      )}
    </>
  );
}
