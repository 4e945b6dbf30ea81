// A hundred thousand events, from one end to the other, and the script's weight.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { open } from "./support/browser.mjs";
import { smallQuest } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

const EVENTS = 100_000;
/** Compressed script before the first paint. */
const SCRIPT_BYTES = 120 * 1024;

onEmptyProject(async () => {
  const lines = [JSON.stringify({ agent: { id: 1, parent: null, fork_message_id: null } })];
  for (let at = 0; at < EVENTS; at += 1)
    lines.push(
      JSON.stringify({ message: { id: at, agent: 1, kind: at % 2 ? "assistant" : "user", content: `message ${at}` } }),
    );
  const response = await fetch(`${daemon.url}/api/history/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${daemon.token}`, "content-type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  assert.equal(response.status, 201);
});

test("the log is scrolled from its newest event to its first", async () => {
  const page = await open(browser, daemon, { path: "/log" });
  const { head } = await daemon.get("/api/status");
  assert.ok(head > EVENTS);
  await page.locator(`[data-event="${head}"]`).waitFor();
  const list = page.locator(".virtual");
  for (let share = 0.1; share < 1; share += 0.1) {
    await list.evaluate((it, to) => {
      it.scrollTop = it.scrollHeight * to;
    }, share);
    await page.waitForFunction(() => document.querySelectorAll(".virtual [data-event]").length > 10);
    // What is shown is in order and without a gap.
    const ids = await page
      .locator(".virtual [data-event]")
      .evaluateAll((all) => all.map((it) => Number(it.dataset.event)));
    assert.deepEqual(
      ids,
      ids.map((_, at) => ids[0] - at),
    );
  }
  await list.press("End");
  await page.locator('[data-event="1"]').waitFor();
  assert.ok((await page.locator(".virtual-row").count()) < 100, "only what is seen exists");
  await page.keyboard.press("#");
  await page.getByRole("dialog").getByLabel("Number").fill("#50,000");
  await page.getByRole("dialog").getByRole("button", { name: "Go" }).click();
  await page.locator('[data-event="50000"].is-chosen').waitFor();
  await page.getByText('"id": 50000').waitFor();
  assert.deepEqual(page.troubles, []);
});

test("little script comes before the first paint", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const scripts = [];
  page.on("response", async (response) => {
    if (response.url().endsWith(".js")) scripts.push(response.body());
  });
  await page.goto(daemon.link);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const bytes = (await Promise.all(scripts)).reduce((sum, body) => sum + gzipSync(body).length, 0);
  console.log(`# ${scripts.length} scripts, ${bytes} bytes compressed`);
  assert.ok(bytes > 5000 && bytes <= SCRIPT_BYTES, `${bytes} bytes`);
});

test("the log is filtered by words, and new events that fit appear", async () => {
  const page = await open(browser, daemon, { path: "/log" });
  await page.getByLabel("Filter").fill("message 4242");
  await page.getByLabel("Filter").press("Enter");
  // 4242 and 42420 to 42429.
  await page.getByText(/^11 of .* match$/).waitFor();
  await page.locator(".log-row", { hasText: "message 42429" }).waitFor();
  const { agents } = await daemon.get("/api/agents");
  await daemon.post(`/api/agents/${agents.at(-1).id}/messages`, { kind: "user", content: "message 4242 again" });
  await page.locator(".log-row", { hasText: "message 4242 again" }).waitFor();
  await page.getByRole("button", { name: "Remove words" }).click();
  await page.locator(".virtual").waitFor();
  assert.deepEqual(page.troubles, []);
});

test("types and times are filtered, and the strip leads into the past", async () => {
  const page = await open(browser, daemon, { path: "/log" });
  const { head } = await daemon.get("/api/status");
  await page.locator(".log-map .here").waitFor();
  const strip = await page.locator(".log-map").boundingBox();
  await page.mouse.click(strip.x + strip.width / 2, strip.y + strip.height / 2);
  await page.locator(`[data-event="${Math.round(head / 2)}"]`).waitFor();

  await page.getByRole("button", { name: "Type" }).click();
  await page.getByRole("button", { name: "messages", exact: true }).click();
  await page.getByText(/^100,00\d of 100,00\d match$/).waitFor();
  await page.getByRole("button", { name: "Time" }).click();
  await page.getByRole("button", { name: "yesterday" }).click();
  await page.getByRole("heading", { name: "No event matches these filters" }).waitFor();
  await page.getByRole("button", { name: /^Remove until/ }).click();
  await page.locator(`[data-event="${head}"]`).waitFor();
  assert.deepEqual(page.troubles, []);
});

