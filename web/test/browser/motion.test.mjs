// What moves on Home, and what does not: a row that changes its column is seen on its way, and nothing moves under a hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, whole } from "./support/browser.mjs";
import { hang } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

/** Notes which rows are set in motion from now on. */
const watchMoves = (page) =>
  page.evaluate(() => {
    globalThis.moves = [];
    const { animate } = Element.prototype;
    Element.prototype.animate = function (frames, options) {
      globalThis.moves.push({ row: this.dataset.mover, ms: options.duration, moved: frames[0].transform !== "none" });
      return animate.call(this, frames, options);
    };
  });

const doneRow = (page, agent) => page.locator(`.is-done[data-mover="${agent}"]`);

for (const [motion, moves] of [
  ["no-preference", (row) => [{ row, ms: 200, moved: true }]],
  ["reduce", () => []],
]) {
  test(`a row changes its column with the focus, where motion is “${motion}”`, async () => {
    const page = await open(browser, daemon, { motion });
    const agent = await daemon.run(`ida-${motion}`, [{ text: "I look." }, hang]);
    const row = page.locator(`[data-agent="${agent}"]`);
    await row.getByText("I look.").waitFor();
    await row.focus();
    await watchMoves(page);
    await daemon.post(`/api/agents/${agent}/stop`);
    await doneRow(page, agent).waitFor();
    assert.deepEqual(await page.evaluate(() => globalThis.moves), moves(agent));
    assert.equal(await page.evaluate(() => document.activeElement.dataset.mover), agent);
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  });
}

test("what is done while a hand is among the rows waits until it is asked for", async () => {
  const first = await daemon.run("first", [{ text: "One." }]);
  const page = await open(browser, daemon);
  await doneRow(page, first).waitFor();
  const late = await daemon.run("late", [{ text: "Two." }, hang]);
  await page.locator(`[data-agent="${late}"]`).getByText("Two.").waitFor();
  await doneRow(page, first).hover();
  const place = await doneRow(page, first).boundingBox();
  await daemon.post(`/api/agents/${late}/stop`);
  const fresh = page.getByRole("button", { name: "1 new" });
  await fresh.waitFor();
  assert.equal(await doneRow(page, late).count(), 0);
  assert.deepEqual(await doneRow(page, first).boundingBox(), place, "no row has moved");
  await fresh.click();
  await doneRow(page, late).waitFor();
  await fresh.waitFor({ state: "detached" });
  await whole(page, daemon);
});
