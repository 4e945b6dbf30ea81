// Everything by keyboard alone: every control can be reached and shows that it has the focus, and what buttons do is in the palette.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { browser, daemon, onScene, who } from "./support/stage.mjs";

onScene();

const views = () => ({
  home: "/",
  quests: "/quests",
  quest: `/quests/${who.quest}/alerts`,
  agents: `/agents?a=${who.table}&b=${who.redis}`,
  agent: `/agents/${who.redis}`,
  seats: "/seats",
  build: "/build",
  mail: "/mail",
  cost: "/cost",
});

async function show(page, path) {
  await page.goto(daemon.url + path);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
  // The lines are drawn when their library is there.
  if (path.startsWith("/quests/")) await page.locator(".graph:not(.is-list)").waitFor();
}

/** Numbers the controls of the page. A row of a folded list is none. */
const controls = () => {
  const list = [...document.querySelectorAll("a[href], button, input, textarea, select, summary, [tabindex]")].filter(
    (it) =>
      it.tabIndex >= 0 && !it.disabled && it.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }),
  );
  list.forEach((it, at) => {
    it.dataset.walk = String(at);
  });
  return list.map((it) => `${it.tagName} ${(it.getAttribute("aria-label") ?? it.textContent).trim().slice(0, 40)}`);
};

/** What has the focus: which control, and whether one sees it. */
const focused = () => {
  const it = document.activeElement;
  if (!it || it === document.body) return null;
  const box = it.closest(".composer .box");
  const { bottom, top } = it.getBoundingClientRect();
  const seen = [it, box].some((part) => {
    if (!part) return false;
    const { boxShadow, outlineStyle, outlineColor } = getComputedStyle(part);
    return boxShadow !== "none" || (outlineStyle !== "none" && outlineColor !== "rgba(0, 0, 0, 0)");
  });
  return { walk: Number(it.dataset.walk ?? -1), seen, inSight: bottom > 0 && top < innerHeight };
};

for (const forced of [false, true]) {
  test(`every control is reached by Tab and shows the focus${forced ? ", in forced colours" : ""}`, async () => {
    const page = await open(browser, daemon);
    if (forced) await page.emulateMedia({ forcedColors: "active" });
    const faults = [];
    // In forced colours the same controls are reached: one view of each kind is enough.
    const paths = forced ? { home: "/", agent: `/agents/${who.redis}`, mail: "/mail" } : views();
    for (const [name, path] of Object.entries(paths)) {
      await show(page, path);
      const all = await page.evaluate(controls);
      const reached = new Set();
      // What can be done with a message comes with the focus, and the links of signals into the log come when the log has been read.
      const hidden = await page.locator(".msg .do .btn").count();
      const most = 2 * (all.length + hidden) + 5;
      for (let press = 0; press < most && !all.every((_, at) => reached.has(at)); press += 1) {
        await page.keyboard.press("Tab");
        const at = await page.evaluate(focused);
        if (!at) continue;
        reached.add(at.walk);
        if (!at.seen) faults.push(`${name}: ${all[at.walk]} shows no focus`);
        if (!at.inSight) faults.push(`${name}: ${all[at.walk]} is out of sight`);
      }
      all.forEach((it, at) => {
        if (!reached.has(at)) faults.push(`${name}: ${it} is not reached`);
      });
    }
    assert.deepEqual(faults, []);
    assert.deepEqual(page.troubles, []);
  });
}

test("J, K and Enter choose and open; the focus is not lost when the view changes", async () => {
  const page = await open(browser, daemon);
  const reach = async (row) => {
    await row.waitFor();
    for (let press = 0; press < 20 && !(await row.evaluate((it) => it === document.activeElement)); press += 1)
      await page.keyboard.press("j");
  };
  const ask = page.locator(".ask", { hasText: "failed ten times" });
  await reach(ask);
  await page.keyboard.press("Enter");
  await page.keyboard.type("Keep them.");
  assert.equal(await ask.getByRole("textbox").inputValue(), "Keep them.");
  await page.keyboard.press("Escape");

  await show(page, "/quests");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/quests\/.+/);
  await page.waitForFunction(() => document.activeElement !== document.body);

  await show(page, "/agents");
  await reach(page.locator(".git li:not(.is-point)", { hasText: "weaver-redis" }));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "weaver-redis" }).waitFor();

  // From anywhere to the oldest question.
  await page.waitForFunction(() => document.activeElement?.id === "main");
  await page.keyboard.press("a");
  await page.waitForFunction(() => document.activeElement?.closest(".ask") !== null);
  assert.deepEqual(page.troubles, []);
});

test("Escape closes a dialog, and leads from one agent to all", async () => {
  const page = await open(browser, daemon, { path: `/agents/${who.redis}` });
  await page.getByRole("heading", { level: 1, name: "weaver-redis" }).waitFor();
  await page.keyboard.press("f");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).focus();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).pathname, `/agents/${who.redis}`);
  await page.keyboard.press("Escape");
  await page.waitForURL(`${daemon.url}/agents`);
  assert.deepEqual(page.troubles, []);
});

