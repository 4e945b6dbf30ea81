// Debian's Chromium, driven by playwright-core.
import { existsSync } from "node:fs";
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
  return chromium.launch({ executablePath, headless: true, args: QUIET });
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
  const page = await context.newPage();
  page.troubles = [];
  page.on("console", (message) => {
    // That the daemon is away is said by the browser for each try.
    if (
      message.type() === "error" &&
      !/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/.test(message.text())
    )
      page.troubles.push(message.text());
  });
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  await page.goto(daemon.link);
  if (path !== "/") await page.goto(daemon.url + path);
  await page.waitForFunction(() => globalThis.hatchery?.state && globalThis.hatchery.connection.live);
  return page;
}

/** What the page counted: nothing may be missing and nothing doubled. */
export const counters = (page) =>
  page.evaluate(() => ({ ...globalThis.hatchery.feed.counters, head: globalThis.hatchery.feed.head }));
