// Seats: who is awake, and what can I press?
import { useCallback, useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { SeatList, SeatView, ThreadLine } from "../api/types";
import { notify } from "../app/dialogs";
import { useDraft } from "../app/drafts";
import { useActions } from "../app/keys";
import { to } from "../app/router";
import { store, useAttempt } from "../store/store";
import { EmptyEgg, Face, HatchingEgg } from "../ui/face";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { SEND } from "../ui/key_names";
import { Markdown } from "../ui/markdown";
import { Ago, At, useClock } from "../ui/time";
import { Count, count, list as listed, plain, when } from "../ui/words";
import { Loading } from "./home";

/** The lead's seat, in the middle. */
const LEAD = 4;

/** Read anew after each of these: a list of nine is cheaper to read than to fold. */
const CHANGES = /^(seat|agent_killed|agent_expired|session_|inbox_)/;

/** The seats, and the conversation with the agent of one of them. */
function useSeats(chosen: string | null): { list: SeatList | Problem | null; thread: ThreadLine[] } {
  const [list, setList] = useState<SeatList | Problem | null>(null);
  const [thread, setThread] = useState<ThreadLine[]>([]);
  const attempt = useAttempt(list instanceof Error);
  useEffect(() => {
    const read = () => void api.seats().then(setList, setList);
    read();
    return store.tap((event) => {
      if (CHANGES.test(event.type)) read();
    });
  }, [attempt]);
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
      if (event.type === "mail_sent" && (event.from === chosen || event.to === chosen)) read();
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
      if (document.querySelector("dialog[open]")) return;
      const at = Number(event.key) - 1;
      if (event.key === "Escape") choose(null, list.lead ?? null);
      else if (Number.isInteger(at) && at >= 0 && at <= 8) choose(...target(list, at));
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [list, choose]);
  const button = list && !(list instanceof Error) ? list.button : "none";
  useActions([
    agent && {
      key: "S",
      words: "Say something to the chosen seat",
      act: () => document.getElementById("to-seat")?.focus(),
    },
    button === "summon" && { words: "SUMMON", act: () => api.summon().catch(notify) },
    button === "wake" && { words: "WAKE", act: () => api.wakeSeats().catch(notify) },
  ]);
  // An agent's thread is worth more than an empty panel: the first agent that is awake is chosen at the start.
  const first = list && !(list instanceof Error) ? firstOf(list) : null;
  useEffect(() => {
    if (first && agent === null) choose(...first);
  }, [first?.[1]]);
  if (!list) return <Loading />;
  if (list instanceof Error) {
    return (
      <div class="empty">
        <h1>The seats cannot be read</h1>
        <p>
          {list.message} {list.hint}
        </p>
      </div>
    );
  }
  const taken = list.seats.some((seat) => seat.status !== "expired") || list.lead;
  return (
    <>
      <header class="head">
        <div>
          <h1>{headline(list)}</h1>
          <p class="sub">
            {taken
              ? "A sleeper keeps its soul and its last conversation, and wakes with both."
              : "An agent that is summoned chooses a name and keeps it. It takes some minutes."}
          </p>
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
              <Seat key={at} at={at} list={list} selected={isChosen(list, at, position, agent)} choose={choose} />
            ))}
          </fieldset>
        </section>
        {agent && <Thread list={list} position={position} agent={agent} lines={thread} />}
      </div>
    </>
  );
}

