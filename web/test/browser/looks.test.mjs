// Every view in both themes and at a hand's width: nothing that axe calls serious, nothing that scrolls sideways. Makes the screenshots.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { emptyProject, seats } from "./support/scene.mjs";
import { browser, daemon, onScene, who } from "./support/stage.mjs";

// Given to the page by the debugger: its policy allows no script of others.
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SHOTS = process.env.HATCHERY_SHOTS;

let views;
onScene(async () => {
  views = {
    home: "/",
    quests: "/quests",
    quest: `/quests/${who.quest}/admin-page`,
    agents: `/agents?a=${who.table}&b=${who.redis}`,
    agent: `/agents/${who.table}`,
    seats: "/seats",
    build: "/build",
    mail: "/mail",
    log: "/log",
    cost: "/cost",
    keys: "/keys",
  };
  if (SHOTS) mkdirSync(SHOTS, { recursive: true });
});

async function show(page, path) {
  await page.goto(daemon.url + path);
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
  if (path.includes("/quests/")) await page.locator(".graph:not(.is-list)").waitFor();
}

/** The pictures of the README and of docs/page. */
const PICTURES = new Set([
  ...["home", "quest", "agents", "agent", "seats", "build", "mail", "log", "cost", "palette"].map(
    (it) => `${it}-light`,
  ),
  "home-dark",
  "home-380",
  "quest-380",
  "agent-380",
]);

/** Who was asked once is not asked again: a picture of Home shows what is there each day. */
async function forPictures(page) {
  if (SHOTS) await page.evaluate(() => localStorage.setItem("asked-to-notify", "no"));
}

async function shoot(page, name) {
  if (!SHOTS || !PICTURES.has(name)) return;
  // A conversation is opened at its end; its picture begins with its title.
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${SHOTS}/${name}.jpg`, type: "jpeg", quality: 78 });
}

for (const theme of ["light", "dark"]) {
  test(`no view has a serious fault of accessibility, ${theme}`, async () => {
    const page = await open(browser, daemon, { theme });
    await forPictures(page);
    const faults = [];
    for (const [name, path] of Object.entries(views)) {
      await show(page, path);
      if ((theme === "light" && name !== "seats") || name === "home") await shoot(page, `${name}-${theme}`);
      faults.push(...(await serious(page, name)));
    }
    // What opens over a view, too.
    await page.goto(`${daemon.url}/`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("weaver");
    if (theme === "light") await shoot(page, "palette-light");
    faults.push(...(await serious(page, "palette")));
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.getByRole("dialog").waitFor();
    faults.push(...(await serious(page, "new quest")));
    assert.deepEqual(faults, []);
    assert.deepEqual(page.troubles, []);
  });
}

test("seats with agents in them have no serious fault of accessibility", async () => {
  const other = await emptyProject();
  try {
    await seats(other);
    for (const theme of ["light", "dark"]) {
      const page = await open(browser, other, { theme, path: "/seats" });
      await page.getByText("Wren").first().waitFor();
      if (theme === "light") await shoot(page, "seats-light");
      assert.deepEqual(await serious(page, `seats, ${theme}`), []);
      assert.deepEqual(page.troubles, []);
      await page.context().close();
    }
  } finally {
    await other.stop();
  }
});

async function serious(page, name) {
  await page.evaluate(() =>
    Promise.all(
      document
        .getAnimations()
        .map((it) => (it.effect?.getTiming().iterations === Infinity ? null : it.finished.catch(() => null))),
    ),
  );
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((it) => it.impact === "serious" || it.impact === "critical")
    .map(
      (it) =>
        `${name}: ${it.id} (${it.nodes.length}): ${it.nodes[0]?.target.join(" ")} ${it.nodes[0]?.failureSummary?.split("\n")[1] ?? ""}`,
    );
}

test("at 380 px nothing scrolls sideways, and targets are large enough", async () => {
  const page = await open(browser, daemon, { width: 380, height: 820 });
  await forPictures(page);
  const faults = [];
  for (const [name, path] of Object.entries(views)) {
    await page.goto(daemon.url + path);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await page.waitForFunction(() => !document.querySelector(".skeleton"));
    const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= seen, `${name} is ${wide} px wide`);
    if (["home", "agent", "quest", "log"].includes(name)) await shoot(page, `${name}-380`);
    const small = await page
      .locator("main :is(button, a.btn, a.row, input, textarea, select), .topbar button, .tabs a")
      .evaluateAll((all) =>
        all
          .filter((it) => it.checkVisibility() && it.getBoundingClientRect().height < 44)
          .map(
            (it) =>
              `${it.className} ${(it.getAttribute("aria-label") ?? it.textContent).trim().slice(0, 30)}: ${it.getBoundingClientRect().height}`,
          ),
      );
    faults.push(...small.map((it) => `${name}: ${it}`));
  }
  assert.deepEqual(faults, []);
  assert.deepEqual(page.troubles, []);
});

test("at 320 px, which is a zoom of 400 %, and at 4K nothing scrolls sideways, and lines stay readable", async () => {
  for (const [width, height] of [
    [320, 640],
    [3840, 2160],
  ]) {
    const page = await open(browser, daemon, { width, height });
    for (const [name, path] of Object.entries(views)) {
      await page.goto(daemon.url + path);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      await page.waitForFunction(() => !document.querySelector(".skeleton"));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name} is ${wide} px wide on a screen of ${width} px`);
      const widest = await page
        .locator(".ask, .row, .msg, .sub")
        .evaluateAll((all) => Math.max(0, ...all.map((it) => it.getBoundingClientRect().width)));
      assert.ok(widest <= 1920, `${name} has a line of ${widest} px`);
    }
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  }
});

test("with reduced motion all stand still, and states still say it", async () => {
  const page = await open(browser, daemon);
  await page.locator("a.row .g-working").first().waitFor();
  const moving = await page.evaluate(
    () =>
      document
        .getAnimations()
        .filter((it) => it.playState === "running" && it.effect?.getTiming().iterations === Infinity).length,
  );
  assert.equal(moving, 0);
  assert.ok((await page.getByRole("img", { name: "working" }).count()) > 0);
});
