// Notifications: only when allowed, only for what needs the human, only while nobody looks, and gone when it is answered elsewhere.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, titled } from "./support/browser.mjs";
import { smallQuest } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

/** A page that nobody looks at, with notifications that can be counted. */
async function hiddenPage(permission) {
  const page = await open(browser, daemon);
  await page.context().addInitScript((allowed) => {
    globalThis.notices = [];
    globalThis.Notification = class {
      static permission = allowed;
      static requestPermission = async () => allowed;
      constructor(title, { body }) {
        Object.assign(this, { title, body, open: true });
        globalThis.notices.push(this);
      }
      close() {
        this.open = false;
      }
    };
    Object.defineProperty(document, "hidden", { get: () => !globalThis.looking });
  }, permission);
  await page.reload();
  await page.waitForFunction(() => globalThis.hatchery?.connection.live);
  return page;
}

const notices = (page) =>
  page.evaluate(() => globalThis.notices.map(({ title, open }) => `${title}${open ? "" : ", closed"}`));

test("a question and mail are announced once, and leave when they are settled; without leave nothing is", async () => {
  const page = await hiddenPage("granted");
  const refused = await hiddenPage("denied");
  const agent = (await daemon.post("/api/agents", { name: "ida" })).id;
  const done = await daemon.run("tom", [{ text: "Done." }]);
  await daemon.until((event) => event.type === "run_ended" && event.agent === done);
  await daemon.post("/api/mail", { from: agent, to: "human", body: "Have a look." });
  await page.waitForFunction(() => globalThis.notices.length === 1);
  assert.deepEqual(await notices(page), ["ida wrote to you"], "an end of work is not announced");
  const [mail] = (await daemon.get("/api/mail/human")).mail;
  await daemon.post("/api/mail/human/read", { mail: mail.id });
  await page.waitForFunction(() => !globalThis.notices[0].open);

  await smallQuest(daemon, "A house", { parts: "asks" });
  await page.waitForFunction(() => globalThis.notices.length === 2, null, { timeout: 40_000 });
  assert.match((await notices(page))[1], /^codeweaver-errors.* needs you$/);
  await titled(page, "1 needs you · parcel-api");
  const [question] = (await daemon.get("/api/questions")).questions;
  // A click leads to the field of the answer.
  await page.evaluate(() => {
    globalThis.looking = true;
    globalThis.notices[1].onclick();
  });
  await page.waitForFunction((id) => document.activeElement?.id === `ask-${id}-field`, question.id);
  await daemon.post(`/api/questions/${question.id}/answer`, { answer: "Oak." });
  await titled(page, "parcel-api · Home");
  await page.waitForFunction(() => globalThis.notices.every((it) => !it.open));
  assert.deepEqual(await notices(refused), []);
  assert.deepEqual(page.troubles, []);
});
