// One quest among others: what it asks, in the page's words, and the step that was chosen, at any width.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { smallQuest } from "./support/scene.mjs";
import { browser, daemon, onScene, who } from "./support/stage.mjs";

onScene();

test("a question is told in the page's words wherever it stands: no command of the terminal, no half words", async () => {
  const page = await open(browser, daemon, { path: `/quests/${who.plan}` });
  const node = page.locator(".node", { hasText: "asks:" });
  assert.match(await node.textContent(), /asks: 8 steps, 4 at a time\. Shall they be carried out\?/);
  await page.goto(`${daemon.url}/agents/${who.silent}`);
  const bar = page.locator(".evidence a.link");
  assert.equal(await bar.textContent(), "Nothing was heard of it for 1 s.");
  assert.deepEqual(page.troubles, []);
});

test("a plan of one step asks for one step, and what is done begins like a sentence", async () => {
  await smallQuest(daemon, "One shelf", { parts: "one", approvePlan: true });
  const page = await open(browser, daemon);
  await page.getByText("1 step. Shall it be carried out?").waitFor();
  await page.getByRole("region", { name: "Done" }).getByText("Asked another role first").waitFor();
  assert.deepEqual(page.troubles, []);
});

test("A answers what this quest asks, though others have waited longer", async () => {
  const page = await open(browser, daemon, { path: `/quests/${who.quest}/admin-page` });
  await page.getByRole("link", { name: /^Answer/ }).waitFor();
  await page.keyboard.press("a");
  const { questions } = await daemon.get("/api/questions");
  const asked = questions.find((it) => it.quest === who.quest);
  await page.waitForFunction((id) => document.activeElement?.id === `ask-${id}-field`, asked.id);
  assert.deepEqual(page.troubles, []);
});

for (const width of [390, 1000]) {
  test(`at ${width} px the step that was chosen stands under the steps, before the signals`, async () => {
    const page = await open(browser, daemon, { width, path: `/quests/${who.quest}/admin-page` });
    const top = async (name) => (await page.locator(name).boundingBox()).y;
    await page.getByRole("region", { name: "Signals" }).waitFor();
    assert.ok((await top(".graph")) < (await top(".panel")), "steps, then the one that was chosen");
    assert.ok((await top(".panel")) < (await top("section[aria-label=Signals]")), "then the signals");
    assert.deepEqual(page.troubles, []);
  });
}
