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

test("needs that come soon after each other are one notice, and a failed step waits until its quest can do nothing else", async () => {
  const page = await hiddenPage("granted");
  const [kim, lea] = await Promise.all(
    ["kim", "lea"].map(async (name) => (await daemon.post("/api/agents", { name })).id),
  );
  await daemon.post("/api/mail", { from: kim, to: "human", body: "First." });
  await page.waitForFunction(() => globalThis.notices.length === 1);
  await daemon.post("/api/mail", { from: lea, to: "human", body: "Second." });
  await page.waitForFunction(() => globalThis.notices.length === 2);
  assert.deepEqual(await notices(page), ["kim wrote to you, closed", "2 need you"]);
  for (const { id } of (await daemon.get("/api/mail/human")).mail)
    await daemon.post("/api/mail/human/read", { mail: id });
  await page.waitForFunction(() => !globalThis.notices[1].open);

  // One step fails while the other goes on; nothing is announced until that one has ended, too.
  const quest = await smallQuest(daemon, "Half of it fails", { parts: "halves" });
  const hand = await daemon.until(
    (event) => event.type === "step_begun" && event.quest === quest && event.step === "goes-on",
  );
  const failed = await daemon.until((event) => event.type === "step_failed" && event.quest === quest);
  await titled(page, "1 needs you · parcel-api");
  // What comes later is announced, and tells of nothing else.
  await daemon.post("/api/mail", { from: kim, to: "human", body: "Third." });
  await page.waitForFunction(() => globalThis.notices.length === 3);
  assert.equal((await notices(page))[2], "kim wrote to you");
  await daemon.post(`/api/agents/${hand.agent}/say`, { text: "Go on." }).catch(() => {});
  await daemon.post(`/api/agents/${hand.agent}/stop`).catch(() => {});
  await page.waitForFunction(() => globalThis.notices.length > 3, null, { timeout: 30_000 });
  assert.ok(
    (await notices(page)).slice(3).some((it) => it.includes("failed") || it.includes("need")),
    failed.step,
  );
  await daemon.post(`/api/quests/${quest}/abandon`);
  assert.deepEqual(page.troubles, []);
});
