// The lead of the seats writes reports into its words. What is to be read of them, the daemon says.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let history;
let talk;
before(async () => {
  server = await page();
  history = await server.load("/src/store/history.ts");
  talk = await server.load("/src/ui/talk.tsx");
});
after(() => server?.close());

const said = (content, kind = "assistant", id = 5) => ({ type: "message_added", id, ts: 1, agent: "a", kind, content });

test("a text with a report is asked for, and no other one", () => {
  assert.equal(history.mayHaveMarkers(said('Hello.\n[AGENT_STATUS] {"agents":[]}')), true);
  assert.equal(history.mayHaveMarkers(said('[ACTION] {"target":"agents"}')), true);
  assert.equal(history.mayHaveMarkers(said("I would write [AGENT_STATUS] here.")), false);
  assert.equal(history.mayHaveMarkers(said("[AGENT_STATUS] {}", "user")), false);
});

test("what was asked for is put in its place, once", () => {
  const messages = [said("one", "user", 1), said("six", "user", 6)];
  const placed = history.placed(messages, said("five"));
  assert.deepEqual(
    placed.map((it) => it.id),
    [1, 5, 6],
  );
  assert.equal(history.placed(placed, said("again")), placed);
  assert.equal(history.placed(messages, said("last", "assistant", 9)).at(-1).id, 9);
});

test("of a message that was only a report nothing is shown", () => {
  const shown = talk.itemsOf([said("hello", "user", 1), said("\n"), said("well", "assistant", 6)]);
  assert.deepEqual(
    shown.map((it) => it.message.content),
    ["hello", "well"],
  );
});
