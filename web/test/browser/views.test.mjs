// Seats, Build and the other projects: what each shows, and what can be done there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { Daemon } from "./support/daemon.mjs";
import { smallQuest } from "./support/scene.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

onEmptyProject();

const identity = (gridPosition, name, more = {}) => ({
  _id: `agent-identity:${gridPosition}`,
  type: "agent-identity",
  category: "identity",
  status: "sleeping",
  name,
  color: "#c9b1e8",
  colorName: "Violet Heaven",
  gender: "woman",
  faceVariant: { eyes: "round", mouth: "smile" },
  individuationArtifact: `I am ${name}, and I like **small** steps.`,
  gridPosition,
  lastAliveAt: "2026-11-01T12:00:00.000Z",
  createdAt: "2026-10-30T12:00:00.000Z",
  ...more,
});

test("sleepers are woken, show their souls and hear what is said", async () => {
  const page = await open(browser, daemon, { path: "/seats" });
  await page.getByRole("heading", { level: 1, name: "Nine seats, nobody in them" }).waitFor();
  const documents = [identity(0, "Lyra"), identity(8, "Cael", { color: "url(https://example.invalid/x)" })];
  await daemon.post("/api/docs/import", { text: JSON.stringify(documents) });
  await page.getByRole("heading", { level: 1, name: "Two sleep" }).waitFor();
  await page.getByRole("button", { name: "WAKE" }).click();
  await page.getByRole("heading", { level: 1, name: "Two are awake" }).waitFor({ timeout: 30_000 });
  await page.keyboard.press("1");
  await page.getByRole("heading", { level: 2, name: "Lyra" }).waitFor();
  await page.getByText(/^Its soul, written/).click();
  await page.getByText("I am Lyra, and I like small steps.").waitFor();
  await page.getByLabel("To Lyra").fill("What would you test first?");
  await page.getByLabel("To Lyra").press("Control+Enter");
  await page.locator(".msg.is-human", { hasText: "What would you test first?" }).waitFor();
  // A colour that is none is not drawn with: no request leaves for it, and the page has nothing to complain about.
  assert.equal(await page.locator("svg.face [fill*='example.invalid']").count(), 0);
  assert.deepEqual(page.troubles, []);
});

test("Build shows checks and ideas as they come, and an idea can be dismissed", async () => {
  const page = await open(browser, daemon, { path: "/build" });
  await page.getByRole("heading", { level: 1, name: "No build goes on" }).waitFor();
  await daemon.post("/api/build-events", {
    kind: "verification-failed",
    chunk: "Retry queue",
    checks: [
      { name: "pauses grow", result: "pass" },
      { name: "nothing is due twice", result: "fail" },
    ],
  });
  await page.getByText("Retry queue: 1 of 2 checks").waitFor();
  await page.getByRole("button", { name: "Context" }).click();
  await page.getByText("Retry queue: 1 of 2 checks").waitFor({ state: "detached" });
  await page.getByLabel("An idea, a link or a feature").fill("Make the first start faster");
  await page.getByLabel("An idea, a link or a feature").press("Enter");
  await page.getByText("1 waiting").waitFor();
  await page.getByRole("button", { name: "Dismiss “Make the first start faster”" }).click();
  await page.getByText("0 waiting").waitFor();
  // Another program's build, written into the file.
  const chunks = [
    { id: 1, name: "State schema", status: "completed" },
    { id: 2, name: "Retry queue", status: "retrying", attempt: 2 },
  ];
  daemon.write(".fctry/state.json", JSON.stringify({ buildRun: { runId: "r1", status: "running", chunks } }));
  await page.getByRole("heading", { level: 1, name: "Chunk 2 of 2" }).waitFor();
  await page.getByText("attempt 2").waitFor();
  assert.deepEqual(page.troubles, []);
});

test("a build that rests is resumed, and what changed since then is decided first", async () => {
  const page = await open(browser, daemon, { path: "/build" });
  const chunks = [
    { id: 1, name: "State schema", status: "completed" },
    { id: 2, name: "Retry queue", status: "planned" },
  ];
  daemon.write(".fctry/state.json", JSON.stringify({ buildRun: { runId: "r2", status: "paused", chunks } }));
  await page.getByRole("heading", { level: 1, name: "1 of 2 chunks done, paused" }).waitFor();
  await page.getByRole("button", { name: "Resume build" }).click();
  await page.getByRole("heading", { level: 1, name: "1 of 2 chunks done", exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Resume build" }).count(), 0);
  assert.deepEqual(page.troubles, []);
});

test("cost is told by day, by quest, by agent and by model, in dollars and in tokens", async () => {
  const cost = (usd) => ({ cost: { usd, input_tokens: 4000, output_tokens: 1000 } });
  const own = await daemon.run("mina", [{ text: "One." }, cost(0.5)], "Begin.", { model: "large" });
  await daemon.until((event) => event.type === "run_ended" && event.agent === own);
  const quest = await smallQuest(daemon, "Typed errors", { parts: "one" });
  await daemon.until((event) => event.type === "quest_completed" && event.quest === quest);
  const page = await open(browser, daemon, { path: "/cost" });
  const legend = (by, name) =>
    page
      .getByRole("region", { name: `By ${by}` })
      .getByRole("listitem")
      .filter({ hasText: name })
      .last();
  const { total, parts } = await daemon.get("/api/usage?days=14");
  const dollars = (nanos) => `$${(nanos / 1e9).toFixed(2)}`;
  const of = (fits) => dollars(parts.filter(fits).reduce((sum, it) => sum + it.spent.cost.nanodollars, 0));
  await page.getByRole("heading", { level: 1, name: `${dollars(total.cost.nanodollars)} today` }).waitFor();
  await page.getByRole("img", { name: `Dollars by day. Today ${dollars(total.cost.nanodollars)}` }).waitFor();
  await legend("quest", "Typed errors")
    .getByText(of((it) => it.quest === quest))
    .waitFor();
  await legend("quest", "agents on their own").getByText("$0.50").waitFor();
  await page.getByRole("button", { name: "Agent" }).click();
  await legend("agent", "mina").getByText("$0.50").waitFor();
  await page.getByRole("button", { name: "Model" }).click();
  await legend("model", "large").getByText("$0.50").waitFor();
  await page.getByRole("button", { name: "Tokens" }).click();
  await legend("model", "large").getByText("5k", { exact: true }).waitFor();
  await page
    .getByRole("row", { name: /^mina on its own large/ })
    .getByText("$0.50")
    .waitFor();
  assert.deepEqual(page.troubles, []);
});

for (const [where, width] of Object.entries({ "": 1440, " on a phone": 390 })) {
  test(`the other projects of this machine are one click away${where}`, async () => {
    const other = await Daemon.start("ledger", {}, daemon);
    try {
      const page = await open(browser, daemon, { width });
      await page.getByRole("button", { name: "All projects of this machine" }).click();
      const link = page.getByRole("link", { name: "ledger" });
      await link.waitFor();
      const { x, y, width: wide, height } = await link.boundingBox();
      assert.ok(x >= 0 && y >= 0 && x + wide <= width && height >= (width < 860 ? 44 : 24), "it is in sight");
      const [second] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
      await second.waitForURL(`${other.url}/`);
      await second.getByText("ledger").filter({ visible: true }).first().waitFor();
      assert.deepEqual(page.troubles, []);
    } finally {
      await other.stop();
    }
  });
}
