// How fast the page is: `HATCHERY_BIN=… node scripts/measure.mjs`. Figures depend on the machine, so this is no test.
import { launch, open } from "../test/browser/support/browser.mjs";
import { emptyProject } from "../test/browser/support/scene.mjs";

const AGENTS = Number(process.env.AGENTS ?? 10_000);
const EVENTS = Number(process.env.EVENTS ?? 1_000_000);
const FLOOD = Number(process.env.FLOOD ?? 2_000);

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** From the navigation to the heading with its sentence, the median of some. */
async function firstPaint(browser, daemon) {
  const context = await browser.newContext();
  await context.addInitScript(() => {
    new MutationObserver(() => {
      if (globalThis.shownAt === undefined && document.querySelector("main h1")) globalThis.shownAt = performance.now();
    }).observe(document, { childList: true, subtree: true });
  });
  const page = await context.newPage();
  await page.goto(daemon.link);
  const times = [];
  for (let at = 0; at < 9; at += 1) {
    await page.goto(`${daemon.url}/`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    times.push(await page.evaluate(() => globalThis.shownAt));
  }
  await context.close();
  return median(times);
}

async function importForest(daemon, agents, messages) {
  const lines = [];
  for (let at = 0; at < agents; at += 1)
    lines.push(JSON.stringify({ agent: { id: at + 1, parent: null, fork_message_id: null } }));
  for (let at = 0; at < messages; at += 1)
    lines.push(
      JSON.stringify({
        message: { id: `m${at}`, agent: (at % agents) + 1, kind: "assistant", content: `message ${at}` },
      }),
    );
  const response = await fetch(`${daemon.url}/api/history/import`, {
    method: "POST",
    headers: { authorization: `Bearer ${daemon.token}`, "content-type": "application/x-ndjson" },
    body: lines.join("\n"),
  });
  if (!response.ok) throw new Error(await response.text());
}

const browser = await launch();
const small = await emptyProject();
const empty = await firstPaint(browser, small);
console.log(`first useful paint, empty project: ${empty.toFixed(0)} ms`);

// How busy the page is while an agent floods it, and how much it holds afterwards.
const page = await open(browser, small, { motion: "no-preference" });
const cdp = await page.context().newCDPSession(page);
await cdp.send("Performance.enable");
const metrics = async () =>
  Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));
const before = await metrics();
const agent = await small.run("flood", [{ flood: { lines: FLOOD, bytes: 200 } }]);
await small.until((event) => event.type === "run_ended" && event.agent === agent, 0, 120_000);
const { head } = await small.get("/api/status");
await page.waitForFunction((upto) => globalThis.hatchery.feed.head >= upto, head);
const after = await metrics();
const seconds = after.Timestamp - before.Timestamp;
const taken = (await page.evaluate(() => globalThis.hatchery.feed.counters)).taken;
console.log(
  `flood: ${taken} events in ${seconds.toFixed(1)} s, main thread busy ${(((after.TaskDuration - before.TaskDuration) / seconds) * 100).toFixed(0)} %`,
);
await small.stop();

const large = await emptyProject();
await importForest(large, AGENTS, EVENTS - AGENTS);
const full = await firstPaint(browser, large);
console.log(
  `first useful paint, ${AGENTS} agents and ${EVENTS} events: ${full.toFixed(0)} ms, ${(full / empty).toFixed(2)} of the empty one's`,
);
await large.stop();
await browser.close();
