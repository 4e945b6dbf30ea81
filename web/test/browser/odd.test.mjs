// Odd projects: an empty one, very long names and words, what tries to deceive, a quest of 200 steps, thousands of agents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { hang } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

const mcp = (tool, args) => ({ mcp: { tool, arguments: args } });
const complete = (summary) => mcp("signal-back", { signal: "complete", stepId: "{{step}}", summary });
const WORD = "Donaudampfschifffahrtsgesellschaftskapitaen".repeat(6);
const NAME = "an-agent-whose-name-is-as-long-as-a-name-of-an-agent-can-ever-be";

async function show(page, path) {
  await page.goto(daemon.url + path);
  await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".skeleton"));
}

test("an empty project: every view says what will come, and has one heading", async () => {
  const page = await open(browser, daemon);
  for (const path of ["/", "/quests", "/agents", "/seats", "/build", "/mail", "/log", "/cost", "/agents/x"]) {
    await show(page, path);
    assert.equal(await page.locator("h1:visible").count(), 1, path);
    assert.doesNotMatch(await page.locator("main").innerText(), /NaN|undefined|null|\$0\.(?!\d)|\b1 events/, path);
  }
});

test("an address that belongs to no view says so, and leads on", async () => {
  const page = await open(browser, daemon);
  const heading = (name) => page.getByRole("heading", { level: 1, name }).waitFor();
  for (const path of ["/cost/yesterday", "/agents/a/b", "/keys/%E0%A4%A", `/keys/${WORD}`]) {
    await show(page, path);
    await heading("There is no page at this address");
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, path);
  }
  await show(page, "/cost/yesterday");
  await page.getByRole("button", { name: "Find “yesterday”" }).click();
  assert.equal(await page.getByRole("combobox").inputValue(), "yesterday");
  await page.keyboard.press("Escape");
  await page.getByRole("navigation", { name: "All views" }).getByRole("link", { name: "Cost" }).click();
  await heading(/today/);
  await show(page, "/quests/nowhere");
  await heading("There is no such quest");
  await show(page, "/agents/%E0%A4%A");
  await heading("There is no such agent");
});

test("a store in trouble is told, with what to do", async () => {
  const page = await open(browser, daemon);
  await page.evaluate(() => {
    globalThis.hatchery.connection = { ...globalThis.hatchery.connection, trouble: "the disk is full" };
    globalThis.hatchery.touch("connection");
  });
  await page.getByText("The store is in trouble: the disk is full.").waitFor();
  await page.getByRole("button", { name: "What to do" }).click();
  await page.getByRole("dialog").getByText("The daemon tries again by itself").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("long names, long words and a large quest keep their place", async () => {
  const long = await daemon.run(NAME, [{ text: `${WORD} ${"/a/long/path".repeat(30)}` }, hang], WORD);
  const script = daemon.script("big/codeweaver", [{ text: "I begin." }, hang]);
  daemon.script("big/chaoswhisperer", [
    mcp("set-requirements", {
      contexts: [{ id: "c", description: "x" }],
      observables: [{ id: "o", context: "c", description: "y" }],
    }),
    complete("One."),
  ]);
  daemon.script("big/pathseeker", [
    mcp("plan-steps", {
      steps: Array.from({ length: 200 }, (_, at) => ({
        id: `step-${at + 1}`,
        name: `Part ${at + 1}`,
        dependsOn: at === 0 ? [] : at < 8 ? ["step-1"] : [`step-${at - 6}`],
      })),
    }),
    complete("200 steps."),
  ]);
  const quest = (
    await daemon.post("/api/quests", {
      request: `A large quest. ${WORD}`,
      slots: 4,
      ward: "sh check.sh",
      with: { harness: "scripted", script: script.slice(0, script.lastIndexOf("/")) },
    })
  ).id;
  const asker = await daemon.run("asker", [
    {
      ask: {
        name: "Bash",
        input: { command: `rm -rf build && ${WORD}\necho \u202etxt.exe \u001b[8mhidden` },
        result: "",
      },
    },
    hang,
  ]);
  await daemon.until((event) => event.type === "question_asked" && event.agent === asker);
  await daemon.until((event) => event.type === "step_begun" && event.quest === quest && event.step === "step-1");
  for (const width of [1440, 380]) {
    const page = await open(browser, daemon, { width, height: 900 });
    for (const path of [
      "/",
      "/quests",
      `/quests/${quest}`,
      "/agents",
      `/agents/${long}`,
      `/mail/${long}`,
      "/log",
      "/cost",
    ]) {
      await show(page, path);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${path} is ${wide} px too wide at ${width} px`);
    }
    // What somebody decides on is shown whole, and as it is.
    await show(page, "/");
    const wanted = page.locator(".ask", { hasText: "May it use Bash?" }).locator("pre");
    assert.ok((await wanted.innerText()).endsWith("echo <U+202E>txt.exe <U+001B>[8mhidden"));
    await page.context().close();
  }
  const page = await open(browser, daemon, { path: `/quests/${quest}` });
  await page.locator(".graph:not(.is-list)").waitFor();
  const inSight = (name) =>
    page.waitForFunction((step) => {
      const box = document.querySelector(".graph").getBoundingClientRect();
      const node = [...document.querySelectorAll(".node")].find((it) => it.querySelector("b").textContent === step);
      const { left, right, top, bottom } = node.getBoundingClientRect();
      return left >= box.left && right <= box.right && top >= box.top && bottom <= box.bottom;
    }, name);
  await inSight("step-1");
  await page.goto(`${daemon.url}/quests/${quest}/step-150`);
  await page.getByRole("heading", { level: 2, name: "step-150" }).waitFor();
  await page.locator(".graph:not(.is-list)").waitFor();
  await inSight("step-150");
  assert.deepEqual(page.troubles, []);
});

test("thousands of agents: names are in sight, the count is right, and the oldest can be reached", async () => {
  const agents = 2000;
  const lines = Array.from({ length: agents }, (_, id) => [
    JSON.stringify({ agent: { id, parent: null, fork_message_id: null } }),
    JSON.stringify({ message: { id, agent: id, kind: "assistant", content: `line ${id}` } }),
  ]).flat();
  const response = await fetch(`${daemon.url}/api/history/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${daemon.token}`, "content-type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  assert.equal(response.status, 201);
  const page = await open(browser, daemon, { path: "/agents" });
  const name = page.locator(".git li .title").first();
  await name.waitFor();
  assert.ok((await name.boundingBox()).x < 700, "the lines leave room for the names");
  await page.getByRole("button", { name: /^All 2,/ }).click();
  const more = page.getByRole("button", { name: /^Show earlier, 1,7/ });
  await more.click();
  await page.getByRole("button", { name: /^Show earlier, 1,4/ }).waitFor();
  assert.deepEqual(page.troubles, []);
});
