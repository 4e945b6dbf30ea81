// One screenshot after the other: `node scripts/one.mjs LINK FOLDER NAME=PATH …`, light and 1440 px wide.
import { mkdirSync } from "node:fs";
import { launch } from "../test/browser/support/browser.mjs";

const [link, folder, ...views] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
const [width, theme] = [Number(process.env.WIDTH ?? 1440), process.env.THEME ?? "light"];
const context = await browser.newContext({
  viewport: { width, height: width < 800 ? 844 : 900 },
  colorScheme: theme,
  reducedMotion: "reduce",
});
const page = await context.newPage();
page.on("console", (message) => message.type() === "error" && console.log("console:", message.text()));
page.on("pageerror", (error) => console.log("error:", error));
await page.goto(link);
for (const view of views) {
  const at = view.indexOf("=");
  const [name, path] = [view.slice(0, at), view.slice(at + 1)];
  await page.goto(new URL(link).origin + path);
  await page.waitForFunction(() => globalThis.hatchery?.state);
  await page.waitForTimeout(900);
  await page.screenshot({ path: `${folder}/${name}.png` });
}
await browser.close();
