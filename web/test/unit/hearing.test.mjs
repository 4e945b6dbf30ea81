// What an agent has not heard is what the daemon says, and what was heard stays heard.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let Hearing;
before(async () => {
  server = await page();
  ({ Hearing } = await server.load("/src/store/hearing.ts"));
});
after(() => server?.close());

/** A page and a daemon whose answers come when they are told to. */
function listen() {
  const asked = [];
  const shown = new Map();
  const hearing = new Hearing(
    (id) => new Promise((resolve) => asked.push({ id, answer: resolve })),
    (id, unheard) => shown.set(id, unheard),
  );
  const answer = async (id, unheard) => {
    asked
      .splice(
        asked.findIndex((it) => it.id === id),
        1,
      )[0]
      .answer(unheard);
    await Promise.resolve();
  };
  return { hearing, asked, shown, answer };
}

test("a message to an agent that runs waits until it is heard", () => {
  const { hearing, shown } = listen();
  hearing.said(7, true);
  assert.equal(shown.get(7), true);
  hearing.heard(7);
  assert.equal(shown.get(7), false);
});

test("of an agent that is started by the message the daemon says it", async () => {
  const { hearing, shown, answer } = listen();
  hearing.said(7, false);
  assert.equal(shown.get(7), undefined);
  await answer(7, true);
  assert.equal(shown.get(7), true);
});

test("a process that is new hears all of it at once, by another number", async () => {
  const { hearing, asked, shown, answer } = listen();
  hearing.read([{ id: 3 }, { id: 5, unheard: true }, { id: 6, unheard: true }], false);
  assert.deepEqual(asked, []);
  hearing.heard(9);
  assert.deepEqual(
    asked.map((it) => it.id),
    [5, 6],
  );
  await answer(5, false);
  await answer(6, true);
  assert.deepEqual(
    [5, 6].map((id) => shown.get(id)),
    [false, true],
  );
});

test("what was heard while an answer was on its way stays heard", async () => {
  const { hearing, shown, answer } = listen();
  hearing.said(7, true);
  hearing.heard(7);
  await answer(7, true);
  assert.equal(shown.get(7), false);
  hearing.read([{ id: 7, unheard: true }], true);
  assert.equal(hearing.of(7), false);
});

test("a daemon that is away says nothing about it", async () => {
  const { hearing, shown, answer } = listen();
  hearing.said(7, true);
  await answer(7, null);
  assert.equal(shown.get(7), true);
});
