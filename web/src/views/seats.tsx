// Seats: who is awake, and what can I press?
import { useCallback, useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { SeatList, SeatView, ThreadLine } from "../api/types";
import { notify } from "../app/dialogs";
import { store } from "../store/store";
import { clockSeconds, exact, plain } from "../ui/words";
import { Loading } from "./home";

/** Read anew after each of these: a list of nine is cheaper to read than to fold. */
const CHANGES = /^(seat|agent_killed|agent_expired|session_|inbox_)/;

/** The seats, and the conversation with the agent of one of them. */
function useSeats(chosen: string | null): { list: SeatList | Problem | null; thread: ThreadLine[] } {
  const [list, setList] = useState<SeatList | Problem | null>(null);
  const [thread, setThread] = useState<ThreadLine[]>([]);
  useEffect(() => {
    const read = () => void api.seats().then(setList, setList);
    read();
    return store.tap((event) => {
      if (CHANGES.test(event.type)) read();
    });
  }, []);
  useEffect(() => {
    setThread([]);
    if (!chosen) return;
    let gone = false;
    const read = () =>
      void api.thread(chosen).then(
        (it) => {
          if (!gone) setThread(it.messages);
        },
        () => undefined,
      );
    read();
    const stop = store.tap((event) => {
      if (event.type === "message_added" && event.agent === chosen) read();
    });
    return () => {
      gone = true;
      stop();
    };
  }, [chosen]);
  return { list, thread };
}

export default function Seats() {
  const [position, setPosition] = useState<number | null>(null);
  const [agent, setAgent] = useState<string | null>(null);
  const { list, thread } = useSeats(agent);
  const choose = useCallback((at: number | null, of: string | null) => {
    setPosition(at);
    setAgent(of);
  }, []);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const field = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
      if (field || event.metaKey || event.ctrlKey || event.altKey || !list || list instanceof Error) return;
      const at = Number(event.key) - 1;
      if (event.key === "Escape") choose(null, list.lead ?? null);
      else if (Number.isInteger(at) && at >= 0 && at <= 8) choose(...target(list, at));
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [list, choose]);
  if (!list) return <Loading />;
  if (list instanceof Error) {
    return (
      <div class="empty">
        <h3>The seats cannot be read</h3>
        <p>{list.message}</p>
      </div>
    );
  }
  const to = position === null ? "the lead" : (seatAt(list, position)?.name ?? `seat ${position}`);
  return (
    <>
      <header class="head">
        <div>
          <h1>{headline(list)}</h1>
          <p class="sub">A sleeper keeps its soul and its last conversation, and wakes with both.</p>
        </div>
        <div class="actions right">
          <Press button={list.button} />
        </div>
      </header>
      <div class="seats2">
        <section aria-label="Grid">
          <fieldset class="seats">
            <legend class="sr">Seats</legend>
            {Array.from({ length: 9 }, (_, at) => (
              <Seat key={at} at={at} list={list} selected={position === at} choose={choose} />
            ))}
          </fieldset>
        </section>
        <section aria-label={`Thread with ${to}`}>
          <h2>{to}</h2>
          {thread.map((line) => (
            <article key={line.id} class={`msg ${line.speakerType === "human" ? "human" : ""}`}>
              <div class="by">
                <b>{plain(line.speakerName)}</b>
                <time title={exact(line.ts)}>{clockSeconds(line.ts)}</time>
              </div>
              <div class="body prose">
                <p>{plain(line.text)}</p>
              </div>
            </article>
          ))}
          {list.sessionId ? <Composer to={to} position={position} /> : null}
        </section>
      </div>
    </>
  );
}

function Press({ button }: { button: SeatList["button"] }) {
  const [busy, setBusy] = useState(false);
  const press = (what: () => Promise<unknown>) => {
    setBusy(true);
    what()
      .catch(notify)
      .finally(() => setBusy(false));
  };
  if (button === "none") return null;
  if (button === "waking" || busy) {
    return (
      <button class="btn big" type="button" disabled>
        WAKING…
      </button>
    );
  }
  return (
    <button class="btn you big" type="button" onClick={() => press(button === "summon" ? api.summon : api.wakeSeats)}>
      {button === "summon" ? "SUMMON" : "WAKE"}
    </button>
  );
}

