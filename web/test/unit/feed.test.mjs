// A missing or doubled event is impossible to overlook.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let Feed;
before(async () => {
  server = await page();
  ({ Feed } = await server.load("/src/api/feed.ts"));
});
after(() => server?.close());

const event = (id) => ({ id, ts: id, type: "quest_paused", quest: "q" });

/** A feed on a log of our own. */
function rig(head, log = []) {
  const seen = [];
  const opened = [];
  const states = [];
  const feed = new Feed(
    head,
    (it) => seen.push(it.id),
    (state) => states.push(state),
    (after, on) => {
      opened.push({ after, on });
      return { close() {} };
    },
    async (after, limit) => ({ events: log.filter((it) => it.id > after).slice(0, limit) }),
  );
  feed.start();
  return { feed, seen, opened, states };
}

test("events come in their order, each once", () => {
  const { feed, seen } = rig(5);
  for (const id of [6, 7, 7, 6, 8]) feed.arrive(event(id));
  assert.deepEqual(seen, [6, 7, 8]);
  assert.equal(feed.counters.doubled, 2);
  assert.equal(feed.counters.filled, 0);
});

test("a gap is read from the log, and what came meanwhile waits", async () => {
  const { feed, seen } = rig(5, [6, 7, 8, 9, 10].map(event));
  feed.arrive(event(9));
  feed.arrive(event(10));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(seen, [6, 7, 8, 9, 10]);
  assert.deepEqual([feed.counters.filled, feed.counters.doubled], [3, 0]);
});

test("a broken stream begins again after the last event that was seen", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { feed, opened, states } = rig(5);
  opened[0].on.open();
  opened[0].on.event(event(6));
  opened[0].on.error();
  assert.equal(states.at(-1).live, false);
  t.mock.timers.tick(500);
  assert.equal(opened[1].after, 6);
  opened[1].on.open();
  assert.equal(states.at(-1).live, true);
  assert.equal(feed.head, 6);
});

test("a stream that is opened anew while the log is read doubles nothing", async () => {
  const { feed, seen, opened } = rig(5, [6, 7, 8, 9].map(event));
  opened[0].on.open(8);
  feed.start();
  assert.equal(opened[1].after, 5);
  opened[1].on.open();
  for (const id of [6, 7, 8, 9]) opened[1].on.event(event(id));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(seen, [6, 7, 8, 9]);
  assert.deepEqual([feed.counters.filled, feed.counters.doubled], [0, 0]);
});

test("a tab that is told twice how far it is behind misses nothing", async () => {
  const { feed, seen, opened } = rig(5, [6, 7, 8, 9].map(event));
  opened[0].on.open(7);
  opened[0].on.open(8);
  opened[0].on.event(event(9));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(seen, [6, 7, 8, 9]);
  assert.deepEqual([feed.counters.filled, feed.counters.doubled], [0, 0]);
});

test("a log without what the stream speaks of is asked again later, and not at once and for ever", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { opened, states } = rig(5);
  opened[0].on.open();
  opened[0].on.event(event(9));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(states.at(-1).live, false);
  t.mock.timers.tick(500);
  assert.deepEqual([opened.length, opened[1].after], [2, 5]);
});

test("what is wrong with the store is known while the stream is open, and not from an older one", () => {
  const { opened, states } = rig(5);
  opened[0].on.open();
  opened[0].on.trouble("the disk is full");
  assert.equal(states.at(-1).trouble, "the disk is full");
  opened[0].on.trouble(null);
  assert.equal(states.at(-1).trouble, null);
  opened[0].on.trouble("the disk is full");
  opened[0].on.error();
  assert.deepEqual([states.at(-1).live, states.at(-1).trouble], [false, null]);
});
