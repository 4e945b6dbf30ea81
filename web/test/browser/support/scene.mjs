// A project in the middle of its day: every state that the page can show, by scripted agents.
import { Daemon } from "./daemon.mjs";

const CHECK = `#!/bin/sh
bad=$(ls *.bad 2>/dev/null | head -n 1)
[ -z "$bad" ] && { echo "14 passed"; exit 0; }
echo "src/$bad:41:9 error: retry is not a function of AttemptRow"
exit 1
`;

const text = (words) => ({ text: words });
const cost = (usd, input_tokens = 4000, output_tokens = 300) => ({ cost: { usd, input_tokens, output_tokens } });
const write = (path, content) => ({ write_file: { path, content } });
const tool = (name, input, result = "ok", is_error = false) => ({ tool: { name, input, result, is_error } });
const mcp = (name, args) => ({ mcp: { tool: name, arguments: args } });
const complete = (summary) => mcp("signal-back", { signal: "complete", stepId: "{{step}}", summary });
export const hang = { hang: {} };

const lines = (word, n) => Array.from({ length: n }, (_, at) => `${word} ${at + 1}`).join("\n");

const STEPS = [
  { id: "schema", name: "Store each attempt" },
  { id: "queue", name: "Put failed ones in a queue", dependsOn: ["schema"] },
  { id: "worker", name: "Send them again, with backoff", dependsOn: ["schema"] },
  { id: "metrics", name: "Count retries by outcome", dependsOn: ["schema"] },
  { id: "admin-page", name: "List what failed, and send it again by hand", dependsOn: ["schema"] },
  { id: "alerts", name: "Tell somebody when it is too much", dependsOn: ["schema"] },
  { id: "docs", name: "Describe it", dependsOn: ["queue", "worker", "admin-page"] },
  { id: "runbook", name: "What to do at night", dependsOn: ["alerts"] },
];

const PARTS = {
  chaoswhisperer: [
    text("I read the request, and ask what a person would see."),
    mcp("set-requirements", {
      contexts: [{ id: "a-sender", description: "Somebody whose webhook failed." }],
      observables: [
        { id: "sent-again", context: "a-sender", description: "A failed delivery is sent again." },
        { id: "backs-off", context: "a-sender", description: "The pauses grow." },
        { id: "seen", context: "a-sender", description: "What failed can be seen." },
      ],
    }),
    cost(0.12),
    complete("3 observables."),
  ],
  pathseeker: [
    text("The schema comes first. Five steps need nothing but it."),
    mcp("plan-steps", { steps: STEPS }),
    cost(0.34),
    complete("8 steps, five of them side by side."),
  ],
  codeweaver: [text("I begin."), write("src/{{step}}.rs", "pub fn done() {}\n"), cost(0.1), complete("It is done.")],
  siegemaster: [text("I try to break it."), cost(0.19), complete("Nothing to object to.")],
  spiritmender: [text("I mend it."), cost(0.05), complete("Mended.")],
  lawbringer: [text("I read all of it."), cost(0.1), complete("All observables hold.")],
  "schema.codeweaver": [
    write("src/schema.rs", lines("// attempt", 96)),
    cost(0.38),
    complete("Each attempt is stored with its answer and time."),
  ],
  "queue.codeweaver": [
    text("A queue in the table, ordered by the time of the next try."),
    write("src/queue.rs", lines("// queue", 128)),
    cost(0.41),
    tool("Read", { file_path: "src/schema.rs" }, lines("line", 6)),
    tool("Edit", { file_path: "src/retry/queue.rs" }),
    hang,
  ],
  "worker.codeweaver": [
    text("The worker takes what is due."),
    write("src/worker.rs", lines("// worker", 31)),
    cost(0.36),
    mcp("signal-back", {
      signal: "needs-user-input",
      stepId: "{{step}}",
      question: "A delivery that has failed ten times: drop it, or keep it so that you can send it by hand?",
      context:
        "The table has room for both. Keeping costs one row for each failed delivery, and the admin page could list them. I would keep them.",
      choices: ["Keep them", "Drop them"],
    }),
    "turn",
    text("I know now, and keep them."),
    write("src/worker.rs", lines("// worker", 40)),
    complete("Failed deliveries are kept and listed."),
  ],
  "metrics.codeweaver": [
    write("metrics.bad", "x\n"),
    write("src/metrics.rs", lines("// count", 6)),
    cost(0.26),
    complete("Retries are counted by outcome."),
  ],
  "metrics.spiritmender": [
    text("The function has another name."),
    tool("Bash", { command: "cargo test retry::metrics" }, "1 failed"),
    cost(0.22),
    hang,
  ],
  "admin-page.codeweaver.1": [
    write("src/admin.rs", lines("// page", 211)),
    cost(0.41),
    complete("The page lists attempts."),
  ],
  "admin-page.siegemaster": [
    text("I press the button twice."),
    mcp("signal-back", {
      signal: "needs-role-followup",
      stepId: "{{step}}",
      targetRole: "codeweaver",
      reason: "A retry can be started twice.",
      context: "Press it twice, quickly.",
      resume: true,
    }),
    "turn",
    complete("It cannot be started twice."),
  ],
  "admin-page.codeweaver.2": [text("A retry that is under way cannot be started again."), cost(0.63), hang],
  "alerts.codeweaver": [write("alerts.bad", "x\n"), cost(0.3), complete("Somebody is told.")],
  "alerts.spiritmender": [text("I look at the finding."), cost(0.2), complete("I think it is mended.")],
};

