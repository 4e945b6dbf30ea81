// Mail: the human's, and what agents write to each other. Looked at once, then added to by the stream. Looking is not reading.
import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Problem } from "../api/client";
import type { EventObject, SeenMail } from "../api/types";
import { store, useAttempt } from "./store";

/** A mail, and when it was read, if the event of that was seen. */
export type Letter = SeenMail & { readAt?: number };

export interface Letters {
  /** By the id of their event, the oldest first. */
  mail: Letter[];
  /** There is a part of the log that was not looked at. */
  more: boolean;
}

/** A conversation by mail. The human is one of the two in their own. */
export interface Thread {
  key: string;
  /** Those who are written to from here: one agent, or the two that write to each other. */
  others: string[];
  mail: Letter[];
}

/** How far back each kind of mail was looked for. Nothing when all was seen. */
interface Places {
  human: number | null;
  agents: number | null;
}

type State = SeenMail["state"];

const TYPES = { type: "mail_sent,mail_delivered,mail_read" };
/** Mail events between agents that one look brings. */
const LOOK = 200;
/** Unread mail that is so old that it has to be looked up one by one. */
const LOOKED_UP = 20;
const FURTHER: Record<State, number> = { queued: 0, delivered: 1, read: 2 };

class Box {
  private readonly mail = new Map<number, SeenMail>();
  /** How far each mail has come, also for mail that is not here yet. */
  private readonly states = new Map<number, State>();
  private readonly readAt = new Map<number, number>();

  take(letter: SeenMail): void {
    this.mail.set(letter.id, letter);
    this.reach(letter.id, letter.state);
  }

  event(event: EventObject): boolean {
    if (event.type === "mail_sent") {
      const { id, from, to, ts: sent, body } = event;
      this.take({ id, from, to, sent, body, state: "queued" });
    } else if (event.type === "mail_read") {
      this.readAt.set(event.mail, event.ts);
      this.reach(event.mail, "read");
    } else if (event.type === "mail_delivered") this.reach(event.mail, "delivered");
    else return false;
    return true;
  }

  /** A mail never goes back: answers may come in any order. */
  private reach(id: number, state: State): void {
    const known = this.states.get(id) ?? "queued";
    if (FURTHER[state] >= FURTHER[known]) this.states.set(id, state);
  }

  has(id: number): boolean {
    return this.mail.has(id);
  }

  list(): Letter[] {
    return [...this.mail.values()]
      .map((letter) => {
        const readAt = this.readAt.get(letter.id);
        return { ...letter, state: this.states.get(letter.id) ?? letter.state, ...(readAt ? { readAt } : {}) };
      })
      .sort((a, b) => a.id - b.id);
  }
}

export function useLetters(): { letters: Letters | Problem | null; earlier: () => Promise<void> } {
  const [letters, setLetters] = useState<Letters | Problem | null>(null);
  const box = useRef(new Box());
  const places = useRef<Places>({ human: null, agents: null });
  const show = () => {
    const { human, agents } = places.current;
    setLetters({ mail: box.current.list(), more: human !== null || agents !== null });
  };
  const look = async ({ human, agents }: Places) => {
    const next: Places = { human: null, agents: null };
    const own = human === null ? null : api.mailThreads(human);
    const between = agents === null ? null : api.find(TYPES, agents, LOOK);
    const [threads, page] = await Promise.all([own, between]);
    for (const letter of threads?.mail ?? []) box.current.take(letter);
    next.human = threads?.before ?? null;
    for (const event of page?.events ?? []) box.current.event(event);
    if (page?.more) next.agents = page.events[0]?.id ?? page.from + 1;
    places.current = next;
  };
  const loaded = store.state !== null;
  const attempt = useAttempt(letters instanceof Error);
  useEffect(() => {
    if (!loaded) return;
    let ready = false;
    const stop = store.tap((event) => {
      if (box.current.event(event) && ready) show();
    });
    const begin = async () => {
      const end = (store.state?.head ?? 0) + 1;
      await look({ human: end, agents: end });
      // Unread mail is shown however old it is.
      const missing = [...(store.state?.mail.keys() ?? [])].filter((id) => !box.current.has(id)).slice(-LOOKED_UP);
      const found = await Promise.all(missing.map((id) => api.mailThreads(id + 1, 1)));
      for (const { mail } of found) for (const letter of mail) box.current.take(letter);
      ready = true;
      show();
    };
    begin().catch((problem: Problem) => setLetters(problem));
    return stop;
  }, [loaded, attempt]);
  const earlier = async () => {
    await look(places.current);
    show();
  };
  return { letters, earlier };
}

/** Who writes to whom: the threads, the one with the newest mail first. */
export function threadsOf(mail: Letter[]): Thread[] {
  const threads = new Map<string, Thread>();
  for (const letter of mail) {
    const others = [letter.from, letter.to].filter((it) => it !== "human").sort();
    const key = keyOf(others);
    const thread = threads.get(key) ?? { key, others: [...new Set(others)], mail: [] };
    thread.mail.push(letter);
    threads.set(key, thread);
  }
  return [...threads.values()].sort((a, b) => (b.mail.at(-1)?.id ?? 0) - (a.mail.at(-1)?.id ?? 0));
}

/** The part of the address that names a thread. */
export const keyOf = (others: string[]) => [...new Set(others)].sort().join("/");
