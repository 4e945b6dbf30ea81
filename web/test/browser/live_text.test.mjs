// What an agent is writing is seen while it is written, and stands there once when it is whole.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./support/browser.mjs";
import { emptyProject, hang } from "./support/scene.mjs";

let daemon;
let browser;
before(async () => {
  daemon = await emptyProject();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

test("a text grows while it is written, also for somebody who comes late, and is then one message", async () => {
  const pieces = ["The pauses ", "grow: **30 s**, ", "then <script>double</script>. "];
  const agent = await daemon.run("wyn", [
    { partial_thought: "First the easy part. Then the" },
    { sleep_ms: 3000 },
    { partial_thought: " hard one." },
    { think: "First the easy part. Then the hard one." },
    ...pieces.map((partial) => ({ partial })),
    { sleep_ms: 5000 },
    { partial: "Ten tries." },
    { text: `${pieces.join("")}Ten tries.` },
    hang,
  ]);
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  // Of a thought the latest sentence is shown.
  await page.locator(".note.is-writing", { hasText: "Then the" }).waitFor();
  const writing = page.locator(".msg.is-writing");
  await writing.getByText("writes this now").waitFor();
  await writing.getByText("The pauses grow: 30 s, then <script>double</script>.").waitFor();
  assert.equal(await writing.locator("strong", { hasText: "30 s" }).count(), 1);
  const late = await open(browser, daemon, { path: `/agents/${agent}` });
  await late.locator(".msg.is-writing", { hasText: "The pauses grow: 30 s" }).waitFor();
  for (const it of [page, late]) {
    await it.locator(".msg[data-message]", { hasText: "Ten tries." }).waitFor();
    await it.locator(".is-writing").waitFor({ state: "detached" });
    assert.equal(await it.getByText("The pauses grow: 30 s").count(), 1);
    assert.deepEqual(it.troubles, []);
  }
  await daemon.post(`/api/agents/${agent}/stop`);
});

test("what was being written when the process ended is not left behind", async () => {
  const agent = await daemon.run("una", [{ partial: "I was about to" }, hang]);
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  await page.locator(".msg.is-writing", { hasText: "I was about to" }).waitFor();
  await daemon.post(`/api/agents/${agent}/stop`);
  await page.locator(".is-writing").waitFor({ state: "detached" });
  await page.getByRole("status").getByText("resting").waitFor();
  assert.deepEqual(page.troubles, []);
});
