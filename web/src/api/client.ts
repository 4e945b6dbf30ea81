// All that the page asks of the daemon goes through here.
import { Once } from "./once";
import type {
  AgentView,
  BudgetView,
  ErrorDetail,
  EventCount,
  EventMap,
  EventObject,
  EventPage,
  HistoryView,
  IdentityList,
  KillPreview,
  MailThreads,
  NewQuest,
  Overview,
  ProjectLine,
  QuestDefaults,
  QuestDocument,
  QuestLine,
  Rescued,
  Restored,
  ResumeView,
  RunView,
  SeatList,
  ThreadView,
  TrialView,
  TriedWard,
  UsageView,
  WhyView,
} from "./types";

/** A refusal, in the daemon's own words, or that nobody answered. */
export class Problem extends Error {
  readonly code: string;
  readonly hint: string;
  readonly status: number;

  constructor(detail: ErrorDetail, status: number) {
    super(detail.message);
    this.code = detail.code;
    this.hint = detail.hint;
    this.status = status;
  }

  /** The daemon was not reached, so nothing is known of what became of it. */
  get away(): boolean {
    return this.status === 0;
  }
}

/** What a command led to. */
export interface Accepted {
  id: string;
  events: EventObject[];
  warning?: string;
}

async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...init });
  } catch {
    throw new Problem(
      {
        code: "away",
        message: "The daemon is away.",
        hint: init?.method
          ? "It may not have arrived: look before you try again when the daemon is back."
          : "Try again when it is back.",
      },
      0,
    );
  }
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  let detail: ErrorDetail = { code: "unknown", message: `The daemon answered ${response.status}.`, hint: "" };
  try {
    detail = (JSON.parse(text) as { error: ErrorDetail }).error;
  } catch {
    // It is no answer of the API; the status has to do.
  }
  throw new Problem(detail, response.status);
}

