// What an agent is writing is seen while it is written, and stands there once when it is whole.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { hang } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

/** Everything that `.is-writing` has shown, whether or not somebody looked at that moment. */
const record = (page) =>
  page.evaluate(() => {
    globalThis.written = [];
    new MutationObserver(() => {
      for (const it of document.querySelectorAll(".is-writing"))
        globalThis.written.push({ words: it.innerText, bold: it.querySelector("strong")?.textContent ?? "" });
    }).observe(document.getElementById("main"), { childList: true, subtree: true, characterData: true });
  });
const saw = (page, words) =>
  page.waitForFunction((it) => globalThis.written.some((at) => at.words.includes(it)), words);

test("a text grows while it is written, and is then one message", async () => {
  const agent = (await daemon.post("/api/agents", { name: "wyn" })).id;
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  await page.getByText("Nothing was said yet").waitFor();
  await record(page);
  const pieces = ["The pauses ", "grow: **30 s**, ", "then <script>double</script>. "];
  const script = daemon.script("wyn", [
    { partial_thought: "First the easy part. Then the" },
    { sleep_ms: 2000 },
    { partial_thought: " hard one." },
    { think: "First the easy part. Then the hard one." },
    ...pieces.map((partial) => ({ partial })),
    { sleep_ms: 2000 },
    { partial: "Ten tries." },
    { text: `${pieces.join("")}Ten tries.` },
    hang,
  ]);
  await daemon.post(`/api/agents/${agent}/say`, { text: "Begin.", with: { harness: "scripted", script } });
  // Of a thought the latest sentence is shown.
  await saw(page, "thinks: Then the");
  await saw(page, "writes this now");
  await saw(page, "The pauses grow: 30 s, then <script>double</script>.");
  await page.locator(".msg[data-message]", { hasText: "Ten tries." }).waitFor();
  await page.locator(".is-writing").waitFor({ state: "detached" });
  assert.equal(await page.getByText("The pauses grow: 30 s").count(), 1);
  assert.ok(await page.evaluate(() => globalThis.written.some((it) => it.bold === "30 s")));
  assert.ok(!(await page.evaluate(() => globalThis.written.some((it) => it.words.includes("easy part")))));
  assert.deepEqual(page.troubles, []);
  await daemon.post(`/api/agents/${agent}/stop`);
});

test("what is being written is there for somebody who comes late, and is not left behind when the process ends", async () => {
  const agent = await daemon.run("una", [{ partial: "I was " }, { partial: "about to" }, hang]);
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  await page.locator(".msg.is-writing", { hasText: "I was about to" }).waitFor();
  const late = await open(browser, daemon, { path: `/agents/${agent}` });
  await late.locator(".msg.is-writing", { hasText: "I was about to" }).waitFor();
  await daemon.post(`/api/agents/${agent}/stop`);
  for (const it of [page, late]) {
    await it.locator(".is-writing").waitFor({ state: "detached" });
    await it.getByRole("status").getByText("resting").waitFor();
    assert.deepEqual(it.troubles, []);
  }
});
