// Screenshots of views: `node scripts/shots.mjs LINK FOLDER [VIEW …]`, each view in light, dark and at 390 px.
import { mkdirSync } from "node:fs";
import { launch, open } from "../test/browser/support/browser.mjs";

const [link, folder, ...views] = process.argv.slice(2);
const url = new URL(link);
const daemon = { link, url: url.origin };
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const view of views.length ? views : ["/"]) {
  const name = view === "/" ? "home" : view.slice(1).replaceAll(/[/?=,#]/g, "-");
  for (const [suffix, options] of [
    ["light", {}],
    ["dark", { theme: "dark" }],
    ["390", { width: 390, height: 844 }],
  ]) {
    const page = await open(browser, daemon, { path: view, ...options });
    await page.waitForTimeout(700);
    await page.screenshot({ path: `${folder}/${name}-${suffix}.png` });
    if (page.troubles.length) console.log(view, suffix, page.troubles);
    await page.context().close();
  }
}
await browser.close();
