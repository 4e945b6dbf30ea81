// The log: what happened, exactly. Ids have no gaps, so a place in the list is an id.
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { EventObject } from "../api/types";
import { prompt } from "../app/dialogs";
import { setActions } from "../app/keys";
import { go, to, usePlace } from "../app/router";
import { store, useTopics } from "../store/store";
import { lookOf, whatOf, whoOf } from "../ui/event_words";
import { nameOf, questName } from "../ui/names";
import { Virtual } from "../ui/virtual";
import { clockMillis, exact, group } from "../ui/words";
import { Loading } from "./home";

/** How many events are asked for at once. */
const CHUNK = 200;
/** How many events are kept at hand. */
const KEPT = 20_000;
/** The height of a row: one line, or two at a hand’s width. */
const rowHeight = () => (matchMedia("(max-width: 860px)").matches ? 52 : 30);

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
      // It is asked for again when it is looked at again.
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
  useTopics("log");
  const { query, hash } = usePlace();
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  const pages = useMemo(() => new Pages(() => again()), []);
  const [head, setHead] = useState(store.state?.head ?? 0);
  const [following, setFollowing] = useState(true);
  const [chosen, setChosen] = useState<number | null>(hash ? Number(hash) : null);
  const [jump, setJump] = useState<{ at: number; id: number } | null>(null);
  const jumps = useRef(0);
  const [row] = useState(rowHeight);
  const live = store.state?.head ?? 0;
  const shownHead = following ? live : head;

  useEffect(() => store.tap((event) => pages.add(event)), [pages]);
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
  useEffect(() => setActions({ "#": ask }));
  if (!store.state) return <Loading />;
  const filters = ["agent", "quest", "step", "type", "words"].flatMap((key) => {
    const value = query.get(key);
    return value ? [{ key, value }] : [];
  });
  const fresh = live - head;
  const open = chosen === null ? null : pages.events.get(chosen);
  const extra = open ? detailHeight(open) : 0;
  return (
    <>
      <header class="head">
        <div>
          <h1 class="num">{group(live)} events, each once and in order</h1>
          <p class="sub">
            {following
              ? "Following: new events appear on top, unless you have scrolled away."
              : "You have scrolled away, so nothing moves under your hand."}
          </p>
        </div>
        <div class="actions right">
          <button
            class="btn line"
            type="button"
            aria-pressed={following}
            onClick={() => {
              setHead(live);
              setFollowing(!following);
              jumps.current += 1;
              if (!following) setJump({ at: 0, id: jumps.current });
            }}
          >
            <span class={`live${following ? "" : " is-idle"}`} aria-hidden="true" />
            {following ? "Following" : fresh > 0 ? `${group(fresh)} new` : "Follow"}
          </button>
          <button class="btn quiet" type="button" onClick={ask}>
            Go to event <kbd>#</kbd>
          </button>
        </div>
      </header>
      <Filters filters={filters} />
      {filters.length > 0 ? (
        <Matches key={filters.map((it) => it.value).join()} filters={filters} />
      ) : (
        <div class="log" role="grid" aria-label="Events" aria-rowcount={shownHead}>
          <LogHead />
          <Virtual
            count={shownHead}
            height={row}
            open={open && chosen !== null && chosen <= shownHead ? { at: shownHead - chosen, extra } : null}
            label="Events, the newest first"
            jump={jump}
            seen={(first, last) => {
              pages.want(Math.max(1, shownHead - last), shownHead - first);
              if (following && first > 0) {
                setHead(live);
                setFollowing(false);
              }
            }}
            row={(at) => {
              const id = shownHead - at;
              const event = pages.events.get(id);
              return (
                <LogRow
                  id={id}
                  event={event}
                  chosen={chosen === id}
                  choose={() => setChosen(chosen === id ? null : id)}
                />
              );
            }}
          />
        </div>
      )}
    </>
  );
}

function LogHead() {
  return (
    <div class="log-row is-head" role="row">
      <span role="columnheader">Event</span>
      <span role="columnheader">Time</span>
      <span role="columnheader">Type</span>
      <span role="columnheader">Who, or which step</span>
      <span role="columnheader">What</span>
    </div>
  );
}

function LogRow({
  id,
  event,
  chosen,
  choose,
}: {
  id: number;
  event: EventObject | undefined;
  chosen: boolean;
  choose: () => void;
}) {
  if (!event) {
    return (
      <div class="log-row is-loading" role="row">
        <span class="id">{group(id)}</span>
        <span role="cell">…</span>
      </div>
    );
  }
  const what = whatOf(event);
  return (
    <>
      <div
        class={`log-row${chosen ? " is-chosen" : ""}`}
        role="row"
        tabIndex={0}
        aria-selected={chosen}
        data-event={id}
        onClick={choose}
        onKeyDown={(key) => {
          if (key.key === "Enter" || key.key === " ") {
            key.preventDefault();
            choose();
          }
        }}
      >
        <span class="id" role="cell">
          {group(id)}
        </span>
        <time role="cell" title={exact(event.ts)}>
          {clockMillis(event.ts)}
        </time>
        <span class={`type cut ${lookOf(event.type, event)}`} role="cell">
          {event.type}
        </span>
        <span class="who cut" role="cell">
          {whoOf(event)}
        </span>
        <span class="what cut" role="cell" title={what.slice(0, 400)}>
          {what}
        </span>
      </div>
      {chosen && <Detail event={event} />}
    </>
  );
}

