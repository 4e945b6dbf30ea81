// How fast the page is: weight, first useful paint on a large project, event to pixel, memory. Prints each figure beside its goal.
// `npm run bench` with HATCHERY_BIN set to a release build. Smaller: HATCHERY_BENCH_SCALE=0.1. HATCHERY_DIST names a build of the page that
// is measured instead of the one in the program.
import { gzipSync } from "node:zlib";
import { launch, open } from "../browser/support/browser.mjs";
import { emptyProject } from "../browser/support/scene.mjs";
import { front } from "./front.mjs";

const DIST = process.env.HATCHERY_DIST;
// The browser's requests are not to go through the debugger here.
delete process.env.HATCHERY_DIST;
const SCALE = Number(process.env.HATCHERY_BENCH_SCALE ?? "1");
const AGENTS = Math.round(10_000 * SCALE);
const EVENTS = Math.round(1_000_000 * SCALE);
const GROWTH = Math.round(100_000 * SCALE);
const ROUNDS = 7;
const RATE = 200;
const SECONDS = 10;

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const at = (numbers, share) => numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) * share)];
const round = (n) => Math.round(n * 100) / 100;
let missed = 0;
function say(what, figure, goal, met) {
  if (!met) missed += 1;
  console.log(`${met ? "ok  " : "MISS"}  ${what}: ${figure} (goal ${goal})`);
}

/** Histories of agents without processes: the quickest way to a long log. */
async function fill(daemon, agents, events) {
  const lines = [];
  const flush = async () => {
    const response = await fetch(`${daemon.url}/api/history/import`, {
      method: "POST",
      headers: { authorization: `Bearer ${daemon.token}`, "content-type": "application/x-ndjson" },
      body: lines.splice(0).join("\n"),
    });
    if (!response.ok) throw new Error(await response.text());
  };
  const each = Math.max(1, Math.floor(events / agents));
  for (let first = 0; first < agents; first += 1000) {
    for (let agent = first; agent < Math.min(agents, first + 1000); agent += 1) {
      lines.push(JSON.stringify({ agent: { id: agent, parent: null, fork_message_id: null } }));
      for (let n = 1; n < each; n += 1)
        lines.push(
          JSON.stringify({ message: { id: agent * each + n, agent, kind: "assistant", content: `line ${n}` } }),
        );
    }
    await flush();
  }
}

/** From the request until the head line stands in the page. */
async function paint(browser, daemon) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await open(browser, daemon, { context });
  const times = [];
  for (let n = 0; n < ROUNDS; n += 1) {
    await page.goto(`${daemon.url}/`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    times.push(
      await page.evaluate(
        () =>
          new Promise((done) => {
            const look = () =>
              document.querySelector("h1") && !document.querySelector(".skeleton")
                ? requestAnimationFrame(() => done(performance.now()))
                : requestAnimationFrame(look);
            look();
          }),
      ),
    );
  }
  await context.close();
  return median(times);
}

