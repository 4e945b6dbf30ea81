// The conversation of an agent: read once, then added to by the stream. What comes while it is read is put in its place by its id.
import { useEffect, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { EventObject } from "../api/types";
import type { Note, Shown } from "../ui/talk";
import { Hearing } from "./hearing";
import { store, useAttempt } from "./store";

export interface History {
  messages: Shown[];
  notes: Note[];
  loading: boolean;
  problem: Problem | null;
}

const EMPTY: History = { messages: [], notes: [], loading: true, problem: null };
/** Message kinds that change what came before them: then it is read again. */
const CUTS: ReadonlySet<string> = new Set(["clear", "rewind", "interrupted"]);

function noteOf(event: EventObject): Note | null {
  const at = { id: event.id, ts: event.ts };
  switch (event.type) {
    case "run_crashed":
      return { ...at, words: `Its process ended: ${event.detail.split(". ")[0]}. Nothing that it had said is lost.` };
    case "run_resumed":
      return { ...at, words: "It was resumed." };
    case "run_interrupted":
      return { ...at, words: "Its turn was broken off." };
    case "run_parked":
      return { ...at, words: `It is parked: ${event.detail.split(". ")[0]}.` };
    case "run_silent":
      return { ...at, words: "Nothing was heard of it for longer than its run allows." };
    case "run_ended":
      return event.cause === "completed" ? null : { ...at, words: `Its run ended: ${event.detail}` };
    case "agent_killed":
      return { ...at, words: "It was killed. Its history stays, and can be forked." };
    default:
      return null;
  }
}

/** Whether a text may have markers, which the lead of the seats writes for the daemon. What is to be read of it, the daemon says. */
export function mayHaveMarkers(event: EventObject): boolean {
  return (
    event.type === "message_added" && event.kind === "assistant" && /^\[(AGENT_STATUS|ACTION)\]/m.test(event.content)
  );
}

/** Puts a message in its place, once. */
export function placed(messages: Shown[], message: Shown): Shown[] {
  if (messages.some((it) => it.id === message.id)) return messages;
  const after = messages.findIndex((it) => it.id > message.id);
  return after < 0 ? [...messages, message] : messages.toSpliced(after, 0, message);
}

function marked(messages: Shown[], id: number, unheard: boolean): Shown[] {
  const at = messages.findLastIndex((it) => it.id === id);
  const message = messages[at];
  return message && (message.unheard ?? false) !== unheard ? messages.with(at, { ...message, unheard }) : messages;
}

function runs(agent: string): boolean {
  const run = store.agent(agent)?.run;
  return run != null && run.phase !== "ended";
}

export function useHistory(agent: string | null): History {
  const [history, setHistory] = useState<History>(EMPTY);
  const [whose, setWhose] = useState(agent);
  const [round, setRound] = useState(0);
  const attempt = useAttempt(history.problem !== null);
  useEffect(() => {
    if (!agent) return;
    let here = true;
    let pending: EventObject[] | null = [];
    const hearing = new Hearing(
      (id) =>
        api.message(agent, id).then(
          ({ messages: [message] }) => (message?.id === id ? message.unheard === true : null),
          () => null,
        ),
      (id, unheard) => here && setHistory((now) => ({ ...now, messages: marked(now.messages, id, unheard) })),
    );
    const add = (events: EventObject[]) =>
      setHistory((now) => {
        const messages = [...now.messages];
        const notes = [...now.notes];
        let last = messages.at(-1)?.id ?? 0;
        for (const event of events) {
          const note = noteOf(event);
          if (note && !notes.some((it) => it.id === note.id)) notes.push(note);
          if (event.type !== "message_added" || event.id <= last) continue;
          last = event.id;
          messages.push({
            id: event.id,
            ts: event.ts,
            agent,
            kind: event.kind,
            content: event.content,
            source_id: null,
            interrupted: false,
            reachesModel: true,
            unheard: hearing.of(event.id) ?? false,
          } as Shown);
        }
        return { ...now, messages, notes };
      });
    /** What came since the last frame: however many events there are, the view is drawn once for them. */
    const fresh: EventObject[] = [];
    const flush = () => {
      if (fresh.length > 0) add(fresh.splice(0));
    };
    const stop = store.tap((event) => {
      if (!("agent" in event) || event.agent !== agent) return;
      if (mayHaveMarkers(event)) {
        api.message(agent, event.id).then(
          ({ messages: [message] }) => {
            if (!here || message?.id !== event.id) return;
            setHistory((now) => ({ ...now, messages: placed(now.messages, message) }));
          },
          () => here && setRound((n) => n + 1),
        );
        return;
      }
      if (event.type === "message_added" && CUTS.has(event.kind)) setRound((n) => n + 1);
      if (event.type === "message_added" && event.kind === "user") hearing.said(event.id, runs(agent));
      if (event.type === "message_heard") hearing.heard(event.message);
      if (pending) pending.push(event);
      else {
        fresh.push(event);
        store.touch("history");
      }
    });
    const stopFrames = store.on(["history"], flush);
    setHistory((now) => ({ ...(round > 0 && whose === agent ? now : EMPTY), loading: true }));
    setWhose(agent);
    api.history(agent).then(
      ({ messages }) => {
        if (!here) return;
        const events = pending ?? [];
        pending = null;
        hearing.read(
          messages,
          events.some((event) => event.type === "message_heard"),
        );
        const read = messages.map((it) => (it.unheard && hearing.of(it.id) === false ? { ...it, unheard: false } : it));
        setHistory((now) => ({ messages: read, notes: now.notes, loading: false, problem: null }));
        add(events);
      },
      (problem: Problem) => here && setHistory({ ...EMPTY, loading: false, problem }),
    );
    return () => {
      here = false;
      stop();
      stopFrames();
    };
  }, [agent, round, attempt]);
  // The first drawing after another agent was chosen comes before its history is asked for.
  return whose === agent ? history : EMPTY;
}
