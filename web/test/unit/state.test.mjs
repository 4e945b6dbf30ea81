// What the page knows is folded from events, each once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let state;
let words;
let tree;
before(async () => {
  server = await page();
  state = await server.load("/src/store/state.ts");
  words = await server.load("/src/ui/words.ts");
  tree = await server.load("/src/store/tree.ts");
});
after(() => server?.close());

const NOTHING = {
  cost: { nanodollars: 0 },
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
};
/** The same as answers have it. */
const ANSWERED = {
  cost: { dollars: "0.00", nanodollars: 0 },
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};
const empty = () =>
  state.stateOf({
    head: 0,
    now: 0,
    project: "/x",
    version: "1",
    trouble: null,
    agents: [],
    agentCount: 0,
    quests: [],
    questCount: 0,
    questions: [],
    budgets: [],
    today: ANSWERED,
    mail: [],
  });

/** Folds events that are numbered from 1, a second apart. */
function folded(...events) {
  const known = empty();
  const change = { topics: new Set(), strangers: new Set(), quests: new Set() };
  for (const [at, event] of events.entries()) state.fold(known, { id: at + 1, ts: (at + 1) * 1000, ...event }, change);
  return { known, change };
}

const of = { agent: "a", run: 1, attempt: 1 };
const begun = [
  { type: "agent_created", agent: "a", name: "ida" },
  { type: "run_requested", agent: "a", run: 1, spec: { harness: "scripted", stall_ms: 1000 } },
  { type: "run_spawned", ...of, process: { pid: 7 } },
  { type: "run_started", ...of },
];
const call = {
  type: "message_added",
  agent: "a",
  kind: "tool_call",
  content: JSON.stringify({ id: "t", name: "mcp__x__Edit", input: { file_path: "a.rs" } }),
};

test("an agent goes from its birth to its rest", () => {
  const { known } = folded(...begun, call);
  const entry = known.agents.get("a");
  assert.equal(entry.activity, "working");
  assert.deepEqual([entry.doing.tool, entry.doing.text, entry.doing.at], ["Edit", "a.rs", 5000]);
  assert.equal(entry.tools.size, 1);
  const result = {
    type: "message_added",
    agent: "a",
    kind: "tool_result",
    content: JSON.stringify({ id: "t", content: "ok" }),
  };
  const spent = { ...NOTHING, cost: { nanodollars: 5 }, output_tokens: 3 };
  const ended = folded(
    ...begun,
    call,
    result,
    { type: "turn_ended", ...of, end: {}, spent },
    { type: "run_ended", ...of, cause: "completed", detail: "well", exit: { code: 0 } },
  ).known;
  const after = ended.agents.get("a");
  assert.deepEqual(
    [after.activity, after.run.phase, after.tools.size, after.spent.cost.nanodollars],
    ["resting", "ended", 0, 5],
  );
  assert.equal(ended.today.outputTokens, 3);
  assert.equal(ended.head, 8);
});

test("one that is being stopped stays so until its run ends", () => {
  const ended = { type: "turn_ended", ...of, end: {}, spent: NOTHING };
  const { known } = folded(...begun, { type: "run_stopping", ...of }, ended);
  assert.equal(known.agents.get("a").activity, "stopping");
});

test("the context is as full as was said last, and its window stays known", () => {
  const full = (...events) => folded(...begun, ...events).known.agents.get("a").view.context;
  const asked = (context) => ({ type: "usage_metered", ...of, used: NOTHING, ...(context ? { context } : {}) });
  const ended = { type: "turn_ended", ...of, end: { context: { tokens: 12, window: 100 } }, spent: NOTHING };
  assert.equal(full(asked(null)), null);
  assert.deepEqual(full(asked({ tokens: 10 })), { tokens: 10, window: null });
  assert.deepEqual(full(asked({ tokens: 10 }), ended, asked(null)), { tokens: 12, window: 100 });
  assert.deepEqual(full(ended, asked({ tokens: 40 })), { tokens: 40, window: 100 });
});

test("a tool that was called before the page was loaded runs until it answers", () => {
  const doing = { message: 1, at: 500, tool: "Bash", line: "pytest -x" };
  const view = { id: "b", name: "bo", activity: "working", lastActive: 500, doing, openTools: 1, messages: 1 };
  const tools = (it) => [...state.entryOf(it).tools.values()];
  assert.deepEqual(tools(view), [{ name: "Bash", target: "pytest -x", since: 500 }]);
  assert.deepEqual(tools({ ...view, openTools: 0 }), []);
  const known = empty();
  known.agents.set("b", state.entryOf(view));
  const change = { topics: new Set(), strangers: new Set(), quests: new Set() };
  const content = JSON.stringify({ id: "x", content: "ok" });
  state.fold(known, { id: 9, ts: 9, type: "message_added", agent: "b", kind: "tool_result", content }, change);
  assert.equal(known.agents.get("b").tools.size, 0);
});