function playbook(daemon, parts, name) {
  let folder = "";
  for (const [part, steps] of Object.entries(parts)) {
    const path = daemon.script(`${name}/${part}`, steps);
    folder = path.slice(0, path.lastIndexOf("/"));
  }
  return folder;
}

const TWO = [
  mcp("plan-steps", {
    steps: [
      { id: "errors", name: "One type for all" },
      { id: "loader", name: "The loader uses it", dependsOn: ["errors"] },
    ],
  }),
  cost(0.2),
  complete("Two steps."),
];
/** Ways in which a small quest can go. */
const WAYS = {
  plain: {},
  asks: {
    "errors.codeweaver": [
      mcp("signal-back", {
        signal: "needs-user-input",
        stepId: "{{step}}",
        question: "Shall the shelves be of oak or of pine?",
        context: "Oak lasts longer. I would take oak.",
        choices: ["Oak", "Pine"],
      }),
      "turn",
      text("I know now."),
      complete("Built, of the wood that was wanted."),
    ],
  },
  one: {
    pathseeker: [mcp("plan-steps", { steps: [{ id: "errors", name: "One type for all" }] }), complete("One step.")],
  },
  halves: {
    pathseeker: [
      mcp("plan-steps", {
        steps: [
          { id: "fails", name: "It fails" },
          { id: "goes-on", name: "It goes on" },
        ],
      }),
      complete("Two steps."),
    ],
    "fails.codeweaver": [write("fails.bad", "x\n"), complete("I think it is done.")],
    "goes-on.codeweaver": [text("I go on."), hang],
  },
  fails: { "errors.codeweaver": [write("errors.bad", "x\n"), complete("I think it is done.")] },
};

/** A small quest that goes through to its end, asks, or fails. */
export async function smallQuest(daemon, request, { parts = "plain", ...more } = {}) {
  const { chaoswhisperer, codeweaver, siegemaster, spiritmender, lawbringer } = PARTS;
  const script = playbook(
    daemon,
    { chaoswhisperer, codeweaver, siegemaster, spiritmender, lawbringer, pathseeker: TWO, ...WAYS[parts] },
    parts,
  );
  const made = await daemon.post("/api/quests", {
    request,
    slots: 2,
    ward: "sh check.sh",
    with: { harness: "scripted", script },
    ...more,
  });
  return made.id;
}

