// The daemon leaves and comes back, under every view and with many tabs: the page says so, stays readable, and misses nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open, whole } from "./support/browser.mjs";
import { hang, scene, smallQuest } from "./support/scene.mjs";

let daemon;
let who;
let browser;
before(async () => {
  ({ daemon, who } = await scene());
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

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