test("what a turn costs counts before it ends, and its total replaces the estimate", () => {
  const usage = (amount) => ({ ...NOTHING, cost: { nanodollars: amount } });
  const at = (...events) => folded(...begun, ...events).known;
  const during = at({ type: "usage_metered", ...of, used: usage(3) }, { type: "usage_metered", ...of, used: usage(4) });
  assert.equal(during.agents.get("a").spent.cost.nanodollars, 7);
  assert.equal(during.today.cost.nanodollars, 7);
  const after = at(
    { type: "usage_metered", ...of, used: usage(7) },
    { type: "turn_ended", ...of, end: {}, spent: usage(6), metered: usage(7) },
  );
  assert.equal(after.agents.get("a").run.spent.cost.nanodollars, 6);
  assert.equal(after.today.cost.nanodollars, 6);
});

test("a question is open until it is answered or withdrawn", () => {
  const asked = { type: "question_asked", agent: "a", about: { budget: { of: null } }, text: "More?" };
  const { known } = folded(...begun, asked);
  assert.deepEqual([...known.questions.keys()], [5]);
  const answered = folded(...begun, asked, { type: "question_answered", agent: "a", question: 5, answer: "yes" }).known;
  assert.deepEqual([answered.questions.size, answered.answered.get(5).answer], [0, "yes"]);
  assert.equal(
    folded(...begun, asked, { type: "question_withdrawn", agent: "a", question: 5 }).known.questions.size,
    0,
  );
});

test("a stranger is asked for, and mail of others is not ours", () => {
  const { known, change } = folded(
    { type: "agent_renamed", agent: "z", name: "zoe" },
    { type: "mail_sent", from: "z", to: "human", body: "x" },
    { type: "mail_sent", from: "z", to: "a", body: "x" },
  );
  assert.deepEqual([...change.strangers], ["z"]);
  assert.deepEqual([...known.mail], [[2, "z"]]);
});

test("times and money are said as the design says", () => {
  const spans = [12_000, 240_000, 7_200_000, 86_400_000, 172_800_000].map(words.span);
  assert.deepEqual(spans, ["12 s", "4 min", "2 h", "1 day", "2 days"]);
  assert.deepEqual(
    [0, 410_000_000, 20_000_000_000, 4_200_000, 1].map((nanodollars) => words.money({ nanodollars })),
    ["$0", "$0.41", "$20", "$0.004", "<$0.000001"],
  );
  assert.equal(words.plain("\u001b[31mred\u001b[0m\u0007!"), "red!");
  assert.equal(words.plain("say \u202eevil\u202c and \u2066go\u2069"), "say evil and go");
  assert.equal(words.literal("rm \u202e\u001b[8mx\n\ty"), "rm <U+202E><U+001B>[8mx\n\ty");
});

test("forks meet at their fork point, and nobody stands above a child", () => {
  const view = (id, created, more = {}) => ({
    id,
    created,
    name: id,
    parent: "root",
    forkedFrom: null,
    forkPoint: null,
    state: "alive",
    assignment: null,
    ...more,
  });
  const agents = [
    view("root", 0, { parent: null }),
    view("w", 1),
    view("t", 2, { parent: "w", forkedFrom: "w", forkPoint: 9 }),
    view("r", 3, { parent: "w", forkedFrom: "w", forkPoint: 9 }),
  ];
  const drawn = tree.treeOf(agents, new Map([["q", { created: 4, agents: 2 }]]));
  assert.deepEqual(
    drawn.rows.map((row) => row.node.id),
    ["q", "r", "t", "w#9", "w", "root"],
  );
  assert.equal(drawn.rows.at(-1).lane, 0);
  for (const edge of drawn.edges) assert.ok(edge.from < edge.to);
});

test("a moment has one form: the time of day, and the date when it is not today's", () => {
  const at = (...parts) => new Date(2026, 10, ...parts).getTime();
  const now = at(18, 23, 59);
  assert.equal(words.when(at(18, 0, 5), now), "00:05");
  assert.equal(words.when(at(17, 23, 59), now), "17 Nov, 23:59");
  assert.equal(words.when(at(19, 0, 10), now), "19 Nov, 00:10");
  assert.equal(words.whenLogged(at(18, 14, 2, 6, 41), now), "14:02:06.041");
  assert.equal(words.whenLogged(at(9, 14, 2, 6, 41), now), "9 Nov, 14:02");
});

test("an agent that begins is told to its own view, which may be open already", () => {
  const { change } = folded({ type: "agent_created", agent: "a", name: "ida" });
  assert.ok(change.topics.has("agent:a") && change.topics.has("agents"));
});

test("agents of their own share the first lane; forks have lanes", () => {
  const view = (id, created, more = {}) => ({ id, created, parent: "root", state: "alive", assignment: null, ...more });
  const agents = [
    view("root", 0, { parent: null }),
    view("w", 1),
    view("x", 2),
    view("f", 3, { parent: "w", forkedFrom: "w", forkPoint: 9 }),
    view("y", 4),
    view("z", 5),
  ];
  const drawn = tree.treeOf(agents, new Map());
  assert.deepEqual(
    drawn.rows.map((row) => [row.node.id, row.lane]),
    [
      ["z", 0],
      ["y", 0],
      ["f", 1],
      ["w#9", 1],
      ["x", 0],
      ["w", 1],
      ["root", 0],
    ],
  );
  assert.equal(drawn.lanes, 2);
});