function json(event: EventObject): string {
  const text = JSON.stringify(event, null, 2);
  return text.length > 20_000 ? `${text.slice(0, 20_000)}\n… ${group(text.length)} characters in all` : text;
}

/** Rows have one height, so the open one says how tall it is. */
function detailHeight(event: EventObject): number {
  const lines = json(event).split("\n").length;
  return Math.min(lines, 16) * 20 + 84;
}

function Detail({ event }: { event: EventObject }) {
  const agent = "agent" in event && typeof event.agent === "string" ? event.agent : null;
  const quest = "quest" in event && typeof event.quest === "string" ? event.quest : null;
  const step = "step" in event && typeof event.step === "string" ? event.step : undefined;
  return (
    <div class="log-detail" style={{ height: `${detailHeight(event) - 10}px` }}>
      <pre class="out" tabIndex={0}>
        {json(event)}
      </pre>
      <div class="actions">
        {agent && (
          <a
            class="btn line small-btn"
            href={to.agent(agent, event.type === "message_added" ? `e${event.id}` : undefined)}
          >
            Open agent
          </a>
        )}
        {quest && (
          <a class="btn quiet small-btn" href={to.quest(quest, step)}>
            Open {step ? "step" : "quest"}
          </a>
        )}
        <button
          class="btn quiet small-btn"
          type="button"
          onClick={() => void navigator.clipboard?.writeText(`${location.origin}/log#${event.id}`)}
        >
          Copy link
        </button>
      </div>
    </div>
  );
}

type Filter = { key: string; value: string };

function without(key: string): string {
  const params = new URLSearchParams(location.search);
  params.delete(key);
  return `/log${params.size > 0 ? `?${params}` : ""}`;
}

function Filters({ filters }: { filters: Filter[] }) {
  const [text, setText] = useState("");
  const set = (key: string, value: string) => {
    const params = new URLSearchParams(location.search);
    params.set(key, value);
    go(`/log?${params}`);
  };
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        const word = text.trim();
        if (word === "") return;
        setText("");
        const id = Number(word.replaceAll(/[#,]/g, ""));
        if (/^#?[\d,]+$/.test(word) && id > 0) return go(`/log#${id}`);
        const agent = [...(store.state?.agents.values() ?? [])].find(
          (it) => it.view.name === word || it.view.id === word,
        );
        if (agent) return set("agent", agent.view.id);
        if (/^[a-z]+(_[a-z]+)+$/.test(word)) return set("type", word);
        return set("words", word);
      }}
    >
      <label class="sr" for="filter">
        Filter
      </label>
      <input
        class="field"
        id="filter"
        value={text}
        placeholder="Agent, type, words or an id"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {filters.map(({ key, value }) => (
        <span class="chip" key={key}>
          {key}: {key === "agent" ? nameOf(value) : key === "quest" ? questName(value) : value}
          <button type="button" aria-label={`Remove ${key}`} onClick={() => go(without(key))}>
            ×
          </button>
        </span>
      ))}
    </form>
  );
}

/** How many events that fit are asked for at once. */
const FOUND = 100;

/** Events that fit the filters, the newest first. The daemon looks for them, backwards from the end. */
function Matches({ filters }: { filters: Filter[] }) {
  const asked = Object.fromEntries(filters.map(({ key, value }) => [key, value]));
  const [found, setFound] = useState<EventObject[]>([]);
  const [before, setBefore] = useState<number | null>(null);
  const [total, setTotal] = useState<{ count: number; whole: boolean } | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const [busy, setBusy] = useState(true);
  const [problem, setProblem] = useState<Problem | null>(null);
  const here = useRef(true);
  const look = async (from: number) => {
    setBusy(true);
    try {
      let place = from;
      let events: EventObject[] = [];
      let more = true;
      // One answer looks at a part of the log; what is rare may be further back.
      while (more && events.length === 0 && here.current) {
        const page = await api.find(asked, place, FOUND);
        events = page.events;
        place = events[0]?.id ?? page.from + 1;
        more = page.more;
        setBefore(more ? place : null);
      }
      if (here.current) setFound((now) => [...now, ...events.reverse()]);
    } catch (it) {
      setProblem(it as Problem);
    }
    setBusy(false);
  };
  const count = async () => {
    let [sum, after] = [0, 0];
    for (let round = 0; round < 10 && here.current; round += 1) {
      const part = await api.countEvents(asked, after);
      sum += part.count;
      after = part.upto;
      setTotal({ count: sum, whole: part.upto >= part.head });
      if (part.upto >= part.head) return;
    }
  };
  useEffect(() => {
    here.current = true;
    void look((store.state?.head ?? 0) + 1);
    count().catch(() => {});
    const stop = store.tap((event) => {
      if (!filters.every((filter) => isFit(event, filter))) return;
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

/** Whether a new event fits. What it has to do with a quest by its agent, the daemon knows better. */
function isFit(event: EventObject, { key, value }: Filter): boolean {
  const field = (event as unknown as Record<string, unknown>)[key];
  switch (key) {
    case "agent":
    case "quest":
    case "step":
    case "type":
      return field === value;
    default:
      return JSON.stringify(event).toLowerCase().includes(value.toLowerCase());
  }
}