interface SeatProps {
  at: number;
  list: SeatList;
  selected: boolean;
  choose: (at: number | null, agent: string | null) => void;
}

function Seat({ at, list, selected, choose }: SeatProps) {
  const seat = seatAt(list, at);
  const lead = at === 4;
  const state = lead ? (list.lead && list.sessionId ? "alive" : "empty") : (seat?.status ?? "empty");
  const empty = state === "empty" || state === "expired";
  const name = lead ? "the lead" : empty ? `seat ${at}` : (seat?.name ?? "hatching");
  return (
    <button
      type="button"
      class={`seat ${selected ? "is-sel" : ""} ${state === "sleeping" ? "asleep" : ""}`}
      aria-pressed={selected}
      disabled={empty && !lead}
      onClick={() => choose(...target(list, at))}
    >
      <svg class="face" viewBox="0 -8 96 116" aria-hidden="true">
        <path
          d="M48 8C70 8 86 40 86 64a38 38 0 0 1-76 0C10 40 26 8 48 8z"
          fill={empty ? "none" : (seat?.color ?? "var(--edge)")}
          stroke={empty ? "var(--edge)" : "none"}
          stroke-dasharray="4 5"
        />
        {state === "alive" && !lead ? (
          <path d="M34 62v5M62 62v5M40 81c5 4 11 4 16 0" fill="none" stroke="#1d1b18" stroke-width="3" />
        ) : null}
        {state === "sleeping" ? (
          <path d="M29 65c3 3 8 3 11 0M56 65c3 3 8 3 11 0M44 81h8" fill="none" stroke="#1d1b18" stroke-width="2.6" />
        ) : null}
      </svg>
      <span class="name">
        <span class="cut">{plain(name)}</span>
      </span>
      <span class="sub cut">
        {seat?.waking ? "waking" : state}
        {seat?.colorName && !empty ? ` · ${plain(seat.colorName)}` : ""}
      </span>
    </button>
  );
}

function Composer({ to, position }: { to: string; position: number | null }) {
  const [text, setText] = useState("");
  const send = () => {
    if (!text.trim()) return;
    api.sendToSeat(text, position).then(() => setText(""), notify);
  };
  return (
    <div class="composer">
      <div class="box">
        <label class="sr" for="to-seat">
          To {to}
        </label>
        <textarea
          id="to-seat"
          rows={2}
          value={text}
          placeholder={`To ${to}.`}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) send();
          }}
        />
        <div class="bar">
          <span class="cut">
            <kbd>1</kbd> to <kbd>9</kbd> choose a seat, <kbd>esc</kbd> the lead
          </span>
          <button class="btn you" type="button" onClick={send}>
            Send <kbd>⌘↵</kbd>
          </button>
        </div>
      </div>
    </div>
  );
}

function seatAt(list: SeatList, at: number): SeatView | undefined {
  return list.seats.find((seat) => seat.gridPosition === at);
}

/** The lead is chosen by choosing nobody. */
function target(list: SeatList, at: number): [number | null, string | null] {
  if (at === 4) return [null, list.lead ?? null];
  const seat = seatAt(list, at);
  return seat && seat.status !== "expired" ? [at, seat.agent ?? null] : [null, list.lead ?? null];
}

function headline(list: SeatList): string {
  const count = (status: string) => list.seats.filter((seat) => seat.status === status).length;
  const parts = [
    [count("alive"), "awake"],
    [count("sleeping"), "asleep"],
    [count("hatching"), "hatching"],
  ] as const;
  const words = parts.filter(([many]) => many > 0).map(([many, word]) => `${many} ${word}`);
  return words.length > 0 ? words.join(", ") : "Nine seats, nobody in them";
}
