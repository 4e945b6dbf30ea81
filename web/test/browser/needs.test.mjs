// What needs the human is answered in its place: permissions by each of their buttons, questions by the answers that are offered. Nothing moves
// under the hand meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, whole } from "./support/browser.mjs";
import { smallQuest } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

const bash = (command) => ({ ask: { name: "Bash", input: { command }, result: `${command} is done` } });
const asked = (agent, nth) => {
  let met = 0;
  return daemon.until((event) => {
    if (event.type === "question_asked" && event.agent === agent && event.about.permission) met += 1;
    return met === nth;
  });
};
/** What an agent's tools answered: the text, and whether it was refused. */
const results = async (agent) => {
  const { messages } = await daemon.get(`/api/agents/${agent}/history?full=true`);
  const all = messages.filter((it) => it.kind === "tool_result").map((it) => JSON.parse(it.content));
  return all.map(({ content, is_error: refused }) => [content, refused === true]);
};

test("a permission is allowed, denied, denied with a reason and given for good", async () => {
  const page = await open(browser, daemon);
  const commands = ["make", "rm x", "rm y", "make test", "make test", "make docs"];
  const agent = await daemon.run("perm", [...commands.map(bash), { text: "All done." }]);
  const ask = (command) =>
    page.locator(".ask", { hasText: "May it use Bash?" }).filter({ has: page.getByText(command, { exact: true }) });
  const press = async (nth, command, button) => {
    await asked(agent, nth);
    await ask(command).getByRole("button", { name: button, exact: true }).click();
  };
  await press(1, "make", "Allow");
  await page.getByText("You answered: allow").waitFor();
  await press(2, "rm x", "Deny");
  await press(3, "rm y", "Deny with a reason");
  await ask("rm y")
    .getByLabel(/^Your answer to/)
    .fill("it is still needed");
  await ask("rm y").getByRole("button", { name: "Answer" }).click();
  await press(4, "make test", "Always for this agent");
  // The fifth is what was allowed for good, so the sixth is the next that is asked.
  await press(5, "make docs", "Always in this project");
  await daemon.until((event) => event.type === "run_ended" && event.agent === agent);
  assert.deepEqual(await results(agent), [
    ["make is done", false],
    ["The user did not allow it.", true],
    ["The user did not allow it: it is still needed", true],
    ["make test is done", false],
    ["make test is done", false],
    ["make docs is done", false],
  ]);
  const { rules } = await daemon.get("/api/permissions");
  assert.deepEqual(
    rules.map((it) => it.agent ?? null),
    [agent, null],
    "one rule is for the agent, one for all",
  );
  await whole(page, daemon);
});

test("a double click on Allow allows one request, and not the one below it", async () => {
  const page = await open(browser, daemon);
  const first = await daemon.run("ann", [bash("./one"), { text: "One is done." }]);
  await asked(first, 1);
  const second = await daemon.run("ben", [bash("./two"), { text: "Two is done." }]);
  await asked(second, 1);
  const below = page.locator(".ask", { hasText: "ben" });
  await below.waitFor();
  const before = await below.boundingBox();
  const button = page.locator(".ask", { hasText: "ann" }).getByRole("button", { name: "Allow", exact: true });
  const { x, y, width, height } = await button.boundingBox();
  const [left, top] = [x + width / 2, y + height / 2];
  await page.mouse.click(left, top);
  await page.getByText("You answered: allow").waitFor();
  await daemon.until((event) => event.type === "run_ended" && event.agent === first);
  // The second click of somebody who is quick, at the same place.
  await page.mouse.click(left, top);
  assert.deepEqual(await below.boundingBox(), before, "the card below has not moved");
  const { questions } = await daemon.get("/api/questions");
  assert.deepEqual(
    questions.map((it) => it.agent),
    [second],
  );
  await below.getByRole("button", { name: "Deny", exact: true }).click();
  await daemon.until((event) => event.type === "run_ended" && event.agent === second);
  await whole(page, daemon);
});

test("an answer that the agent offers is given by its button, also when it is asked while the page watches", async () => {
  const page = await open(browser, daemon);
  const quest = await smallQuest(daemon, "A shelf", { parts: "asks" });
  const ask = page.locator(".ask", { hasText: "Shall the shelves be of oak or of pine?" });
  await ask.getByRole("button", { name: "Pine", exact: true }).waitFor({ timeout: 30_000 });
  await page.reload();
  await ask.getByRole("button", { name: "Oak", exact: true }).waitFor();
  await ask.getByRole("button", { name: "Pine", exact: true }).click();
  await page.getByText("You answered: Pine").waitFor();
  await daemon.until((event) => event.type === "question_answered" && event.answer === "Pine");
  await daemon.until((event) => event.type === "message_added" && event.content === "I know now.");
  await daemon.post(`/api/quests/${quest}/abandon`).catch(() => {});
  await whole(page, daemon);
});
