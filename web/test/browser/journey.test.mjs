// A person's way through the page, against a real daemon with scripted agents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { counters, open, titled, whole } from "./support/browser.mjs";
import { hang, smallQuest } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

test("a quest is begun on the page and goes through to its end", async () => {
  const page = await open(browser, daemon);
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("What do you want to have?").fill("Typed errors in the config loader");
  await dialog.getByLabel("Ward").fill("sh check.sh");
  await dialog.getByLabel("Ask me before the plan is carried out").check();
  await dialog.getByRole("button", { name: "Begin quest" }).click();
  await page.waitForURL(/\/quests\//);
  await page.getByRole("heading", { level: 1, name: "Typed errors in the config loader" }).waitFor();
  // A role's plain duty stands beside its name.
  await page.getByText("lawbringer (reviews), after all steps").waitFor();

  // The built-in script plans a step, and the plan needs consent.
  await page.goto(`${daemon.url}/`);
  await page.getByRole("button", { name: "Approve plan" }).click();
  await page
    .locator("section", { has: page.getByRole("heading", { name: "Done" }) })
    .getByText("Quest complete")
    .waitFor({ timeout: 40_000 });
  await page.getByText("Quest complete").first().click();
  await page.getByText("complete · since").waitFor();
  assert.equal(
    await page.getByRole("listitem").filter({ hasText: "Review" }).first().getByRole("img", { name: "done" }).count(),
    1,
  );
  // Each signal says when it came, to the second, and leads into the log.
  const signals = page.getByRole("region", { name: "Signals" }).getByRole("listitem");
  const green = signals.filter({ hasText: "ward green" }).first();
  assert.match(await green.locator("time").textContent(), /^\d\d:\d\d:\d\d$/);
  await green.getByRole("link", { name: /^#[\d,]+$/ }).waitFor();
  assert.equal(await signals.getByRole("link", { name: /^#[\d,]+$/ }).count(), await signals.count());
  await green.getByRole("link", { name: /^#[\d,]+$/ }).click();
  await page.locator(".log-row.is-chosen", { hasText: "ward_ended" }).waitFor();
  await whole(page, daemon);
});

test("an agent is begun on the page, from the palette", async () => {
  const page = await open(browser, daemon);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("New agent");
  await page.getByRole("option", { name: "New agent", exact: true }).click();
  const dialog = page.getByRole("dialog");
  assert.ok(await dialog.getByRole("button", { name: "Begin" }).isDisabled(), "it has nothing to do yet");
  await dialog.getByLabel("What shall it do?").fill("Say hello.");
  await dialog.getByLabel("Name").fill("nora");
  await dialog.getByRole("button", { name: "Begin" }).click();
  await page.getByRole("heading", { level: 1, name: "nora" }).waitFor();
  await page.locator(".msg.is-human", { hasText: "Say hello." }).waitFor();
  const { agents } = await daemon.get("/api/agents");
  const { id } = agents.find((it) => it.name === "nora");
  assert.equal(new URL(page.url()).pathname, `/agents/${id}`);
  await daemon.until((event) => event.type === "run_ended" && event.agent === id);
  // A name that is taken is refused in the dialog, and what was typed stays.
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("New agent");
  await page.getByRole("option", { name: "New agent", exact: true }).click();
  await dialog.getByLabel("What shall it do?").fill("Say hello again.");
  await dialog.getByLabel("Name").fill("nora");
  await dialog.getByRole("button", { name: "Begin" }).click();
  await dialog.getByRole("alert").getByText("nora").waitFor();
  assert.equal(await dialog.getByLabel("What shall it do?").inputValue(), "Say hello again.");
  await page.keyboard.press("Escape");
  page.troubles = page.troubles.filter((it) => !it.includes("409"));
  await whole(page, daemon);
});

test("a question is answered in place; two tabs agree; a draft survives a reload", async () => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await open(browser, daemon, { context });
  const other = await open(browser, daemon, { context });
  await smallQuest(daemon, "A house", { parts: "asks" });
  const question = "Shall the shelves be of oak or of pine?";
  await page.getByText(question).waitFor({ timeout: 30_000 });
  await titled(page, "1 needs you · parcel-api");
  // Somebody who does not see the page is told once, and by name.
  await page
    .getByRole("status", { name: "Needs you" })
    .getByText(/^codeweaver-errors.* needs you$/)
    .waitFor();
  await page.getByLabel(/^Your answer to/).fill("Oak.");
  await page.reload();
  await page.getByText(question).waitFor();
  assert.equal(await page.getByLabel(/^Your answer to/).inputValue(), "Oak.");
  await other.getByText(question).waitFor();
  await page.getByLabel(/^Your answer to/).press("Control+Enter");
  await page.getByText(question).waitFor({ state: "detached" });
  await other.getByText(question).waitFor({ state: "detached" });
  await daemon.until((event) => event.type === "question_answered" && event.answer === "Oak.");
  await whole(page, daemon);
  await whole(other, daemon);
});

test("what was typed is kept when somebody else answers first, and can be said to the agent", async () => {
  const quest = await smallQuest(daemon, "A shelf", { parts: "asks" });
  const page = await open(browser, daemon);
  const ask = page.locator(".ask", { hasText: "Shall the shelves be of oak or of pine?" });
  await ask.getByLabel(/^Your answer to/).fill("Oak, and no nails.");
  const { questions } = await daemon.get("/api/questions");
  const { id, agent } = questions.find((it) => it.quest === quest);
  await daemon.post(`/api/questions/${id}/answer`, { answer: "Pine." });
  const kept = page.locator(".ask", { hasText: "This was answered elsewhere: “Pine.”" });
  await kept.getByText("Your words are still here: “Oak, and no nails.”").waitFor();
  await kept.getByRole("button", { name: "Say it to the agent instead" }).click();
  await daemon.until((it) => it.type === "message_added" && it.agent === agent && it.content === "Oak, and no nails.");
  await kept.waitFor({ state: "detached" });
  await daemon.post(`/api/quests/${quest}/abandon`);
  await whole(page, daemon);
});

test("words whose answer was lost are known by their event, and not sent twice", async () => {
  const agent = (await daemon.post("/api/agents", { name: "lee" })).id;
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  // They arrive, and the answer does not.
  await page.route("**/say", async (route) => {
    await route.fetch();
    await route.abort("connectionreset");
  });
  const field = page.getByLabel("Say something to lee");
  await field.fill("Only once.");
  await field.press("Control+Enter");
  await page.locator(".msg.is-human", { hasText: "Only once." }).waitFor();
  await page.waitForFunction(() => document.getElementById("say").value === "");
  assert.equal(await page.getByRole("alert").count(), 0);

  await page.goto(`${daemon.url}/mail/${agent}`);
  await page.route("**/api/mail", async (route) => {
    await route.fetch();
    await route.abort("connectionreset");
  });
  await page.getByLabel("Mail to lee").fill("This once, too.");
  await page.getByLabel("Mail to lee").press("Control+Enter");
  await page.locator(".msg", { hasText: "This once, too." }).waitFor();
  await page.waitForFunction(() => document.getElementById("mail").value === "");
  assert.equal(await page.getByRole("alert").count(), 0);
  await whole(page, daemon);
});

test("an answer that does not fit is refused, and the words stay", async () => {
  const agent = (await daemon.post("/api/agents", { name: "broke" })).id;
  await daemon.post("/api/budgets", { agent, limit: "0" });
  await daemon.post(`/api/agents/${agent}/say`, { text: "Begin.", with: { harness: "scripted" } });
  const page = await open(browser, daemon);
  const ask = page.locator(".ask", { hasText: "broke" });
  await ask.getByRole("button", { name: "Another amount" }).click();
  await ask.getByLabel(/^Your answer to/).fill("a lot");
  await ask.getByRole("button", { name: "Answer" }).click();
  await ask.getByRole("alert").getByText("Your words are still here.").waitFor();
  assert.equal(await ask.getByLabel(/^Your answer to/).inputValue(), "a lot");
  await ask.getByLabel(/^Your answer to/).fill("0.5");
  await ask.getByRole("button", { name: "Answer" }).click();
  await page.getByText("You answered: 0.5").waitFor();
  page.troubles = page.troubles.filter((it) => !it.includes("422"));
  await whole(page, daemon);
});

test("fork at a message, and compare the two", async () => {
  const parent = await daemon.run("ann", [{ text: "First thought." }, { text: "Second thought." }]);
  await daemon.until((event) => event.type === "run_ended" && event.agent === parent);
  const page = await open(browser, daemon, { path: `/agents/${parent}` });
  const first = page.locator(".msg", { hasText: "First thought." });
  await first.hover();
  await first.getByRole("button", { name: "Fork here" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("ben");
  await page.getByRole("dialog").getByRole("button", { name: "Fork", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "ben" }).waitFor();
  await page.getByText("inherited from").waitFor();
  assert.equal(await page.getByText("Second thought.").count(), 0, "it was forked before that");

  await page.goto(`${daemon.url}/agents`);
  await page.getByRole("button", { name: "Compare ann" }).click();
  await page.getByRole("button", { name: "Compare ben" }).click();
  await page.getByText("since they parted at").waitFor();
  // While their histories are read, nothing is said of what they have in common.
  let release;
  const held = new Promise((resolve) => {
    release = resolve;
  });
  await page.route("**/history?*", async (route) => {
    await held;
    await route.continue();
  });
  await page.reload();
  await page.getByRole("region", { name: "Comparison" }).getByRole("status", { name: "Loading" }).waitFor();
  assert.equal(await page.getByText("they have nothing in common").count(), 0);
  release();
  await page.getByText("since they parted at").waitFor();
  const a = page.getByRole("region", { name: "ann" });
  await a.getByText("Second thought.").waitFor();
  await page.getByRole("button", { name: "Kill B" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Kill ben" }).click();
  await page.locator(".git li", { hasText: "Killed. Its history stays." }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Kill B" }).count(), 0);
  await whole(page, daemon);
});

test("an agent whose event comes after its view was opened appears there", async () => {
  const id = "AAAAAAAAAAAAAAAAAAAAAQ";
  const page = await open(browser, daemon, { path: `/agents/${id}` });
  await page.getByRole("heading", { name: "There is no such agent" }).waitFor();
  await daemon.post("/api/agents", { id, name: "late" });
  await page.getByRole("heading", { level: 1, name: "late" }).waitFor();
});

test("what its agent has not heard yet is marked until it is heard", async () => {
  const deaf = await daemon.run("deaf", [{ text: "I think." }, hang]);
  const page = await open(browser, daemon, { path: `/agents/${deaf}` });
  await page.getByText("I think.").waitFor();
  const say = async (name, words) => {
    await page.getByLabel(`Say something to ${name}`).fill(words);
    await page.keyboard.press("Control+Enter");
    return page.locator(".msg", { hasText: words });
  };
  await (await say("deaf", "Are you there?")).getByText("not heard yet").waitFor();
  await page.reload();
  const marked = page.locator(".msg", { hasText: "Are you there?" }).getByText("not heard yet");
  await marked.waitFor();
  const second = await open(browser, daemon, { path: `/agents/${deaf}` });
  await second.locator(".msg", { hasText: "Are you there?" }).getByText("not heard yet").waitFor();
  await second.close();
  await daemon.post(`/api/agents/${deaf}/stop`);
  await daemon.until((event) => event.type === "run_ended" && event.agent === deaf);
  assert.equal(await marked.count(), 1, "it was stopped before it heard it");
  const ear = await daemon.run("ear", [{ text: "One." }, "turn", { text: "Two." }], "Begin.", { stays: true });
  await daemon.until((event) => event.type === "turn_ended" && event.agent === ear);
  await page.goto(`${daemon.url}/agents/${ear}`);
  const said = await say("ear", "Go on.");
  await page.getByText("Two.", { exact: true }).waitFor();
  assert.equal(await said.getByText("not heard yet").count(), 0);
  await daemon.post(`/api/agents/${ear}/stop`);
  await whole(page, daemon);
});

test("a failed step is retried from Home", async () => {
  const quest = await smallQuest(daemon, "Something that fails", { parts: "fails" });
  const page = await open(browser, daemon);
  await page.getByRole("button", { name: "Retry step" }).click({ timeout: 40_000 });
  await daemon.until((event) => event.type === "step_queued" && event.quest === quest && event.step === "errors");
  await daemon.post(`/api/quests/${quest}/abandon`);
  await page.locator("a.row", { hasText: "Something that fails" }).getByText("Abandoned by you").waitFor();
  await whole(page, daemon);
});

test("what an agent says is text: tags, colours of a terminal, Markdown", async () => {
  const said = [
    '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">',
    "\u001b[31mred\u001b[0m **bold** <b>not bold</b> [here](javascript:window.hacked=3)",
  ].join("\n\n");
  const agent = await daemon.run("mallory", [{ text: said }, hang]);
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  await page.locator(".msg strong", { hasText: "bold" }).waitFor();
  const text = await page.locator(".msg", { hasText: "bold" }).innerText();
  assert.ok(text.includes("<script>window.hacked = 1</script>") && text.includes("red"), text);
  assert.ok(!text.includes("\u001b") && !text.includes("[31m"), "colours of a terminal are left out");
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.equal(await page.locator(".msg img, .msg script, .msg a[href^=javascript]").count(), 0);
  await page.goto(`${daemon.url}/`);
  await page.locator(`[data-agent="${agent}"]`, { hasText: "<script>" }).waitFor();
  assert.deepEqual(page.troubles, []);
  await daemon.post(`/api/agents/${agent}/stop`);
});

test("the daemon is killed with -9 under the page, and comes back", async () => {
  const agent = await daemon.run("flo", [{ text: "before" }, { sleep_ms: 6000 }, { text: "after" }, hang]);
  const page = await open(browser, daemon, { path: `/agents/${agent}` });
  await page.getByText("before", { exact: true }).waitFor();
  await page.getByLabel("Say something to flo").fill("Are you there?");
  await daemon.kill();
  await page.getByText("The daemon is away.").waitFor();
  await page.getByText("before", { exact: true }).waitFor();
  await daemon.up();
  await page.getByText("The daemon is away.").waitFor({ state: "detached" });
  await page.getByText("after", { exact: true }).waitFor();
  assert.equal(await page.getByLabel("Say something to flo").inputValue(), "Are you there?", "what was typed is kept");
  await page.getByLabel("Say something to flo").press("Control+Enter");
  await page.locator(".msg.is-human", { hasText: "Are you there?" }).waitFor();
  assert.ok((await counters(page)).opened >= 2);
  await whole(page, daemon);
  // Every message once, in the page as in the log.
  const { messages } = await daemon.get(`/api/agents/${agent}/history?full=true`);
  const shown = await page
    .locator(".msg[data-message]")
    .evaluateAll((all) => all.map((it) => Number(it.dataset.message)));
  assert.deepEqual(
    shown,
    messages.filter((it) => ["user", "assistant"].includes(it.kind)).map((it) => it.id),
  );
  await daemon.post(`/api/agents/${agent}/stop`);
});

test("the palette and the keys go everywhere", async () => {
  const page = await open(browser, daemon);
  for (const [key, heading] of [
    ["q", /quest/i],
    ["a", /agent/i],
    ["s", /seats/i],
    ["b", /build/i],
    ["m", /mail/i],
    ["l", /events/i],
    ["c", /today/i],
    ["h", /./],
  ]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("ann");
  await page.getByRole("option", { name: /^ann/ }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "ann" }).waitFor();
  await page.keyboard.press("?");
  await page.getByText("find or do anything").waitFor();
  await whole(page, daemon);
});