/** How many events the daemon says match, and of how many. */
async function matchWords(query) {
  const { count, head } = await daemon.get(`/api/events/count?${query}`);
  const group = (n) => n.toLocaleString("en");
  return `${group(count)} of ${group(head)} match`;
}

test("the daemon decides what matches: what agents of a quest say, and mail to an agent, appear as they come", async () => {
  const quest = await smallQuest(daemon, "A shelf", { parts: "asks" });
  const asked = await daemon.until((event) => event.type === "question_asked" && event.about.step?.quest === quest);
  const page = await open(browser, daemon, { path: `/log?quest=${quest}` });
  await page.locator(".log-row", { hasText: "signal_given" }).first().waitFor();
  await daemon.post(`/api/questions/${asked.id}/answer`, { answer: "Oak" });
  // What an agent says does not name its quest.
  await page.locator(".log-row", { hasText: "assistant I know now." }).waitFor();
  await daemon.until((event) => event.type === "quest_completed" && event.quest === quest);
  await page.getByText(await matchWords(`quest=${quest}`), { exact: true }).waitFor();

  const ann = (await daemon.post("/api/agents", { name: "ann" })).id;
  const ben = (await daemon.post("/api/agents", { name: "ben" })).id;
  await page.goto(`${daemon.url}/log?agent=${ann}`);
  await page.locator(".log-row", { hasText: "agent_created" }).waitFor();
  await daemon.post("/api/mail", { from: ben, to: ann, body: "For ann alone." });
  await page.locator(".log-row", { hasText: "For ann alone." }).waitFor();
  await page.getByText(await matchWords(`agent=${ann}`), { exact: true }).waitFor();
  assert.deepEqual(page.troubles, []);
});

for (const [where, filter] of Object.entries({ "": "", " among matches": "&type=message_added" })) {
  test(`what is new waits while somebody has scrolled away by a row${where}`, async () => {
    const { id } = await daemon.post("/api/agents", { name: `gil-${filter.length}` });
    const page = await open(browser, daemon, { path: `/log?${filter}` });
    await page.getByRole("button", { name: "Following" }).waitFor();
    await page.locator(".virtual [data-event]").nth(20).waitFor();
    const say = (content) => daemon.post(`/api/agents/${id}/messages`, { kind: "user", content });
    await say(`On top${where}.`);
    await page.locator(".log-row", { hasText: `On top${where}.` }).waitFor();
    await page.locator(".virtual").evaluate((it) => {
      it.scrollTop = 45;
    });
    await page.getByRole("button", { name: "Follow", exact: true }).waitFor();
    const row = page.locator(".virtual [data-event]").nth(5);
    const [event, before] = [await row.getAttribute("data-event"), await row.boundingBox()];
    await say(`Later${where}.`);
    await page.getByRole("button", { name: /^\d+ new$/ }).waitFor();
    assert.deepEqual(await page.locator(`.virtual [data-event="${event}"]`).boundingBox(), before, "nothing moves");
    assert.equal(await page.locator(".log-row", { hasText: `Later${where}.` }).count(), 0);
    await page.getByRole("button", { name: /^\d+ new$/ }).click();
    await page.locator(".log-row", { hasText: `Later${where}.` }).waitFor();
    await page.getByRole("button", { name: "Following" }).waitFor();
    // An event that is read stays where it is, too.
    await page.locator(".log-row", { hasText: `Later${where}.` }).click();
    await page.getByRole("button", { name: "Follow", exact: true }).waitFor();
    assert.deepEqual(page.troubles, []);
  });
}

test("a quest and a step are filters by their names", async () => {
  const page = await open(browser, daemon, { path: "/log" });
  const type = async (words) => {
    await page.getByLabel("Filter").fill(words);
    await page.getByLabel("Filter").press("Enter");
  };
  const quest = await smallQuest(daemon, "A table", { parts: "one" });
  await daemon.until((event) => event.type === "quest_completed" && event.quest === quest);
  await type("a table");
  await page.waitForURL(`${daemon.url}/log?quest=${quest}`);
  await type("errors");
  await page.waitForURL(`${daemon.url}/log?quest=${quest}&step=errors`);
  await page.locator(".log-row", { hasText: "step_completed" }).waitFor();
  const first = page.locator(".virtual [role=row]").first();
  assert.equal(await first.getAttribute("aria-rowindex"), "2", "the head of the table is its first row");
  assert.deepEqual(page.troubles, []);
});
