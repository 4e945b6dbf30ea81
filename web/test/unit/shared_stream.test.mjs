// All tabs of a browser have one stream, each gets every event once, and the stream goes to another tab when its tab is closed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let shared;
before(async () => {
  server = await page();
  ({ shared } = await server.load("/src/api/shared_stream.ts"));
});
after(() => server?.close());

const event = (id) => ({ id, ts: id, type: "quest_paused", quest: "q" });

/** A browser: tabs that hear each other, and one lock that waits in line. */
function browser() {
  const channels = new Set();
  const posted = [];
  const line = [];
  let held = false;
  const next = () => {
    const want = line.shift();
    if (!want) return;
    held = true;
    want().then(() => {
      held = false;
      next();
    });
  };
  const means = {
    channel: () => {
      const channel = {
        onmessage: null,
        postMessage: (data) => {
          posted.push(data.type);
          for (const other of channels) if (other !== channel) other.onmessage?.({ data });
        },
        close: () => channels.delete(channel),
      };
      channels.add(channel);
      return channel;
    },
    lock: (want, signal) => {
      line.push(want);
      signal.addEventListener("abort", () => line.includes(want) && line.splice(line.indexOf(want), 1));
      if (!held) next();
    },
  };
  /** The streams that were opened. */
  const streams = [];
  const inner = (from, on) => {
    const stream = { from, on, closed: false, close: () => (stream.closed = true) };
    streams.push(stream);
    return stream;
  };
  const tab = (from = 0) => {
    const seen = [];
    const states = [];
    const source = shared(inner, means)(from, {
      open: (head) => states.push(`open ${head ?? ""}`.trim()),
      event: (it) => seen.push(it.id),
      error: () => states.push("error"),
      trouble: (words) => states.push(`trouble ${words}`),
    });
    return { seen, states, channel: [...channels].at(-1), close: () => source.close() };
  };
  /** What the tabs say while this runs is not heard by these tabs, or by nobody. */
  const deafen = (during, tabs) => {
    const deaf = tabs ? tabs.map((it) => it.channel) : [...channels];
    for (const channel of deaf) channels.delete(channel);
    const result = during();
    for (const channel of deaf) channels.add(channel);
    return result;
  };
  /** The tabs do not hear each other any more: the one with the stream hangs. */
  const mute = () => channels.clear();
  const sent = (type) => posted.filter((it) => it === type).length;
  return { tab, streams, mute, deafen, sent };
}

test("the first tab has the stream, and the others get what it gets", () => {
  const { tab, streams } = browser();
  const [a, b] = [tab(5), tab(5)];
  assert.equal(streams.length, 1);
  streams[0].on.open();
  streams[0].on.event(event(6));
  // One that comes later is told how far the stream is.
  const c = tab(3);
  streams[0].on.event(event(7));
  assert.deepEqual([a.seen, b.seen, c.seen], [[6, 7], [6, 7], [7]]);
  assert.deepEqual([a.states, b.states, c.states], [["open"], ["open 5"], ["open 6"]]);
  for (const it of [a, b, c]) it.close();
});

test("a tab that begins while events come is told where it stands, and leaves out what it has", () => {
  const { tab, streams, deafen } = browser();
  const [first, second] = [tab(5), tab(5)];
  streams[0].on.open();
  // Its question is not answered before the next event comes.
  const late = deafen(() => tab(6));
  streams[0].on.event(event(6));
  for (const id of [8, 9]) streams[0].on.event(event(id));
  assert.deepEqual([late.states, late.seen], [["open 7"], [8, 9]]);
  for (const it of [first, second, late]) it.close();
});

test("a tab that is alone sends no events, and begins when somebody asks", async () => {
  const { tab, streams, sent, deafen } = browser();
  const a = tab(5);
  streams[0].on.open();
  streams[0].on.event(event(6));
  assert.equal(sent("event"), 0);
  const b = tab(6);
  streams[0].on.event(event(7));
  assert.deepEqual([b.seen, sent("event")], [[7], 1]);
  // One that was there before the next leader: its question was never heard by that one.
  const c = deafen(() => tab(7), [b]);
  a.close();
  await new Promise((resolve) => setImmediate(resolve));
  streams[1].on.open();
  streams[1].on.event(event(8));
  assert.deepEqual([b.seen, c.seen, c.states], [[7, 8], [8], ["open 7"]]);
  b.close();
  c.close();
});

test("when the tab with the stream is closed, another one goes on after the last event", async () => {
  const { tab, streams } = browser();
  const [a, b, c] = [tab(5), tab(5), tab(5)];
  streams[0].on.open();
  streams[0].on.event(event(6));
  a.close();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([streams[0].closed, streams.length, streams[1].from], [true, 2, 6]);
  streams[1].on.open();
  streams[1].on.event(event(7));
  assert.deepEqual(
    [b.seen, c.seen],
    [
      [6, 7],
      [6, 7],
    ],
  );
  b.close();
  c.close();
});

test("a tab that takes the stream over before it has heard everything doubles nothing for the others", async () => {
  const { tab, streams, deafen } = browser();
  const [a, b] = [tab(5), tab(5)];
  streams[0].on.open();
  // The next in line is busy: what it is told waits, and the lock comes first.
  const c = tab(5);
  deafen(() => streams[0].on.event(event(6)), [b]);
  a.close();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(streams[1].from, 5);
  streams[1].on.open();
  for (const id of [6, 7]) streams[1].on.event(event(id));
  assert.deepEqual(
    [b.seen, c.seen],
    [
      [6, 7],
      [6, 7],
    ],
  );
  b.close();
  c.close();
});

test("all tabs hear that the stream is broken", () => {
  const { tab, streams } = browser();
  const [a, b] = [tab(5), tab(5)];
  streams[0].on.open();
  streams[0].on.error();
  assert.deepEqual([a.states.at(-1), b.states.at(-1)], ["error", "error"]);
  a.close();
  b.close();
});

test("a tab that is given no answer opens a stream of its own, and one that is told to wait does not", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const { tab, streams, mute } = browser();
  const a = tab(5);
  const b = tab(5);
  t.mock.timers.tick(5000);
  assert.equal(streams.length, 1, "the first has not opened it yet, and says so");
  streams[0].on.open();
  mute();
  t.mock.timers.tick(25_000);
  t.mock.timers.tick(5000);
  assert.equal(streams.length, 2);
  streams[1].on.open();
  streams[1].on.event(event(6));
  assert.deepEqual(b.seen, [6]);
  a.close();
  b.close();
});

test("what is wrong with the store is known in all tabs, also in one that comes later", () => {
  const { tab, streams } = browser();
  const [a, b] = [tab(5), tab(5)];
  streams[0].on.open();
  streams[0].on.trouble("the disk is full");
  const c = tab(5);
  streams[0].on.trouble(null);
  assert.deepEqual(a.states, ["open", "trouble the disk is full", "trouble null"]);
  assert.deepEqual(b.states, ["open 5", "trouble the disk is full", "trouble null"]);
  assert.deepEqual(c.states, ["open 5", "trouble the disk is full", "trouble null"]);
  for (const it of [a, b, c]) it.close();
});
