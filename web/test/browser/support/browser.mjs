// Debian's Chromium, driven by playwright-core.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const WHERE = [
  process.env.HATCHERY_CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];
const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--js-flags=--expose-gc",
];

export async function launch() {
  const executablePath = WHERE.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("there is no Chromium here");
  // On a machine that is very busy it may die while it starts.
  for (let tries = 1; ; tries += 1) {
    try {
      return await chromium.launch({ executablePath, headless: true, args: QUIET });
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
}

/** Opens the page by the printed link. Whatever the page complains about fails the test that asks for `troubles`. */
export async function open(
  browser,
  daemon,
  { path = "/", width = 1440, height = 900, theme = "light", motion = "reduce", scale = 1, context: given } = {},
) {
  const context =
    given ??
    (await browser.newContext({
      viewport: { width, height },
      colorScheme: theme,
      reducedMotion: motion,
      deviceScaleFactor: scale,
      serviceWorkers: "block",
    }));
  await fromFolder(context);
  const page = await context.newPage();
  page.troubles = [];
  page.on("console", (message) => {
    // That the daemon is away is said by the browser for each try.
    if (
      message.type() === "error" &&
      !/ERR_(CONNECTION_|INCOMPLETE_CHUNKED|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)/.test(message.text())
    )
      page.troubles.push(message.text());
  });
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  await page.goto(daemon.link);
  if (process.env.HATCHERY_DIST) page.troubles = [];
  // What a redirect leads to is not looked for in a folder.
  if (path !== "/" || process.env.HATCHERY_DIST) await page.goto(daemon.url + path);
  await page.waitForFunction(() => globalThis.hatchery?.state && globalThis.hatchery.connection.live);
  return page;
}

/** What the page counted: nothing may be missing and nothing doubled. */
export const counters = (page) =>
  page.evaluate(() => ({ ...globalThis.hatchery.feed.counters, head: globalThis.hatchery.feed.head }));

/** Nothing is missing, nothing is doubled, and the page is where the log is. */
export async function whole(page, daemon) {
  const { head } = await daemon.get("/api/status");
  await page.waitForFunction((upto) => globalThis.hatchery.feed.head >= upto, head);
  const { doubled, filled } = await counters(page);
  assert.deepEqual({ doubled, filled }, { doubled: 0, filled: 0 });
  assert.deepEqual(page.troubles, []);
}

/** The title follows in a moment what is drawn. */
export const titled = (page, title) => page.waitForFunction((wanted) => document.title === wanted, title);

const TYPES = { js: "text/javascript", css: "text/css", svg: "image/svg+xml", html: "text/html" };

const routed = new WeakSet();

/** For those who develop the page: HATCHERY_DIST names a build of it that is served instead of what the program has embedded. */
async function fromFolder(context) {
  const folder = process.env.HATCHERY_DIST;
  if (!folder || routed.has(context)) return;
  routed.add(context);
  await context.route(
    (url) => !url.pathname.startsWith("/api/") && !url.searchParams.has("token"),
    (route) => {
      const { pathname } = new URL(route.request().url());
      // A page that came by a redirect is the embedded one, and has scripts of its own.
      if (pathname.startsWith("/assets/") && !existsSync(join(folder, pathname))) return route.continue();
      const file =
        [join(folder, pathname), join(folder, "index.html")].find((path) => pathname !== "/" && existsSync(path)) ??
        join(folder, "index.html");
      const policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'";
      return route.fulfill({
        body: readFileSync(file),
        contentType: TYPES[file.split(".").pop()] ?? "text/plain",
        headers: { "content-security-policy": policy },
      });
    },
  );
}