function Thread({
  list,
  position,
  agent,
  lines,
}: {
  list: SeatList;
  position: number | null;
  agent: string;
  lines: ThreadLine[];
}) {
  const seat = position === null ? seatAt(list, LEAD) : seatAt(list, position);
  const name = plain(seat?.name ?? (position === null ? "the lead" : `seat ${position}`));
  const last = lines.findLast((line) => line.speakerType !== "human");
  const place = position === null ? "the lead" : `seat ${position}`;
  return (
    <section aria-label={`Thread with ${name}`}>
      <div class="seat-head">
        {seat && <Mark seat={seat} />}
        <h2>{name}</h2>
        <span class="faint small cut">
          {place} · {seat ? stateWord(seat) : "alive"}
          {last && (
            <>
              {", "}
              <Ago at={last.ts} before="said something " />
            </>
          )}
        </span>
        <a class="end link small faint" href={to.agent(agent)}>
          Open as agent
        </a>
      </div>
      {seat?.hasSoul && <Soul seat={seat} />}
      {lines.length === 0 && <p class="muted">Nothing was said yet.</p>}
      {lines.map((line) => (
        <article key={line.id} class={`msg${line.speakerType === "human" ? " is-human" : ""}`}>
          <div class="by">
            <b>{line.speakerType === "human" ? "You" : plain(line.speakerName)}</b>
            {line.mailTo !== undefined && (
              <span class="muted small">
                {plain(line.mailTo) === name ? "by mail" : `by mail to ${plain(line.mailTo)}`}
              </span>
            )}
            <At at={line.ts} />
          </div>
          <div class="body prose">
            <Markdown text={plain(line.text)} />
          </div>
        </article>
      ))}
      {list.sessionId ? (
        <Composer to={name} position={position} led={Boolean(list.lead)} />
      ) : (
        <p class="muted small">No session is open. WAKE opens one, and it hears you again.</p>
      )}
    </section>
  );
}

/** What it wrote about itself when it chose its name. Read when it is unfolded. */
function Soul({ seat }: { seat: SeatView }) {
  const [words, setWords] = useState<string | null>(null);
  useEffect(() => setWords(null), [seat.gridPosition]);
  return (
    <details
      class="inherited soul"
      key={seat.gridPosition}
      onToggle={(event) => {
        if (!event.currentTarget.open || words !== null) return;
        api
          .identities()
          .then(
            ({ docs }) =>
              setWords(docs.find((it) => it.gridPosition === seat.gridPosition)?.individuationArtifact ?? ""),
            notify,
          );
      }}
    >
      <summary class="lab">
        <Icon name="right" size={12} />
        <span class="cut">
          Its soul, written {seat.createdAt != null && when(seat.createdAt, store.now())} when it chose its name
        </span>
      </summary>
      <div class="prose">{words === null ? <p class="faint">Reading …</p> : <Markdown text={plain(words)} />}</div>
    </details>
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
  const led = at === LEAD && Boolean(list.lead && list.sessionId);
  const empty = (!seat || seat.status === "expired") && !led;
  return (
    <button
      type="button"
      class={`seat${selected ? " is-sel" : ""}${seat?.status === "sleeping" ? " asleep" : ""}`}
      aria-pressed={selected}
      disabled={empty}
      onClick={() => choose(...target(list, at))}
    >
      {!seat || empty ? (
        led ? (
          <HatchingEgg color={null} />
        ) : (
          <EmptyEgg />
        )
      ) : seat.status === "hatching" ? (
        <HatchingEgg color={seat.color} />
      ) : (
        <Face seat={seat} />
      )}
      <span class="name">
        {seat && !empty && <Mark seat={seat} />}
        <span class="cut">
          {empty
            ? at === LEAD
              ? "the lead"
              : `seat ${at}`
            : plain(seat?.name ?? (seat?.status === "hatching" ? "hatching" : "the lead"))}
        </span>
      </span>
      <span class="sub">
        {empty ? seat ? "expired" : "empty" : <Words seat={seat} lead={at === LEAD} list={list} />}
      </span>
    </button>
  );
}

function Words({ seat, lead, list }: { seat: SeatView | undefined; lead: boolean; list: SeatList }) {
  if (!seat) return <>alive</>;
  if (seat.waking) return <>waking</>;
  if (seat.status === "hatching" && seat.until) return <Left until={seat.until} />;
  // Two agents may have one name: then the seat tells them apart.
  const twin = list.seats.some((it) => it.name === seat.name && it.gridPosition !== seat.gridPosition);
  const words = [lead ? "the lead" : "", plain(seat.colorName ?? ""), twin ? `seat ${seat.gridPosition}` : ""].filter(
    Boolean,
  );
  const since = seat.status === "sleeping" && seat.lastAliveAt ? when(seat.lastAliveAt, store.now()) : null;
  return (
    <>
      {words.join(" · ") || seat.status}
      {since && <span class="hide-small"> · since {since}</span>}
    </>
  );
}

/** How long an egg has left to choose a name. */
function Left({ until }: { until: number }) {
  const [say, set] = useState(() => leftOf(until));
  useEffect(() => set(() => leftOf(until)), [until]);
  return <span class="num">{useClock(say)}</span>;
}

const leftOf = (until: number) => (now: number) => {
  const seconds = Math.max(0, Math.ceil((until - now) / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")} left to choose a name`;
};

function Mark({ seat }: { seat: SeatView }) {
  if (seat.status === "sleeping") return <Glyph as="asleep" word="asleep" />;
  if (seat.status === "alive") return <span class="live" role="img" aria-label="alive" />;
  return null;
}

function stateWord(seat: SeatView): string {
  return seat.status === "sleeping" ? "asleep" : seat.status;
}

function Composer({ to: name, position, led }: { to: string; position: number | null; led: boolean }) {
  const [text, setText] = useDraft(`seat:${position ?? "lead"}`);
  const [sending, setSending] = useState(false);
  const send = () => {
    if (!text.trim() || sending) return;
    setSending(true);
    api
      .sendToSeat(text, position)
      .then(() => setText(""), notify)
      .finally(() => setSending(false));
  };
  return (
    <form
      class="composer is-still"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="box">
        <label class="sr" for="to-seat">
          To {name}
        </label>
        <textarea
          id="to-seat"
          rows={2}
          value={text}
          placeholder={led ? `To ${name}. Without a choice, to the lead.` : `To ${name}`}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) send();
          }}
        />
        <div class="bar">
          <span class="cut">
            <kbd>1</kbd> to <kbd>9</kbd> choose a seat
            {led && (
              <>
                , <kbd>esc</kbd> the lead
              </>
            )}
          </span>
          <button class="btn you" type="submit" disabled={sending || text.trim() === ""}>
            Send <kbd>{SEND}</kbd>
          </button>
        </div>
      </div>
    </form>
  );
}

