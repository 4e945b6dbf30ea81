// What the page knows, and how an event changes it. Pure: no clock, no network.
import type {
  Activity,
  AgentView,
  BudgetView,
  ContextUse,
  EventObject,
  EventOf,
  Evidence,
  LoggedUsage,
  Overview,
  PermissionView,
  QuestionView,
  QuestLine,
  RunView,
  Usage,
} from "../api/types";
import { firstLine, plain } from "../ui/words";

/** What an agent said last: a tool with its target, or words. */
export interface Doing {
  tool: string | null;
  text: string;
  at: number;
  event: number;
}

export interface AgentEntry {
  view: AgentView;
  activity: Activity;
  evidence: Evidence[];
  run: RunView | null;
  spent: Usage;
  stallMs: number | null;
  doing: Doing | null;
  /** Tools that have not answered, by their id. Of those that were called before the page was loaded, the last one is known. */
  tools: Map<string, { name: string; target: string; since: number }>;
  lastSign: number;
}

export interface State {
  head: number;
  project: string;
  version: string;
  agents: Map<string, AgentEntry>;
  agentCount: number;
  quests: Map<string, QuestLine>;
  questions: Map<number, QuestionView>;
  /** What each agent last asked permission for: the question about it follows. */
  asking: Map<string, PermissionView>;
  /** Questions that were answered while the page watched. */
  answered: Map<number, { question: QuestionView; answer: string; event: number; at: number }>;
  budgets: BudgetView[];
  today: Usage;
  day: number;
  /** Unread mail of the human. */
  mail: Map<number, string>;
}

export interface Change {
  topics: Set<string>;
  /** Agents that are not known here yet. */
  strangers: Set<string>;
  /** Quests whose documents have changed. */
  quests: Set<string>;
}

const DAY_MS = 86_400_000;
const NOTHING: Usage = {
  cost: { nanodollars: 0 },
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};
/** How many answered questions are remembered. */
const ANSWERED = 20;

export function stateOf(overview: Overview): State {
  const state: State = {
    head: overview.head,
    project: overview.project,
    version: overview.version,
    agents: new Map(),
    agentCount: overview.agentCount,
    quests: new Map(overview.quests.map((quest) => [quest.id, quest])),
    questions: new Map(overview.questions.map((question) => [question.id, question])),
    asking: new Map(),
    answered: new Map(),
    budgets: overview.budgets,
    today: overview.today,
    day: Math.floor(overview.now / DAY_MS),
    mail: new Map(overview.mail.map((head) => [head.id, head.from])),
  };
  for (const seen of overview.agents) {
    state.agents.set(seen.agent.id, {
      view: seen.agent,
      activity: seen.activity,
      evidence: seen.evidence,
      run: seen.run ?? null,
      spent: seen.spent,
      stallMs: seen.stallMs ?? null,
      doing: doingOf(seen.agent),
      tools: toolsOf(seen.agent),
      lastSign: seen.run?.lastOutput ?? seen.agent.lastActive,
    });
  }
  return state;
}

