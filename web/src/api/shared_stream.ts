// One event stream for all tabs of a browser. A browser opens at most six connections to one address, so with a stream in each tab
// the seventh tab would wait for ever. The tab that holds a lock has the stream and hands every event to the others. When that tab
// is closed, the browser gives the lock to the next one.
import type { Open, Source } from "./feed";
import type { EventObject } from "./types";

/** How long the tab with the stream may take to answer before this tab opens a stream of its own. */
const ANSWER_MS = 3000;
/** How often a tab asks whether the one with the stream is still there. */
const ASK_MS = 20_000;
const NAME = "hatchery-events";

type Message =
  | { type: "ask" }
  /** A tab has opened the stream: whoever listens asks again, so that it is known. */
  | { type: "who" }
  /** How the stream stands, the last event that came by it, and what is wrong with the store. */
  | { type: "stands"; live: boolean; head: number; trouble: string | null }
  | { type: "event"; event: EventObject };

export interface Channel {
  postMessage(message: Message): void;
  onmessage: ((message: { data: Message }) => void) | null;
  close(): void;
}

/** Calls `held` when this tab has the lock, which it keeps until the promise is settled or the signal comes. */
export type Lock = (held: () => Promise<void>, signal: AbortSignal) => void;

export interface Means {
  channel(): Channel;
  lock: Lock;
}

/** What the browser offers for this, if it does. */
export function browserMeans(): Means | null {
  if (typeof BroadcastChannel === "undefined" || typeof navigator === "undefined" || !navigator.locks) return null;
  return {
    channel: () => new BroadcastChannel(NAME) as unknown as Channel,
    lock: (held, signal) => {
      navigator.locks.request(NAME, { signal }, held).catch(() => {
        // The signal came: this tab does not want the stream any more.
      });
    },
  };
}

/** Opens the stream in one of the tabs, and listens to that one in the others. */
export function shared(inner: Open, means: Means): Open {
  return (after, on) => new Tab(after, on, inner, means);
}

class Tab implements Source {
  private readonly channel: Channel;
  private readonly gone = new AbortController();
  /** The last event that this tab has heard, or had when it began to listen. */
  private head: number;
  /** The stream, if this tab has it. */
  private stream: Source | null = null;
  private live = false;
  private trouble: string | null = null;
  private leads = false;
  /** Whether another tab has asked. As long as none has, nothing is sent: to send every event costs a page more than to take it in. */
  private heard = false;
  private release: () => void = () => {};
  private answer: ReturnType<typeof setTimeout> | undefined;
  private readonly asking: ReturnType<typeof setInterval>;

  constructor(
    after: number,
    private readonly on: Parameters<Open>[1],
    private readonly inner: Open,
    means: Means,
  ) {
    this.head = after;
    this.channel = means.channel();
    this.channel.onmessage = ({ data }) => this.hear(data);
    means.lock(() => this.lead(), this.gone.signal);
    this.ask();
    this.asking = setInterval(() => this.ask(), ASK_MS);
  }

  close(): void {
    this.gone.abort();
    clearTimeout(this.answer);
    clearInterval(this.asking);
    this.channel.onmessage = null;
    this.channel.close();
    this.stream?.close();
    this.release();
  }

  /** This tab has the lock until it is closed. */
  private lead(): Promise<void> {
    if (this.gone.signal.aborted) return Promise.resolve();
    this.leads = true;
    // A tab that has opened a stream of its own keeps it.
    if (this.stream) this.call();
    this.begin();
    return new Promise((resolve) => {
      this.release = resolve;
    });
  }

  private begin(): void {
    clearTimeout(this.answer);
    if (this.stream) return;
    this.stream = this.inner(this.head, {
      open: () => {
        this.live = true;
        this.trouble = null;
        this.on.open();
        this.call();
      },
      event: (event) => {
        this.head = Math.max(this.head, event.id);
        this.on.event(event);
        if (this.leads && this.heard) this.channel.postMessage({ type: "event", event });
      },
      error: () => {
        this.live = false;
        this.tell();
        this.on.error();
      },
      trouble: (words) => {
        this.trouble = words;
        this.on.trouble(words);
        this.tell();
      },
    });
  }

  /** Asks who listens: whoever asked before this tab was there is not known here. */
  private call(): void {
    if (this.leads) this.channel.postMessage({ type: "who" });
    this.tell();
  }

  private tell(): void {
    if (this.leads)
      this.channel.postMessage({ type: "stands", live: this.live, head: this.head, trouble: this.trouble });
  }

  private hear(message: Message): void {
    if (message.type === "ask") {
      this.heard = true;
      if (this.leads) this.tell();
      return;
    }
    if (message.type === "who") return this.ask();
    // A tab with a stream of its own needs nobody else's.
    if (this.stream) return;
    clearTimeout(this.answer);
    this.answer = undefined;
    if (message.type === "event") {
      this.hearEvent(message.event);
    } else if (message.live) {
      if (!this.live || message.head > this.head) {
        this.on.open(message.head);
        this.trouble = null;
      }
      this.head = Math.max(this.head, message.head);
      this.live = true;
      // A tab of an older version does not say it.
      const trouble = message.trouble ?? null;
      if (trouble !== this.trouble) this.on.trouble(trouble);
      this.trouble = trouble;
    } else if (this.live) {
      this.live = false;
      this.on.error();
    }
  }

  private hearEvent(event: EventObject): void {
    // The tab with the stream may be behind this tab: it began earlier, or took the stream over before it had heard everything.
    if (event.id <= this.head) return;
    if (!this.live) {
      // It came before the answer to this tab's question: what was sent before this tab listened is not missing in the stream.
      this.live = true;
      this.trouble = null;
      this.on.open(event.id - 1);
    }
    this.head = Math.max(this.head, event.id);
    this.on.event(event);
  }

  /** Without an answer the other tab hangs, or is none of this version. */
  private ask(): void {
    if (this.stream) return;
    this.answer ??= setTimeout(() => this.begin(), ANSWER_MS);
    this.channel.postMessage({ type: "ask" });
  }
}
