// The page's one store: loaded once, then folded from the one event stream. Views subscribe to topics and hear of a change at most once
// in a frame.
import { useLayoutEffect, useReducer, useRef } from "preact/hooks";
import { api, type Problem } from "../api/client";
import { Feed, type FeedState, type Open } from "../api/feed";
import type { AgentView, EventObject, QuestDocument } from "../api/types";
import { type AgentEntry, type Change, entryOf, fold, type State, stateOf } from "./state";

export type Topic = string;

/** A document that is read again when events speak of it: the core folds it, and nobody does it a second time here. */
interface Kept {
  document: QuestDocument | null;
  loading: boolean;
  /** An event of it came while it was read. */
  again: boolean;
  problem: Problem | null;
}

/** Open quests whose documents are read at once, beside those that need somebody. */
const RECENT_QUESTS = 8;
/** A tab that was hidden for longer may have slept with its machine: it reads on from its last event. */
const SLEPT_MS = 30_000;
/** Quests whose documents are kept at hand. */
const KEPT_QUESTS = 60;

export class Store {
  state: State | null = null;
  problem: Problem | null = null;
  feed: Feed | null = null;
  connection: FeedState = { live: false, brokenSince: null, nextTry: null, trouble: null };
  /** How often the stream was opened: what could not be read is read again when it is. */
  round = 0;
  /** The daemon's clock less ours. */
  private offset = 0;
  private readonly listeners = new Map<Topic, Set<() => void>>();
  private readonly dirty = new Set<Topic>();
  private scheduled = false;
  private readonly quests = new Map<string, Kept>();
  private readonly asking = new Set<string>();
  private readonly taps = new Set<(event: EventObject) => void>();

  constructor(private readonly open?: Open) {}

  now(): number {
    return Date.now() + this.offset;
  }

  async load(): Promise<void> {
    try {
      const overview = await api.overview();
      this.offset = overview.now - Date.now();
      this.state = stateOf(overview);
      this.problem = null;
      this.feed?.stop();
      this.connection = { ...this.connection, trouble: overview.trouble ?? null };
      this.feed = new Feed(
        overview.head,
        (event) => this.take(event),
        (connection) => {
          if (connection.live && !this.connection.live) this.round += 1;
          this.connection = connection;
          this.touch("connection");
        },
        this.open,
      );
      this.feed.start();
      const open = overview.quests.filter((quest) => quest.state === "open" || quest.state === "paused");
      const needed = open.filter((quest) => quest.failed > 0 || quest.questions > 0);
      for (const { id } of new Set([...needed, ...open.slice(-RECENT_QUESTS)])) this.askQuest(id);
    } catch (problem) {
      this.problem = problem as Problem;
      if (this.problem.away) setTimeout(() => void this.load(), 2000);
    }
    this.touch("all");
  }

