// A quest is begun on the page: its ward is shown first, and tried before an agent starts.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { open, whole } from "./support/browser.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

async function write(page, request, ward) {
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("What do you want to have?").fill(request);
  if (ward !== undefined) await dialog.getByLabel("Ward").fill(ward);
  return dialog;
}

const begun = (quest) => daemon.until((event) => event.type === "quest_resumed" && event.quest === quest);
const questOf = (page) => new URL(page.url()).pathname.split("/")[2];
const agents = async () => (await daemon.get("/api/agents")).agents.length;

test("the guessed ward is shown, and what agents would not see is told", async () => {
  const page = await open(browser, daemon);
  let dialog = await write(page, "A bridge");
  await dialog.getByText("No file of the project says how it is checked.").waitFor();
  await page.keyboard.press("Escape");
  writeFileSync(join(daemon.root, "Makefile"), "test:\n\ttrue\n");
  dialog = await write(page, "A bridge");
  await dialog.getByText("Guessed from Makefile. It is tried once before the first agent starts.").waitFor();
  assert.equal(await dialog.getByLabel("Ward").inputValue(), "make test");
  await dialog.getByText("1 file of your checkout is changed and not committed (Makefile).").waitFor();
  await dialog.getByLabel("Ward").fill("");
  await dialog.getByText("Without a ward nobody checks the work but the agents.").waitFor();
  await page.keyboard.press("Escape");
  assert.deepEqual(page.troubles, []);
});

test("a red ward is told before any agent starts, and the user decides", async () => {
  const page = await open(browser, daemon);
  const before = await agents();
  const dialog = await write(page, "A red bridge", "echo 'src/a.rs:1:1 error: no bridge' >&2; exit 1");
  await dialog.getByRole("button", { name: "Begin quest" }).click();
  await page.getByRole("heading", { name: "The ward is red before any work" }).waitFor({ timeout: 40_000 });
  await page.locator(".not-begun pre", { hasText: "src/a.rs:1:1 error: no bridge" }).waitFor();
  assert.equal(await agents(), before);
  // It is known after a reload, too.
  await page.reload();
  await page.getByRole("heading", { name: "The ward is red before any work" }).waitFor();
  await page.getByRole("button", { name: "Begin anyway" }).click();
  await begun(questOf(page));
  await page.getByRole("heading", { name: "The ward is red before any work" }).waitFor({ state: "detached" });
  await whole(page, daemon);
});

test("a broken ward is changed and tried again, and the quest begins by itself", async () => {
  const page = await open(browser, daemon);
  const dialog = await write(page, "A broken bridge", "no-such-program --all");
  await dialog.getByRole("button", { name: "Begin quest" }).click();
  await page.getByRole("heading", { name: /^The ward is broken/ }).waitFor({ timeout: 40_000 });
  await page.getByRole("button", { name: "Change the ward" }).click();
  await page.getByRole("dialog").getByLabel("Command").fill("true");
  await page.getByRole("dialog").getByRole("button", { name: "Set ward" }).click();
  await page.getByRole("heading", { name: "This quest has not begun" }).waitFor();
  await page.getByRole("button", { name: "Try the ward and begin" }).click();
  await begun(questOf(page));
  await whole(page, daemon);
});

test("the quest begins also when the page is left while the ward is tried", async () => {
  const page = await open(browser, daemon);
  const go = join(daemon.folder, "go");
  const dialog = await write(page, "A slow bridge", `while ! test -e '${go}'; do sleep 0.1; done`);
  await dialog.getByRole("button", { name: "Begin quest" }).click();
  await page.getByRole("heading", { name: "The ward is being tried" }).waitFor();
  const quest = questOf(page);
  await page.reload();
  await page.getByRole("heading", { name: "The ward is being tried" }).waitFor();
  await page.close();
  writeFileSync(go, "");
  await begun(quest);
});
