// The daemon leaves and comes back, under every view and with many tabs: the page says so, stays readable, and misses nothing.
import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { open, whole } from "./support/browser.mjs";
import { emptyProject, hang, smallQuest } from "./support/scene.mjs";
import { browser, daemon, onScene, who } from "./support/stage.mjs";

onScene();

test("the daemon is killed under each view: what was there stays, and each view goes on", async () => {
  const views = {
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
  };
  const pages = {};
  for (const [name, path] of Object.entries(views)) {
    const page = await open(browser, daemon, { path });
    await page.waitForFunction(() => document.querySelector("h1") && !document.querySelector(".skeleton"));
    pages[name] = page;
  }
  await daemon.kill();
  for (const [name, page] of Object.entries(pages)) {
    await page.getByText("The daemon is away.").waitFor();
    assert.equal(await page.locator("main h1").count(), 1, `${name} stays readable`);
    assert.equal(await page.locator(".skeleton").count(), 0, `${name} stays readable`);
  }
  await daemon.up();
  for (const page of Object.values(pages)) {
    await page.getByText("The daemon is away.", { exact: true }).waitFor({ state: "detached" });
    await whole(page, daemon);
    await page.context().close();
  }
});

const VIEWS = ["quests", "agents", "seats", "build", "mail", "log", "cost", "keys"];

test("a view that was never opened can be opened while the daemon is away, and is filled when it is back", async () => {
  const page = await open(browser, daemon);
  await page.waitForFunction((names) => {
    const scripts = performance.getEntriesByType("resource").map((it) => new URL(it.name).pathname);
    return [...names, "dagre"].every((name) => scripts.some((it) => it.startsWith(`/assets/${name}`)));
  }, VIEWS);
  await daemon.kill();
  await page.getByText("The daemon is away.").waitFor();
  // Nor does a folder of the build answer any more.
  await page.route("**/assets/**", (route) => route.abort());
  const open1 = async (path) => {
    await page.evaluate((to) => {
      const link = document.createElement("a");
      link.href = to;
      document.getElementById("main").append(link);
      link.click();
      link.remove();
    }, path);
    await page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector(".skeleton"));
    return page.locator("main h1").innerText();
  };
  assert.match(await open1("/quests"), /quests are open/);
  assert.match(await open1("/agents"), /on their own/);
  assert.equal(await open1("/seats"), "The seats cannot be read");
  assert.equal(await open1("/build"), "The build cannot be read");
  assert.equal(await open1("/mail"), "The mail cannot be read");
  assert.equal(await open1("/keys"), "All keys");
  assert.equal(await open1("/cost"), "The cost cannot be read");
  assert.match(await open1("/log"), /events, each once and in order/);
  await page.locator(".log-row.is-loading").first().waitFor();
  await daemon.up();
  await page.locator(".log-row[data-event]").first().waitFor();
  await page.locator(".log-row.is-loading").first().waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.getByRole("heading", { level: 1, name: /today/ }).waitFor();
  await whole(page, daemon);
  await page.context().close();
});

test("a view that could not be loaded says so, and comes when the page is loaded anew", async () => {
  const page = await open(browser, daemon, { path: "/keys" });
  let loads = 0;
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loads += 1;
  });
  await page.route("**/assets/mail*", (route) => route.abort());
  await page.goto(`${daemon.url}/mail`);
  await page.getByRole("heading", { level: 1, name: "This view could not be loaded" }).waitFor();
  await page.getByText("The daemon is there").waitFor();
  // It has tried once by itself, and does not go on for ever.
  await page.waitForFunction(() => performance.getEntriesByType("navigation")[0].type === "reload");
  await page.getByRole("button", { name: "Load the page anew" }).waitFor();
  assert.equal(loads, 2);
  await page.unroute("**/assets/mail*");
  await page.getByRole("button", { name: "Load the page anew" }).click();
  await page.getByRole("heading", { level: 1, name: /mail for you/ }).waitFor();
  await page.context().close();
});

test("an answer that is given while the daemon is away is sent once when it is back", async () => {
  const page = await open(browser, daemon);
  const quest = await smallQuest(daemon, "A house", { parts: "asks" });
  const ask = page.locator(".ask", { hasText: "Shall the shelves be of oak or of pine?" });
  await ask.waitFor({ timeout: 40_000 });
  await daemon.kill();
  await page.getByText("The daemon is away.").waitFor();
  if ((await ask.getByRole("textbox").count()) === 0) await ask.getByRole("button", { name: "Answer" }).click();
  await ask.getByRole("textbox").fill("Pine.");
  await ask.getByRole("textbox").press("Control+Enter");
  await ask.getByText("will be sent when it is back").waitFor();
  await daemon.up();
  await daemon.until((event) => event.type === "question_answered" && event.answer === "Pine.");
  await ask.waitFor({ state: "detached" });
  await daemon.post(`/api/quests/${quest}/abandon`);
  const { events } = await daemon.get("/api/events.json?type=question_answered&words=Pine.");
  assert.equal(events.length, 1);
  await page.context().close();
});

test("ten tabs of one browser share a stream; another tab takes it over, and nothing is missing or doubled", async () => {
  const context = (await open(browser, daemon)).context();
  const pages = context.pages();
  while (pages.length < 10) pages.push(await open(browser, daemon, { context }));
  const sees = async (agent) => {
    for (const page of pages) await page.locator(`[data-agent="${agent}"]`).waitFor();
  };
  await sees(await daemon.run("ida", [{ text: "I begin." }, hang]));
  await pages.shift().close();
  await sees(await daemon.run("ben", [{ text: "I begin." }, hang]));
  await daemon.kill();
  for (const page of pages) await page.getByText("The daemon is away.").waitFor();
  await daemon.up();
  await sees(await daemon.run("flo", [{ text: "I begin." }, hang]));
  for (const page of pages) await whole(page, daemon);
  await context.close();
});

test("trouble of the store is told in every tab that is open", async () => {
  // A daemon whose data are gone records nothing more, so it is one of its own.
  const other = await emptyProject();
  try {
    const context = await browser.newContext();
    const tabs = [await open(browser, other, { context }), await open(browser, other, { context })];
    renameSync(join(other.root, ".hatchery"), join(other.folder, "taken-away"));
    for (const tab of tabs) await tab.getByText(/^The store is in trouble: /).waitFor({ timeout: 20_000 });
  } finally {
    await other.stop();
  }
});
