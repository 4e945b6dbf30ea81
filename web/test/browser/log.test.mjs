// A hundred thousand events, from one end to the other, and the script's weight.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { open } from "./support/browser.mjs";
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