  /** Reads on after a sleep: a stream may be broken without saying so. */
  watchSleep(): void {
    let hidden = Date.now();
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) hidden = Date.now();
      else if (Date.now() - hidden > SLEPT_MS) this.feed?.start();
    });
    addEventListener("online", () => this.feed?.start());
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.feed?.start();
    });
  }

  /** Every event as it comes, for views that show events themselves. */
  tap(listener: (event: EventObject) => void): () => void {
    this.taps.add(listener);
    return () => this.taps.delete(listener);
  }

  private take(event: EventObject): void {
    if (!this.state) return;
    const change: Change = { topics: new Set(), strangers: new Set(), quests: new Set() };
    fold(this.state, event, change);
    for (const topic of change.topics) this.touch(topic);
    for (const stranger of change.strangers) this.askAgent(stranger);
    for (const quest of change.quests) this.askQuest(quest);
    for (const tap of this.taps) tap(event);
  }

  /** Somebody of whom only the id is known. */
  askAgent(id: string): void {
    if (!this.state || this.asking.has(id) || this.state.agents.has(id)) return;
    this.asking.add(id);
    api
      .agent(id)
      .then((view) => this.meet(view))
      .catch(() => {})
      .finally(() => this.asking.delete(id));
  }

  meet(view: AgentView): void {
    if (!this.state || this.state.agents.has(view.id)) return;
    this.state.agents.set(view.id, entryOf(view));
    this.touch("agents");
    this.touch(`agent:${view.id}`);
  }

  agent(id: string): AgentEntry | undefined {
    return this.state?.agents.get(id);
  }

  quest(id: string): QuestDocument | null {
    return this.quests.get(id)?.document ?? null;
  }

  questProblem(id: string): Problem | null {
    return this.quests.get(id)?.problem ?? null;
  }

  /** Reads a quest's document, once more if it changed meanwhile. */
  askQuest(id: string): void {
    const kept = this.quests.get(id) ?? { document: null, loading: false, again: false, problem: null };
    this.quests.set(id, kept);
    if (kept.loading) {
      kept.again = true;
      return;
    }
    kept.loading = true;
    kept.again = false;
    api
      .quest(id)
      .then((document) => {
        kept.document = document;
        kept.problem = null;
        this.refreshLine(document);
      })
      .catch((problem: Problem) => {
        kept.problem = problem;
      })
      .finally(() => {
        kept.loading = false;
        this.touch("quests");
        this.touch(`quest:${id}`);
        if (kept.again) this.askQuest(id);
      });
    if (this.quests.size > KEPT_QUESTS) {
      const oldest = [...this.quests].find(
        ([, it]) => it.document?.state === "complete" || it.document?.state === "abandoned",
      );
      if (oldest) this.quests.delete(oldest[0]);
    }
  }

  private refreshLine(document: QuestDocument): void {
    const line = this.state?.quests.get(document.id);
    if (!this.state || !line) return;
    const work = document.steps.filter((step) => step.phase === "work");
    const of = (...words: string[]) => document.steps.filter((step) => words.includes(step.status)).length;
    this.state.quests.set(document.id, {
      ...line,
      state: document.state,
      complete: work.filter((step) => step.status === "complete").length,
      steps: work.length,
      running: of("running", "waiting_for_role"),
      questions: document.steps.filter((step) => step.question != null).length,
      failed: of("failed"),
      spent: document.spent.cost,
      changed: document.changed,
    });
    for (const step of document.steps) {
      for (const hand of step.agents) {
        const entry = this.state.agents.get(hand.agent);
        if (entry && !entry.view.assignment)
          entry.view = { ...entry.view, assignment: { quest: document.id, step: step.id, role: hand.role } };
      }
    }
  }

  on(topics: Topic[], listener: () => void): () => void {
    for (const topic of topics) {
      const set = this.listeners.get(topic) ?? new Set();
      this.listeners.set(topic, set);
      set.add(listener);
    }
    return () => {
      for (const topic of topics) this.listeners.get(topic)?.delete(listener);
    };
  }

  touch(topic: Topic): void {
    this.dirty.add(topic);
    if (this.scheduled) return;
    this.scheduled = true;
    // A hidden tab has no frames, but its title counts on.
    if (typeof document === "undefined" || document.hidden) setTimeout(() => this.flush(), 100);
    else requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    this.scheduled = false;
    const topics = [...this.dirty];
    this.dirty.clear();
    const called = new Set<() => void>();
    const all = topics.includes("all");
    for (const [topic, set] of this.listeners) {
      if (!all && !topics.includes(topic)) continue;
      for (const listener of set) called.add(listener);
    }
    for (const listener of called) listener();
  }
}

export const store = new Store();

/** Renders again when one of the topics changes. It listens as soon as it is drawn: an effect comes a frame later, and misses what changes until then. */
export function useTopics(...topics: Topic[]): void {
  const [, again] = useReducer<number, void>((n) => n + 1, 0);
  useLayoutEffect(() => store.on([...topics, "all"], () => again()), [topics.join(" ")]);
}

/** Changes when something that could not be read is worth another try: the daemon is back. */
export function useAttempt(failed: boolean): number {
  useTopics("connection");
  const last = useRef(store.round);
  if (failed) last.current = store.round;
  return last.current;
}