export const get = <T>(path: string) => ask<T>(path);
const post = <T = Accepted>(path: string, body: unknown = {}) =>
  ask<T>(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
/** The same for what can be repeated: it is carried out once. */
const once = new Once({
  send: post,
  drawId,
  isLost: (problem) => problem instanceof Problem && (problem.away || LOST.includes(problem.code)),
  pause: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
});
/** The daemon itself does not know whether it was carried out. */
const LOST = ["outcome_unknown", "too_slow"];
const part = encodeURIComponent;

export const api = {
  overview: () => get<Overview>("/api/overview"),
  agents: () => get<{ agents: AgentView[] }>("/api/agents"),
  agent: (id: string) => get<AgentView>(`/api/agents/${part(id)}`),
  runs: () => get<{ runs: RunView[] }>("/api/runs"),
  why: (id: string) => get<WhyView>(`/api/agents/${part(id)}/why`),
  history: (id: string) => get<HistoryView>(`/api/agents/${part(id)}/history?full=true`),
  /** One message as a person reads it. */
  message: (id: string, event: number) =>
    get<HistoryView>(`/api/agents/${part(id)}/history?full=true&before=${event + 1}&limit=1`),
  quests: () => get<{ quests: QuestLine[] }>("/api/quests"),
  quest: (id: string) => get<QuestDocument>(`/api/quests/${part(id)}`),
  usage: (days: number) => get<UsageView>(`/api/usage?days=${days}`),
  budgets: () => get<{ budgets: BudgetView[] }>("/api/budgets"),
  events: (after: number, limit: number) => get<EventPage>(`/api/events.json?after=${after}&limit=${limit}`),
  addIdea: (content: string) =>
    post<unknown>("/api/inbox", { type: /^https?:/.test(content) ? "reference" : "evolve", content }),
  dismissIdea: (id: string) => ask<unknown>(`/api/inbox/${part(id)}`, { method: "DELETE" }),
  buildResume: () => get<ResumeView>("/api/build-resume"),
  resumeBuild: (changed: "keep" | "rebuild" | null) =>
    post<unknown>("/api/state", { resume_build: changed ? { changed } : {} }),
  rescued: () => get<{ rescued: Rescued[] }>("/api/rescue"),
  restore: (name: string) => post<Restored>("/api/rescue/restore", { name }),
  killPreview: (agent: string, cascade: boolean) =>
    get<KillPreview>(`/api/agents/${part(agent)}/kill?cascade=${cascade}`),
  /** The last events before a place that fit the filters. */
  find: (filters: Record<string, string>, before: number, limit: number) =>
    get<EventPage>(
      `/api/events.json?${new URLSearchParams({ ...filters, before: String(before), limit: String(limit) })}`,
    ),
  /** The first events after a place that fit the filters. */
  findAfter: (filters: Record<string, string>, after: number, limit: number) =>
    get<EventPage>(
      `/api/events.json?${new URLSearchParams({ ...filters, after: String(after), limit: String(limit) })}`,
    ),
  countEvents: (filters: Record<string, string>, after: number) =>
    get<EventCount>(`/api/events/count?${new URLSearchParams({ ...filters, after: String(after) })}`),
  eventAt: (ts: number) => get<{ after: number; head: number }>(`/api/events/at?ts=${Math.round(ts)}`),
  eventMap: (parts: number) => get<EventMap>(`/api/events/map?parts=${parts}`),
  wardOutput: (quest: string, step: string, ward: number) =>
    get<{ text: string; size: number }>(
      `/api/quests/${part(quest)}/steps/${part(step)}/wards/${ward}/output?from=-8192`,
    ),
  /** The human's mail before a place in the log. */
  mailThreads: (before: number, limit = 200) =>
    get<MailThreads>(`/api/mail/human/threads?limit=${limit}&before=${before}`),

  answer: (question: number, answer: string) => once.post<Accepted>(`/api/questions/${question}/answer`, { answer }),
  projects: () => get<{ projects: ProjectLine[] }>("/api/projects"),
  seats: () => get<SeatList>("/api/seats"),
  identities: () => get<IdentityList>("/api/docs?type=agent-identity"),
  thread: (agent: string) => get<ThreadView>(`/api/agents/${part(agent)}/thread`),
  summon: () => once.post<unknown>("/api/agents/summon", {}),
  wakeSeats: () => once.post<unknown>("/api/agents/wake", {}),
  sendToSeat: (message: string, targetGridPosition: number | null) =>
    once.post<unknown>("/api/send", { message, targetGridPosition }),

  say: (agent: string, text: string) => once.post<Accepted>(`/api/agents/${part(agent)}/say`, { text }),
  interrupt: (agent: string) => post(`/api/agents/${part(agent)}/interrupt`),
  stop: (agent: string) => post(`/api/agents/${part(agent)}/stop`),
  kill: (agent: string, cascade: boolean) => post(`/api/agents/${part(agent)}/kill`, { cascade }),
  rename: (agent: string, name: string) => post(`/api/agents/${part(agent)}/rename`, { name }),
  fork: (body: { id: string; parent: string; at?: number; prompt?: string; name?: string }) =>
    post("/api/agents", body),
  run: (body: { id: string; prompt: string; name?: string; with?: Record<string, unknown> }) => post("/api/runs", body),
  newQuest: (body: Partial<NewQuest> & { request: string }) => post("/api/quests", body),
  questDefaults: () => get<QuestDefaults>("/api/quest-defaults"),
  /** Tries the ward of a new quest, and begins the quest if the ward is green. */
  tryWard: (quest: string) => post<TriedWard>(`/api/quests/${part(quest)}/try-ward`, { begin: true }),
  /** The last trial; with `wait`, when it is over. */
  wardTrial: (quest: string, wait: boolean) => get<TrialView>(`/api/quests/${part(quest)}/try-ward?wait=${wait}`),
  pause: (quest: string) => post(`/api/quests/${part(quest)}/pause`),
  resume: (quest: string) => post(`/api/quests/${part(quest)}/resume`),
  abandon: (quest: string) => post(`/api/quests/${part(quest)}/abandon`),
  setWard: (quest: string, command: string | null) => post(`/api/quests/${part(quest)}/ward`, { command }),
  setQuestBudget: (quest: string, limit: string | null) => post(`/api/quests/${part(quest)}/budget`, { limit }),
  retry: (quest: string, step: string) => post(`/api/quests/${part(quest)}/steps/${part(step)}/retry`),
  setBudget: (agent: string | null, limit: string | null) => post("/api/budgets", agent ? { agent, limit } : { limit }),
  sendMail: (to: string, body: string) => once.post<Accepted>("/api/mail", { to, body }),
  readMail: (mail: number) =>
    post<{ id: number; from: string; to: string; sent: number; body: string }>("/api/mail/human/read", { mail }),
};

/** An id that is drawn here, so that a request whose answer was lost can simply be repeated. */
export function drawId(): string {
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const id = btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "");
    if (!id.startsWith("-")) return id;
  }
}
