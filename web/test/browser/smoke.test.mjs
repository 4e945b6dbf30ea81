// The thin path: the link opens the page, the cookie holds, what happens is seen as it happens.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, whole } from "./support/browser.mjs";
import { emptyProject, hang } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

test("without the token there is a sentence, and with the link there is the page", async () => {
  const stranger = await (await browser.newContext()).newPage();
  const refused = await stranger.goto(`${daemon.url}/`);
  assert.equal(refused.status(), 401);
  assert.match(await stranger.textContent("h1"), /needs the project’s token/);

  const page = await open(browser, daemon);
  assert.equal(page.url(), `${daemon.url}/`, "the token has left the address line");
  assert.match(await page.textContent("h1"), /Nothing has begun yet/);
  const [cookie] = await page.context().cookies();
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, "Strict");
  const policy = (await page.goto(`${daemon.url}/`)).headers()["content-security-policy"];
  assert.doesNotMatch(policy, /unsafe/);
  assert.equal((await page.goto(`${daemon.url}/log`)).status(), 200, "a view has an address of its own");
  assert.deepEqual(page.troubles, []);
});

test("a daemon that answers before the first frame is not missed, and neither is a key", async () => {
  const page = await open(browser, daemon);
  await page.context().addInitScript(() => {
    const asked = new XMLHttpRequest();
    asked.open("GET", "/api/overview", false);
    asked.send();
    const { fetch } = globalThis;
    globalThis.fetch = (path, init) =>
      path === "/api/overview"
        ? Promise.resolve({ ok: true, text: () => Promise.resolve(asked.responseText) })
        : fetch(path, init);
    // A key that is pressed as soon as the page is drawn.
    new MutationObserver((_, watch) => {
      if (!document.querySelector(".shell")) return;
      watch.disconnect();
      dispatchEvent(new KeyboardEvent("keydown", { key: "n" }));
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(`${daemon.url}/`);
  await page.getByRole("dialog").getByRole("heading", { name: "New quest" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { level: 1, name: "Nothing has begun yet" }).waitFor();
});

test("one can be tried without an account, before there is anything else", async () => {
  const fresh = await emptyProject();
  try {
    const page = await open(browser, fresh);
    await page.getByRole("button", { name: "Try one without an account" }).click();
    await page.getByRole("heading", { level: 1, name: "trial" }).waitFor();
    await page.locator(".msg", { hasText: "You said: Are you there?" }).waitFor();
    await whole(page, fresh);
  } finally {
    await fresh.stop();
  }
});

test("an agent appears while it works, and rests under Done", async () => {
  const page = await open(browser, daemon);
  const agent = await daemon.run("ida", [{ text: "I look at <b>it</b>." }, hang]);
  const row = page.locator(`[aria-labelledby="working"] [data-agent="${agent}"]`);
  await row.waitFor();
  await page.getByText("I look at <b>it</b>.").waitFor();
  await daemon.post(`/api/agents/${agent}/stop`);
  await page
    .locator("section", { has: page.getByRole("heading", { name: "Done" }) })
    .getByText("ida")
    .waitFor();
  await row.waitFor({ state: "detached" });
  await whole(page, daemon);
});