test("what can be done with a message comes with the focus", async () => {
  const page = await open(browser, daemon, { path: `/agents/${who.redis}` });
  const message = page.locator(".msg", { hasText: "One sorted set" });
  await message.waitFor();
  assert.equal(await message.getByRole("button").count(), 0);
  await message.getByRole("link").first().focus();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Fork here");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("knows everything up to").waitFor();
  assert.deepEqual(page.troubles, []);
});

test("what buttons do here is in the palette, by the same words", async () => {
  const page = await open(browser, daemon, { path: `/agents/${who.redis}` });
  await page.getByRole("button", { name: "Rename" }).waitFor();
  const choose = async (words) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(words);
    await page.getByRole("group", { name: "Do here" }).getByRole("option", { name: words }).waitFor();
    while ((await page.locator('[role=option][aria-selected="true"]').innerText()).split("\n")[0].trim() !== words)
      await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
  };
  await choose("Rename weaver-redis");
  await page.getByRole("dialog").getByLabel("Name").fill("redis");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "redis", exact: true }).waitFor();
  await choose("Kill redis");
  await page.getByRole("dialog").getByText("Kill redis?").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });

  await show(page, `/quests/${who.quest}/alerts`);
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await choose("Pause quest");
  await page.getByRole("button", { name: "Resume" }).waitFor();
  await choose("Resume quest");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await choose("Set the budget of this quest");
  assert.equal(await page.getByRole("dialog").getByLabel("Dollars").inputValue(), "15");
  await page.keyboard.press("Escape");
  assert.deepEqual(page.troubles, []);
});

test("the letters of an agent work on the row that J and K have chosen", async () => {
  const page = await open(browser, daemon);
  const choose = async (row) => {
    await row.waitFor();
    await row.focus();
  };
  const row = page.locator("a.row[data-agent]", { hasText: "weaver-table" });
  await choose(row);
  await page.keyboard.press("f");
  await page.getByRole("dialog").getByRole("heading", { name: "Fork weaver-table" }).waitFor();
  await page.keyboard.press("Escape");
  await choose(row);
  await page.keyboard.press("w");
  await page.waitForURL(`${daemon.url}/agents/${who.table}?show=why`);
  await page.locator(".why li").first().waitFor();
  for (const [key, wanted] of [
    ["d", `/agents/${who.table}?show=changes`],
    ["l", `/log?agent=${who.table}`],
    ["s", `/agents/${who.table}`],
  ]) {
    await show(page, "/");
    await choose(row);
    await page.keyboard.press(key);
    await page.waitForURL(daemon.url + wanted);
  }
  await page.waitForFunction(() => document.activeElement?.id === "say");

  await show(page, "/");
  await choose(page.locator(".ask[data-agent]", { hasText: "slow-tests" }).getByRole("button").first());
  await page.keyboard.press("l");
  await page.waitForURL(`${daemon.url}/log?agent=${who.silent}`);
  await show(page, "/quests");
  await choose(page.locator(`a.row[data-quest="${who.quest}"]`));
  await page.keyboard.press("p");
  await page
    .locator(`a.row[data-quest="${who.quest}"]`)
    .getByText(/paused/)
    .waitFor();
  await page.keyboard.press("p");
  await daemon.until((event) => event.type === "quest_resumed" && event.quest === who.quest);
  // Without a chosen row a letter does nothing.
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("x");
  await page.keyboard.press("f");
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.deepEqual(page.troubles, []);
});

test("every button of Home is in the palette, and does there what it does on its card", async () => {
  const page = await open(browser, daemon);
  const retry = page.locator(".ask", { hasText: "alerts" }).getByRole("button", { name: "Retry step" });
  await retry.waitFor();
  const words = await page
    .locator("main button:visible")
    .evaluateAll((all) => all.map((it) => it.getAttribute("aria-label") ?? it.firstChild.textContent.trim()));
  assert.ok(words.includes("Approve plan") && words.some((it) => /^Wait .* more$/.test(it)), String(words));
  await page.keyboard.press("Control+k");
  for (const word of new Set(words)) {
    await page.getByRole("combobox").fill(word);
    await page.getByRole("option", { name: word }).first().waitFor();
  }
  // The chosen answer is given to the one that is named beside it.
  await page.getByRole("combobox").fill("Retry step");
  await page.getByRole("option", { name: /^Retry step\s*alerts/ }).click();
  await daemon.until((event) => event.type === "step_queued" && event.quest === who.quest && event.step === "alerts");
  assert.deepEqual(page.troubles, []);
});

test("the palette counts the events with some words, and opens a place in a tab of its own", async () => {
  const page = await open(browser, daemon);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("redis-cli");
  const { count } = await daemon.get("/api/events/count?words=redis-cli");
  assert.ok(count > 0);
  const option = page.getByRole("option", { name: new RegExp(`^events with “redis-cli” in them ${count}\\b`) });
  await option.waitFor();
  const [second] = await Promise.all([
    page.context().waitForEvent("page"),
    option.click({ modifiers: ["ControlOrMeta"] }),
  ]);
  await second.waitForURL(`${daemon.url}/log?words=redis-cli`);
  assert.equal(page.url(), `${daemon.url}/`);
  assert.deepEqual(page.troubles, []);
});