/** Without an account: whoever is started from the page plays a script, too. */
export async function emptyProject() {
  return Daemon.start("parcel-api", { "check.sh": CHECK, "hatchery.toml": 'harness = "scripted"\n' });
}

const SEATED = [
  ["Lyra", "Tidewater", "I read before I write, and say what I am not sure of. I like small changes."],
  ["Kael", "Violet Heaven", "I look for what breaks. I ask for the test first."],
  ["Wren", "Clay Morning", "I write down what others decide, so that nobody has to ask twice."],
];

/** Seats: some have chosen a name, one is still an egg. */
export async function seats(daemon) {
  SEATED.forEach(([name, colorName, soul], seat) => {
    const register = mcp("register", { name, soul, colorName });
    daemon.script(`seats/seat-${seat}.birth`, [register, text(`Hello, I am ${name}.`)]);
  });
  const script = daemon.script("seats/seat-5.birth", [text("Who am I?"), hang]);
  await daemon.post("/api/agents/summon", {
    seats: [0, 1, 2, 5],
    with: { script: script.slice(0, script.lastIndexOf("/")) },
  });
  for (const [name] of SEATED)
    await daemon.until((event) => event.type === "message_added" && event.content === `Hello, I am ${name}.`);
  await daemon.until((event) => event.type === "message_added" && event.content === "Who am I?");
}

