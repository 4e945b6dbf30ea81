// Mail: what is for the human, what agents write to each other, and what is written from the page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./support/browser.mjs";
import { browser, daemon, onEmptyProject } from "./support/stage.mjs";

let lyra;
let ione;
onEmptyProject(async () => {
  lyra = (await daemon.post("/api/agents", { name: "lyra" })).id;
  ione = (await daemon.post("/api/agents", { name: "ione" })).id;
});

const thread = (page, words) => page.getByRole("region", { name: "Threads" }).getByRole("link", { name: words });

test("a thread between two agents is shown, grows, and both can be written to", async () => {
  await daemon.post("/api/mail", { from: lyra, to: ione, body: "The clock may step back." });
  const page = await open(browser, daemon, { path: "/mail" });
  await page.getByRole("heading", { level: 1, name: "No mail for you is unread" }).waitFor();
  await thread(page, /lyra with ione/).click();
  const open2 = page.getByRole("region", { name: /^(lyra and ione|ione and lyra)$/ });
  await open2.getByText("The clock may step back.").waitFor();
  await open2.getByText("waits to be read").waitFor();

  // What comes while it is looked at is there at once, and so is what became of it.
  await daemon.post("/api/mail", { from: ione, to: lyra, body: "I hold it <b>against</b> the \u001b[31mdatabase’s." });
  await open2.getByText("I hold it <b>against</b> the database’s.").waitFor();
  const [first] = (await daemon.get(`/api/mail/${ione}`)).mail;
  await daemon.post(`/api/mail/${ione}/read`, { mail: first.id });
  await open2
    .locator(".msg", { hasText: "The clock may step back." })
    .getByText(/^read \d\d:\d\d$/)
    .waitFor();

  // One of the two, then both.
  const field = open2.getByRole("textbox");
  await open2.getByRole("checkbox", { name: "ione" }).uncheck();
  await field.fill("Only you.");
  await field.press("Control+Enter");
  await daemon.until((event) => event.type === "mail_sent" && event.to === lyra && event.body === "Only you.");
  await open2.getByRole("checkbox", { name: "ione" }).and(page.locator(":checked")).waitFor();
  await field.fill("Both of you.");
  await field.press("Control+Enter");
  for (const to of [lyra, ione])
    await daemon.until((event) => event.type === "mail_sent" && event.to === to && event.body === "Both of you.");
  await page.waitForFunction(() => document.querySelector("#mail").value === "");
  assert.equal((await daemon.get(`/api/mail/${ione}/threads?with=human`)).mail.length, 1, "ione got one of the two");
  assert.deepEqual(page.troubles, []);
});

test("mail for the human stands on top, and two tabs agree when it is read", async () => {
  await daemon.post("/api/mail", { from: ione, to: "human", body: "The review is in docs/review.md." });
  await daemon.post("/api/mail", { from: lyra, to: ione, body: "Later than that." });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await open(browser, daemon, { context, path: "/mail" });
  const other = await open(browser, daemon, { context });
  const rows = page.getByRole("region", { name: "Threads" }).getByRole("link");
  await rows.first().getByText("The review is in docs/review.md.").waitFor();
  assert.equal(await rows.first().locator(".badge").innerText(), "1");
  await other.getByRole("link", { name: /^Mail 1$/ }).waitFor();
  await page.getByRole("button", { name: "Mark as read" }).click();
  await page.getByRole("heading", { level: 1, name: "No mail for you is unread" }).waitFor();
  await other.getByRole("link", { name: /^Mail$/ }).waitFor();
  assert.deepEqual(page.troubles, []);
});

test("a draft of a mail survives a reload, and a refused one stays", async () => {
  const page = await open(browser, daemon, { path: `/mail/${lyra}` });
  await page.getByLabel("Mail to lyra").fill("Not sent yet.");
  await page.reload();
  await page.getByLabel("Mail to lyra").waitFor();
  assert.equal(await page.getByLabel("Mail to lyra").inputValue(), "Not sent yet.");
  await daemon.post(`/api/agents/${lyra}/kill`, {});
  await page.getByLabel("Mail to lyra").press("Control+Enter");
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Mail to lyra").inputValue(), "Not sent yet.");
});
