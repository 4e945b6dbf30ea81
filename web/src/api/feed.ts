// The one event stream. Ids have no gaps, so what is missing or doubled is seen, counted, and put right from the log.
import { api } from "./client";
import { browserMeans, shared } from "./shared_stream";
import type { EventObject, Trouble } from "./types";

/** How soon the stream is tried again after it broke, in ms; the last one holds from then on. */
const PATIENCE = [500, 1000, 2000, 4000, 8000];
/** A stream that is broken for less than this is nobody's business. */
export const SILENT_MS = 2000;
/** How many events are asked for at once to fill a gap. */
const PAGE = 1000;

export interface Counters {
  /** Events taken in. */
  taken: number;
  /** Events that came again and were left out. */
  doubled: number;
  /** Events that were missing in the stream and were read from the log. */
  filled: number;
  /** How often the stream was opened. */
  opened: number;
}

export interface FeedState {
  live: boolean;
  /** Since when it is not, by this machine's clock. */
  brokenSince: number | null;
  /** When it is tried again. */
  nextTry: number | null;
  /** What is wrong with the daemon's store. Unknown while the stream is broken. */
  trouble: string | null;
}

export interface Source {
  close(): void;
}

/** A stream that is open may say which event was the last before it. */
export type Open = (
  after: number,
  on: {
    open(head?: number): void;
    event(event: EventObject): void;
    error(): void;
    /** What is wrong with the store, or nothing any longer. A stream that is opened says it if something is. */
    trouble(words: string | null): void;
  },
) => Source;

/** The browser's own, one for each try: its own way of coming back would begin at the first cursor again. */
const browserSource: Open = (after, on) => {
  const source = new EventSource(`/api/events?after=${after}`);
  source.onopen = () => on.open();
  source.onmessage = (message) => on.event(JSON.parse(message.data as string) as EventObject);
  source.onerror = () => on.error();
  source.addEventListener("trouble", (message) => {
    on.trouble((JSON.parse((message as MessageEvent<string>).data) as Trouble).trouble ?? null);
  });
  return source;
};

/** One for all tabs, where the browser can do that. */
function bestSource(): Open {
  const means = browserMeans();
  return means ? shared(browserSource, means) : browserSource;
}

export class Feed {
  readonly counters: Counters = { taken: 0, doubled: 0, filled: 0, opened: 0 };
  state: FeedState = { live: false, brokenSince: null, nextTry: null, trouble: null };
  head: number;
  private source: Source | null = null;
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private waiting: EventObject[] = [];
  private filling = false;
  /** Up to which event the log is read: it is read once at a time. */
  private goal = 0;
  /** Up to which event this tab was behind when the stream was opened: none of those is missing in the stream. */
  private behind = 0;
  private closed = false;

  constructor(
    head: number,
    private readonly take: (event: EventObject) => void,
    private readonly changed: (state: FeedState) => void,
    private readonly open: Open = bestSource(),
    private readonly read: (after: number, limit: number) => Promise<{ events: EventObject[] }> = api.events,
  ) {
    this.head = head;
  }

  start(): void {
    if (this.closed) return;
    clearTimeout(this.timer);
    this.source?.close();
    // The new stream begins after the last event that was taken in, so it brings again what waited or is being read.
    this.waiting = [];
    this.filling = false;
    this.goal = this.head;
    this.counters.opened += 1;
    const source = this.open(this.head, {
      open: (head) => {
        this.failures = 0;
        this.tell({ live: true, brokenSince: null, nextTry: null, trouble: null });
        if (head === undefined || head <= this.head) return;
        this.behind = Math.max(this.behind, head);
        void this.fill(head);
      },
      event: (event) => this.arrive(event),
      trouble: (trouble) => this.tell({ ...this.state, trouble }),
      error: () => {
        if (this.source === source) this.broken();
      },
    });
    this.source = source;
  }

  stop(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.source?.close();
  }

  /** Takes an event in its order, whatever came before it. */
  arrive(event: EventObject): void {
    if (this.filling) {
      this.waiting.push(event);
      return;
    }
    if (event.id <= this.head) {
      this.counters.doubled += 1;
      return;
    }
    if (event.id > this.head + 1) {
      this.waiting.push(event);
      void this.fill(event.id - 1);
      return;
    }
    this.head = event.id;
    this.counters.taken += 1;
    this.take(event);
  }

  /** Reads from the log what the stream did not bring. To have been behind when it was opened is no fault of the stream. */
  private async fill(upto: number): Promise<void> {
    this.goal = Math.max(this.goal, upto);
    if (this.filling) return;
    this.filling = true;
    const round = this.counters.opened;
    try {
      while (this.head < this.goal) {
        const upto = this.goal;
        const page = await this.read(this.head, Math.min(PAGE, upto - this.head));
        if (round !== this.counters.opened) return;
        const next = page.events.filter((event) => event.id > this.head && event.id <= upto);
        // A log without the event that the stream has spoken of: it is asked again when the stream is opened anew.
        if (next.length === 0) return this.broken();
        for (const event of next) {
          this.head = event.id;
          this.counters.taken += 1;
          if (event.id > this.behind) this.counters.filled += 1;
          this.take(event);
        }
      }
    } catch {
      if (round === this.counters.opened) this.broken();
      return;
    }
    this.filling = false;
    const waiting = this.waiting;
    this.waiting = [];
    for (const event of waiting) this.arrive(event);
  }

  private broken(): void {
    this.source?.close();
    this.source = null;
    const pause = PATIENCE[Math.min(this.failures, PATIENCE.length - 1)] ?? 8000;
    this.failures += 1;
    const now = Date.now();
    this.tell({ live: false, brokenSince: this.state.brokenSince ?? now, nextTry: now + pause, trouble: null });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), pause);
  }

  private tell(state: FeedState): void {
    this.state = state;
    this.changed(state);
  }
}