/** Everything at once. Returns the daemon and who is who. */
export async function scene() {
  const daemon = await emptyProject();
  const who = {};
  await daemon.post("/api/budgets", { limit: "20" });
  who.done = await smallQuest(daemon, "Typed errors in the config loader");
  await daemon.until((event) => event.type === "quest_completed" && event.quest === who.done);

  // A fork goes on with its parent's script, so what weaver-table does stands after weaver's first turn.
  const weaver = [
    text(
      "Two places fit: a sorted set in Redis, or a table with the time of the next try. Redis is quicker to build. The table survives a restart and can be asked with SQL.",
    ),
    cost(0.31),
    "turn",
    tool("Read", { file_path: "src/store/attempts.rs" }, lines("line", 30)),
    tool("Read", { file_path: "src/worker.rs" }, lines("line", 12)),
    tool("Grep", { pattern: "delivered_at" }, "4 matches"),
    tool("Read", { file_path: "migrations/0013_attempts.sql" }, "CREATE TABLE delivery_attempts …"),
    tool("Bash", { command: "git log --oneline | head" }, "a1b2c3 Store attempts"),
    text(
      "The table `delivery_attempts` has everything but the time of the next try. I add `next_at` and an index on what is not delivered yet, so that the worker asks for what is due and nothing else.",
    ),
    tool("Edit", {
      file_path: "migrations/0014_next_at.sql",
      old_string: "",
      new_string:
        "ALTER TABLE delivery_attempts ADD COLUMN next_at timestamptz;\n-- The worker asks for what is due, and for nothing else.\nCREATE INDEX delivery_attempts_due ON delivery_attempts (next_at)\n  WHERE delivered_at IS NULL;",
    }),
    tool("Bash", { command: "cargo test -p store attempts" }, "test result: ok. 14 passed"),
    tool(
      "Bash",
      { command: 'psql -c "select count(*) from delivery_attempts"' },
      "denied: not allowed beforehand",
      true,
    ),
    cost(1.18, 62000, 14000),
    "turn",
    text(
      "The pause is 30 seconds at first, then **doubled** up to six hours:\n\n1. give or take a fifth, so that they do not all come at once\n2. ten tries, then it is left alone\n\n```rust\nfn pause(tries: u32) -> Duration { BASE * 2u32.pow(tries.min(10)) }\n```",
    ),
    hang,
  ];
  who.weaver = await daemon.run("weaver", weaver, "Deliveries that fail are lost today. How could we send them again?");
  await daemon.until((event) => event.type === "run_ended" && event.agent === who.weaver);
  const fork = async (name) => (await daemon.post("/api/agents", { parent: who.weaver, name })).id;
  /** A conversation without a process. */
  const says = async (agent, messages) => {
    for (const [kind, content] of messages)
      await daemon.post(`/api/agents/${agent}/messages`, {
        kind,
        content: typeof content === "string" ? content : JSON.stringify(content),
      });
  };
  who.tester = await fork("tester");
  await says(who.tester, [
    ["user", "Test both."],
    ["assistant", "I would test two workers first."],
  ]);
  await daemon.post(`/api/agents/${who.tester}/kill`, {});
  who.redis = await fork("weaver-redis");
  await says(who.redis, [
    ["user", "Try it with Redis. A sorted set by time is enough."],
    ["tool_call", { id: "t1", name: "Read", input: { file_path: "Cargo.toml" } }],
    ["tool_result", { id: "t1", content: "[package]", is_error: false }],
    ["tool_call", { id: "t2", name: "Bash", input: { command: "redis-cli ping" } }],
    ["tool_result", { id: "t2", content: "PONG", is_error: false }],
    [
      "assistant",
      "One sorted set, `retry:due`. The worker takes what is due with a script, so that no two take the same.",
    ],
    [
      "assistant",
      "It works, but a restart of Redis without its file loses what waits. I would say so in the docs, or take the table.",
    ],
  ]);
  who.table = await fork("weaver-table");
  await daemon.post(`/api/agents/${who.table}/say`, {
    text: "Try it with a table. Leave the worker’s interface as it is.",
    with: { harness: "scripted", stays: true },
  });
  await daemon.until((event) => event.type === "turn_ended" && event.agent === who.table);
  await daemon.post(`/api/agents/${who.table}/say`, { text: "And the pause between two tries?" });

  who.silent = await daemon.run(
    "slow-tests",
    [text("I run all tests."), tool("Bash", { command: "pytest -x" }), cost(0.92), hang],
    "Why are the tests slow?",
    { stallMs: 1500 },
  );
  who.parked = await daemon.run(
    "pathseeker-docs",
    [text("I read the docs."), cost(0.11), { error: { api: 429, resets_in_s: 840 } }],
    "What do the docs leave out?",
  );

  const script = playbook(daemon, PARTS, "webhooks");
  const quest = { slots: 4, ward: "sh check.sh", budget: "15", with: { harness: "scripted", script } };
  who.quest = (await daemon.post("/api/quests", { ...quest, request: "Send failed webhooks again, with backoff" })).id;
  await daemon.until((event) => event.type === "step_failed" && event.step === "alerts");
  await daemon.until((event) => event.type === "question_asked" && event.about.silence?.agent === who.silent);
  who.plan = (
    await daemon.post("/api/quests", { ...quest, request: "Limit requests per tenant", approvePlan: true })
  ).id;
  await daemon.until((event) => event.type === "question_asked" && event.about.step?.quest === who.plan);
  await daemon.post("/api/mail", {
    from: who.redis,
    to: "human",
    body: "The comparison of Redis and the table is in docs/retry.md.",
  });
  await daemon.post("/api/mail", { from: who.redis, to: who.table, body: "Is attempt a number or a row?" });
  // All have come to where they stay, so that nothing changes under the tests.
  const said = (words) => daemon.until((event) => event.type === "message_added" && event.content.includes(words));
  await daemon.until((event) => event.type === "run_parked" && event.agent === who.parked);
  await daemon.until((event) => event.type === "question_asked" && event.text.includes("failed ten times"));
  await said("The pause is 30 seconds at first");
  await said("src/retry/queue.rs");
  await said("cargo test retry::metrics");
  await said("A retry that is under way cannot be started again.");
  return { daemon, who };
}