function seatAt(list: SeatList, at: number): SeatView | undefined {
  return list.seats.find((seat) => seat.gridPosition === at);
}

/** The lead is chosen by choosing nobody. */
function target(list: SeatList, at: number): [number | null, string | null] {
  if (at === LEAD) return [null, list.lead ?? null];
  const seat = seatAt(list, at);
  return seat && seat.status !== "expired" ? [at, seat.agent ?? null] : [null, list.lead ?? null];
}

function isChosen(list: SeatList, at: number, position: number | null, agent: string | null): boolean {
  return at === LEAD ? position === null && agent !== null && agent === list.lead : position === at;
}

function firstOf(list: SeatList): [number | null, string] | null {
  const seat =
    list.seats.find((it) => it.status === "alive" && it.agent && it.gridPosition !== LEAD) ??
    list.seats.find((it) => it.status === "sleeping" && it.agent && it.gridPosition !== LEAD);
  if (seat?.agent) return [seat.gridPosition, seat.agent];
  return list.lead ? [null, list.lead] : null;
}

/** "Six are awake, two sleep and one hatches". */
function headline(list: SeatList): string {
  const many = (status: string) => list.seats.filter((seat) => seat.status === status).length;
  const says: [number, string, string][] = [
    [many("alive"), "is awake", "are awake"],
    [many("sleeping"), "sleeps", "sleep"],
    [many("hatching"), "hatches", "hatch"],
  ];
  const parts = says.filter(([n]) => n > 0);
  if (parts.length === 0) return "Nine seats, nobody in them";
  return listed(parts.map(([n, one, more], at) => `${at === 0 ? Count(n) : count(n)} ${n === 1 ? one : more}`));
}
