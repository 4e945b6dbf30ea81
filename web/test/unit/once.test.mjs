// A request is carried out once, however often it was sent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let Once;
before(async () => {
  server = await page();
  ({ Once } = await server.load("/src/api/once.ts"));
});
after(() => server?.close());

const LOST = new Error("away");
const REFUSED = new Error("refused");

/** A daemon that answers as the list says, and what it was asked. */
function daemon(answers) {
  const asked = [];
  let drawn = 0;
  const sender = {
    send: async (path, body) => {
      asked.push({ path, ...body });
      const answer = answers.shift() ?? "ok";
      if (answer instanceof Error) throw answer;
      return answer;
    },
    drawId: () => `id-${++drawn}`,
    isLost: (problem) => problem === LOST,
    pause: async () => {},
  };
  return { once: new Once(sender), asked };
}

test("a request whose connection broke is sent again with the same id", async () => {
  const { once, asked } = daemon([LOST, LOST, "done"]);
  assert.equal(await once.post("/say", { text: "hello" }), "done");
  assert.deepEqual(
    asked.map((it) => it.id),
    ["id-1", "id-1", "id-1"],
  );
});

test("what a person repeats after the page gave up has the same id, and the next one has another", async () => {
  const { once, asked } = daemon([LOST, LOST, LOST, LOST]);
  await assert.rejects(once.post("/say", { text: "hello" }), LOST);
  assert.equal(await once.post("/say", { text: "hello" }), "ok");
  assert.equal(await once.post("/say", { text: "hello" }), "ok");
  assert.equal(await once.post("/say", { text: "other" }), "ok");
  assert.deepEqual(
    asked.map((it) => it.id),
    ["id-1", "id-1", "id-1", "id-1", "id-1", "id-2", "id-3"],
  );
});

test("a refusal is an answer", async () => {
  const { once, asked } = daemon([REFUSED]);
  await assert.rejects(once.post("/say", { text: "hello" }), REFUSED);
  await once.post("/say", { text: "hello" });
  assert.deepEqual(
    asked.map((it) => it.id),
    ["id-1", "id-2"],
  );
});