/** Two connections, so that appends do not wait for one another. */
async function append(daemon, agent, count, text) {
  const path = `/api/agents/${agent}/messages`;
  let next = 0;
  const lane = async () => {
    while (next < count) {
      next += 1;
      await daemon.post(path, { kind: "assistant", content: `${text} ${next}` });
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}

const browser = await launch();
const small = await emptyProject();
const large = await emptyProject();
const [smallPage, largePage] = DIST ? [await front(small, DIST), await front(large, DIST)] : [small, large];
try {
  // 1. The weight of the script before the first paint.
  {
    const context = await browser.newContext();
    const page = await context.newPage();
    const bodies = new Map();
    page.on("response", (response) => {
      if (/\.js$/.test(new URL(response.url()).pathname))
        bodies.set(
          response.url(),
          response.body().catch(() => ""),
        );
    });
    await page.goto(smallPage.link);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    // What comes while nothing else goes on is not waited for.
    const before = await page.evaluate(() => {
      const painted = performance.getEntriesByName("first-contentful-paint")[0].startTime;
      const scripts = performance.getEntriesByType("resource").filter((it) => it.name.endsWith(".js"));
      return scripts.filter((it) => it.startTime < painted).map((it) => it.name);
    });
    const needed = await Promise.all(before.map((name) => bodies.get(name)));
    const bytes = needed.reduce((sum, body) => sum + gzipSync(body).length, 0);
    say("script before the first paint, compressed", `${round(bytes / 1024)} KB`, "≤ 120 KB", bytes <= 120 * 1024);
    await context.close();
  }
  // 2. First useful paint, an empty project beside a large one, in turns.
  await fill(large, AGENTS, EVENTS);
  const [empty, full] = [await paint(browser, smallPage), await paint(browser, largePage)];
  const { head } = await large.get("/api/status");
  say(
    `first useful paint with ${AGENTS} agents and ${head} events, of an empty project's`,
    `${round(full)} ms / ${round(empty)} ms = ${round(full / empty)}`,
    "≤ 1.5",
    full / empty <= 1.5,
  );
  // 3. From the arrival of an event to the frame that shows it, while 200 a second arrive.
  {
    const agent = (await small.post("/api/agents", { name: "streamer" })).id;
    const page = await open(browser, smallPage, { path: `/agents/${agent}` });
    const session = await page.context().newCDPSession(page);
    // By the clock of the thread: what other programs do on the machine is not counted.
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const busy = async () =>
      (await session.send("Performance.getMetrics")).metrics.find((it) => it.name === "TaskDuration").value;
    await page.evaluate(() => {
      globalThis.delays = [];
      const waiting = new Map();
      globalThis.hatchery.tap((event) => {
        if (event.type === "message_added") waiting.set(event.id, performance.now());
      });
      // What stands in the document when a frame begins is in that frame.
      const look = (now) => {
        for (const [id, began] of waiting) {
          if (!document.getElementById(`e${id}`)) continue;
          waiting.delete(id);
          globalThis.delays.push(now - began);
        }
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    const [began, busyBefore] = [performance.now(), await busy()];
    const posts = [];
    for (let n = 0; n < RATE * SECONDS; n += 1) {
      const due = began + (n * 1000) / RATE;
      if (due > performance.now()) await new Promise((done) => setTimeout(done, due - performance.now()));
      posts.push(small.post(`/api/agents/${agent}/messages`, { kind: "assistant", content: `word-${n}-end` }));
    }
    // The page shows the last messages only: the last one is known when all are written.
    await Promise.all(posts);
    const { head: last } = await small.get("/api/status");
    await page.waitForFunction((upto) => globalThis.hatchery.feed.head >= upto, last);
    await page.waitForFunction((id) => document.getElementById(`e${id}`), last);
    const share = ((await busy()) - busyBefore) / ((performance.now() - began) / 1000);
    const delays = await page.evaluate(() => globalThis.delays);
    // An event that later ones pushed out before a frame could show it was never seen.
    while (delays.length < RATE * SECONDS) delays.push(Number.POSITIVE_INFINITY);
    const p95 = at(delays, 0.95);
    say(
      `event to pixel at ${RATE}/s, 95th percentile of ${delays.length}`,
      `${round(p95)} ms`,
      "≤ 33.4 ms, two frames",
      p95 <= 33.4,
    );
    say(`main thread busy at ${RATE}/s`, `${round(100 * share)} %`, "≤ 30 %", share <= 0.3);
    await page.context().close();
  }
  // 4. The heap after garbage collection, while events arrive in the open log.
  {
    const agent = (await small.post("/api/agents", { name: "grower" })).id;
    const page = await open(browser, smallPage, { path: "/log" });
    const heaps = [];
    for (let n = 0; n < 20; n += 1) {
      await append(small, agent, GROWTH / 20, "grow");
      const { head: last } = await small.get("/api/status");
      await page.waitForFunction((upto) => globalThis.hatchery.feed.head >= upto, last, { timeout: 60_000 });
      heaps.push(
        await page.evaluate(() => {
          globalThis.gc();
          return performance.memory.usedJSHeapSize;
        }),
      );
    }
    const half = heaps.slice(10);
    const slope = (half.at(-1) - half[0]) / half[0];
    say(
      `heap after ${GROWTH} events, growth over the second half`,
      `${round(half[0] / 2 ** 20)} MB to ${round(half.at(-1) / 2 ** 20)} MB = ${round(100 * slope)} %`,
      "≤ 5 %",
      slope <= 0.05,
    );
  }
} finally {
  await browser.close();
  if (DIST) for (const it of [smallPage, largePage]) it.close();
  await small.stop();
  await large.stop();
}
process.exitCode = missed > 0 ? 1 : 0;