/** The first line of what was said, without the marks of Markdown. A line that reports on the seats is none. */
function prose(text: string): string {
  return plain(firstLine(text.replaceAll(/^\[AGENT_STATUS\].*\n?/gm, ""))).replaceAll(/\*\*|__|`|^#+ /g, "");
}

function doingOf({ doing }: AgentView): Doing | null {
  if (!doing) return null;
  return {
    tool: doing.tool ? toolName(doing.tool) : null,
    text: doing.tool ? plain(doing.line) : prose(doing.line),
    at: doing.at,
    event: doing.message,
  };
}

/** A tool that was called before the page was loaded. Its id is not known. */
const BEFORE = "before";

function toolsOf(view: AgentView): AgentEntry["tools"] {
  const doing = doingOf(view);
  if (!doing?.tool || !view.openTools) return new Map();
  return new Map([[BEFORE, { name: doing.tool, target: doing.text, since: doing.at }]]);
}

export function entryOf(view: AgentView): AgentEntry {
  return {
    view,
    activity: view.activity,
    evidence: view.evidence ? [view.evidence] : [],
    run: null,
    spent: view.spent,
    stallMs: null,
    doing: doingOf(view),
    tools: toolsOf(view),
    lastSign: view.lastActive,
  };
}

/** A sum with one part of it replaced by another. */
function replaced(sum: Usage, before: Usage, after: Usage): Usage {
  const each = (of: (usage: Usage) => number) => Math.max(0, of(sum) + of(after) - of(before));
  return {
    cost: { nanodollars: each((it) => it.cost.nanodollars) },
    inputTokens: each((it) => it.inputTokens),
    outputTokens: each((it) => it.outputTokens),
    cacheReadTokens: each((it) => it.cacheReadTokens),
    cacheWriteTokens: each((it) => it.cacheWriteTokens),
  };
}

/** What an event says of usage, in the form of the answers. */
function logged(usage: LoggedUsage): Usage {
  return {
    cost: usage.cost,
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    cacheReadTokens: usage.cache_read_tokens,
    cacheWriteTokens: usage.cache_write_tokens,
  };
}

/** Takes one event in. The events come in their order, each once. */
export function fold(state: State, event: EventObject, change: Change): void {
  state.head = event.id;
  change.topics.add("log");
  if ("quest" in event && typeof event.quest === "string") {
    change.quests.add(event.quest);
    change.topics.add("quests");
  }
  switch (event.type) {
    case "agent_created":
      return created(state, event, change);
    case "mail_sent":
      change.topics.add("mail");
      if (event.to === "human") state.mail.set(event.id, event.from);
      return;
    case "mail_read":
      change.topics.add("mail");
      if (event.to === "human") state.mail.delete(event.mail);
      return;
    case "mail_delivered":
      change.topics.add("mail");
      return;
    case "quest_created":
      state.quests.set(event.quest, {
        id: event.quest,
        request: firstLine(event.quest_spec.request),
        state: "open",
        complete: 0,
        steps: 0,
        running: 0,
        questions: 0,
        failed: 0,
        spent: { nanodollars: 0 },
        created: event.ts,
        changed: event.ts,
      });
      return;
    case "budget_set":
      budgetSet(state, event);
      change.topics.add("usage");
      return;
    case "question_asked":
    case "question_answered":
    case "question_withdrawn":
      asked(state, event, change);
      break;
    default:
  }
  if ("agent" in event && typeof event.agent === "string") ofAgent(state, event.agent, event, change);
}

function created(state: State, event: EventOf<"agent_created">, change: Change): void {
  change.topics.add("agents");
  // Its own view may be open already: whoever forks an agent goes there, and the event may come later than the answer.
  change.topics.add(`agent:${event.agent}`);
  state.agentCount += 1;
  state.agents.set(
    event.agent,
    entryOf({
      id: event.agent,
      name: event.name ?? null,
      parent: event.parent ?? null,
      state: event.hatch_by ? "hatching" : "alive",
      provider: event.provider ?? null,
      model: event.model ?? null,
      sessionId: event.session ?? null,
      created: event.ts,
      lastActive: event.ts,
      forkedFrom: event.origin?.agent ?? null,
      forkPoint: event.origin?.upto ?? null,
      messages: 0,
      lastMessage: null,
      unreadMail: 0,
      activity: "resting",
      evidence: null,
      doing: null,
      openTools: 0,
      context: null,
      spent: NOTHING,
      question: null,
      assignment: null,
    }),
  );
}

function budgetSet(state: State, event: EventOf<"budget_set">): void {
  const whose = event.agent ?? null;
  const rest = state.budgets.filter((budget) => (budget.agent ?? null) !== whose);
  if (event.limit) {
    const entry = whose ? state.agents.get(whose) : undefined;
    const spent = whose ? (entry?.spent.cost ?? { nanodollars: 0 }) : state.today.cost;
    rest.push({ agent: whose, name: entry?.view.name ?? null, limit: event.limit, spent });
  }
  state.budgets = rest;
}

function asked(
  state: State,
  event: EventOf<"question_asked"> | EventOf<"question_answered"> | EventOf<"question_withdrawn">,
  change: Change,
): void {
  change.topics.add("questions");
  if (event.type === "question_asked") {
    const entry = state.agents.get(event.agent);
    state.questions.set(event.id, {
      id: event.id,
      agent: event.agent,
      name: entry?.view.name ?? null,
      quest: entry?.view.assignment?.quest ?? null,
      step: entry?.view.assignment?.step ?? null,
      about: event.about,
      permission:
        typeof event.about === "object" && "permission" in event.about ? (state.asking.get(event.agent) ?? null) : null,
      text: event.text,
      asked: event.ts,
    });
    return;
  }
  const question = state.questions.get(event.question);
  state.questions.delete(event.question);
  if (question && event.type === "question_answered") {
    state.answered.set(event.question, { question, answer: event.answer, event: event.id, at: event.ts });
    const first = state.answered.keys().next().value;
    if (state.answered.size > ANSWERED && first !== undefined) state.answered.delete(first);
  }
}

/** A tool's call as it stands in a history. */
export interface ToolCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

export function toolCall(content: string): ToolCall | null {
  try {
    const call = JSON.parse(content) as Partial<ToolCall>;
    if (typeof call.name !== "string") return null;
    return { id: call.id ?? "", name: call.name, input: (call.input ?? {}) as Record<string, unknown> };
  } catch {
    return null;
  }
}

export function toolResult(content: string): { id: string; content: string; isError: boolean } | null {
  try {
    const result = JSON.parse(content) as { id?: string; content?: unknown; is_error?: boolean };
    if (typeof result !== "object" || result === null || !("content" in result)) return null;
    const text = typeof result.content === "string" ? result.content : JSON.stringify(result.content, null, 2);
    return { id: result.id ?? "", content: text, isError: result.is_error === true };
  } catch {
    return null;
  }
}

/** A tool's name without the server that it comes from. */
export function toolName(name: string): string {
  return name.startsWith("mcp__") ? (name.split("__").at(-1) ?? name) : name;
}

/** What a tool is used on: the one argument that a person looks for. */
export function toolTarget(input: Record<string, unknown>): string {
  for (const key of [
    "file_path",
    "path",
    "command",
    "pattern",
    "query",
    "url",
    "summary",
    "question",
    "description",
    "prompt",
  ]) {
    const value = input[key];
    if (typeof value === "string" && value !== "") return plain(firstLine(value));
  }
  const first = Object.values(input).find((value) => typeof value === "string" && value !== "");
  return typeof first === "string" ? plain(firstLine(first)) : "";
}

function ofAgent(state: State, id: string, event: EventObject, change: Change): void {
  const entry = state.agents.get(id);
  if (!entry) {
    change.strangers.add(id);
    return;
  }
  change.topics.add(`agent:${id}`);
  const before = entry.activity;
  change1(state, entry, event, change);
  if (entry.activity !== before) change.topics.add("agents");
}

const SIGNS: ReadonlySet<string> = new Set([
  "run_spawned",
  "run_started",
  "message_heard",
  "output_noted",
  "output_taken",
  "turn_started",
  "turn_ended",
  "usage_metered",
]);

function change1(state: State, entry: AgentEntry, event: EventObject, change: Change): void {
  entry.view = { ...entry.view, lastActive: event.ts };
  if (SIGNS.has(event.type)) entry.lastSign = event.ts;
  switch (event.type) {
    case "message_added":
      return said(entry, event);
    case "agent_renamed":
      entry.view = { ...entry.view, name: event.name ?? null };
      change.topics.add("agents");
      return;
    case "agent_reparented":
      entry.view = { ...entry.view, parent: event.parent };
      change.topics.add("agents");
      return;
    case "agent_hatched":
    case "agent_woken":
      entry.view = { ...entry.view, state: "alive" };
      return;
    case "agent_slept":
      entry.view = { ...entry.view, state: "sleeping" };
      return;
    case "agent_killed":
      entry.view = { ...entry.view, state: "dead" };
      entry.activity = "dead";
      change.topics.add("agents");
      return;
    case "agent_expired":
      entry.view = { ...entry.view, state: "expired" };
      entry.activity = "expired";
      return;
    case "step_begun":
      entry.view = { ...entry.view, assignment: { quest: event.quest, step: event.step, role: event.role } };
      change.topics.add("agents");
      return;
    case "run_requested":
      entry.activity = "starting";
      entry.stallMs = event.spec.stall_ms;
      entry.run = {
        agent: event.agent,
        name: entry.view.name ?? null,
        run: event.run,
        attempts: 1,
        harness: event.spec.harness,
        phase: "starting",
        pid: null,
        cause: null,
        detail: null,
        until: null,
        requested: event.ts,
        lastOutput: event.ts,
        turns: 0,
        spent: NOTHING,
      };
      return;
    case "run_spawned":
      entry.activity = "starting";
      entry.tools.clear();
      patch(entry, { phase: "starting", pid: event.process.pid, attempts: event.attempt, cause: null, until: null });
      return;
    case "run_waiting":
      patch(entry, { phase: "waiting" });
      return;
    case "run_started":
    case "turn_started":
    case "message_heard":
      entry.activity = "working";
      patch(entry, { phase: "running" });
      return;
    case "output_noted":
      if (entry.activity === "silent") entry.activity = "working";
      if (event.output.type === "asked") {
        const { tool, input, access, folder } = event.output;
        state.asking.set(event.agent, { tool, input, access: access ?? "other", folder: folder ?? null, rule: "" });
      }
      return;
    case "turn_ended":
      // One that is being stopped listens to nobody.
      if (entry.activity !== "stopping") entry.activity = "listening";
      entry.tools.clear();
      if (entry.run) patch(entry, { turns: entry.run.turns + 1 });
      fill(entry, event.end.context);
      book(state, entry, event, event.metered ? logged(event.metered) : NOTHING, logged(event.spent));
      change.topics.add("usage");
      return;
    case "usage_metered":
      fill(entry, event.context);
      book(state, entry, event, NOTHING, logged(event.used));
      change.topics.add("usage");
      return;
    case "run_silent":
      entry.activity = "silent";
      return;
    case "run_stopping":
      entry.activity = "stopping";
      patch(entry, { phase: "stopping" });
      return;
    case "run_parked":
      entry.activity = "parked";
      patch(entry, {
        phase: "parked",
        cause: event.cause,
        until: event.until ?? null,
        detail: event.detail,
        pid: null,
      });
      return;
    case "run_crashed":
      entry.activity = "starting";
      patch(entry, { phase: "starting", pid: null });
      return;
    case "run_resumed":
      entry.activity = "starting";
      patch(entry, { phase: "starting", attempts: event.attempt, cause: null, until: null });
      return;
    case "run_ended":
      entry.activity = "resting";
      entry.tools.clear();
      patch(entry, {
        phase: "ended",
        pid: null,
        cause: event.cause,
        detail: event.detail,
        lastOutput: event.ts,
        until: null,
      });
      change.topics.add("agents");
      return;
    default:
  }
}

/** Notes how full an agent's context is. A window stays known when only the tokens are said. */
function fill(entry: AgentEntry, said: ContextUse | null | undefined): void {
  if (!said) return;
  const window = said.window ?? entry.view.context?.window ?? null;
  entry.view = { ...entry.view, context: { tokens: said.tokens, window } };
}

/** Adds what an agent used to all sums that it is part of, in place of what was counted before. */
function book(
  state: State,
  entry: AgentEntry,
  event: { ts: number; agent: string },
  before: Usage,
  after: Usage,
): void {
  entry.spent = replaced(entry.spent, before, after);
  if (entry.run) patch(entry, { spent: replaced(entry.run.spent, before, after) });
  const day = Math.floor(event.ts / DAY_MS);
  state.today = replaced(day === state.day ? state.today : NOTHING, before, after);
  state.day = day;
  state.budgets = state.budgets.map((budget) =>
    !budget.agent
      ? { ...budget, spent: state.today.cost }
      : budget.agent === event.agent
        ? { ...budget, spent: entry.spent.cost }
        : budget,
  );
}

function patch(entry: AgentEntry, part: Partial<RunView>): void {
  if (entry.run) entry.run = { ...entry.run, ...part };
}

function said(entry: AgentEntry, event: EventOf<"message_added">): void {
  entry.view = { ...entry.view, messages: entry.view.messages + 1, lastMessage: event.id };
  if (event.kind === "tool_call") {
    const call = toolCall(event.content);
    if (!call) return;
    const [name, target] = [toolName(call.name), toolTarget(call.input)];
    entry.tools.set(call.id, { name, target, since: event.ts });
    entry.doing = { tool: name, text: target, at: event.ts, event: event.id };
  } else if (event.kind === "tool_result") {
    const result = toolResult(event.content);
    if (result && !entry.tools.delete(result.id)) entry.tools.delete(BEFORE);
  } else if (event.kind === "assistant") {
    entry.doing = { tool: null, text: prose(event.content), at: event.ts, event: event.id };
  } else {
    return;
  }
  entry.lastSign = event.ts;
  if (entry.activity === "silent" || entry.activity === "starting" || entry.activity === "listening")
    entry.activity = "working";
}
