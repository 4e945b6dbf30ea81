// What is written is shown once, and never twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let live;
before(async () => {
  server = await page();
  live = await server.load("/src/api/live_text.ts");
});
after(() => server?.close());

const piece = (text, begins = false, kind = "text") => ({ type: "writing", kind, begins, text, since: 1 });

test("pieces are put together, and a new text takes the place of the old one", () => {
  let writing = null;
  for (const it of [piece("one ", true), piece("two")]) writing = live.written(writing, it);
  assert.equal(writing.text, "one two");
  writing = live.written(writing, piece("hm", true, "thinking"));
  assert.deepEqual(writing, { kind: "thinking", text: "hm", since: 1 });
  assert.equal(live.written(writing, { type: "ended" }), null);
});

test("somebody who comes late sees what there is", () => {
  assert.equal(live.written(null, piece("the rest")).text, "the rest");
});

test("of a thought the latest sentence is shown", () => {
  assert.equal(live.latestSentence("First this. Then that, and"), "Then that, and");
  assert.equal(live.latestSentence("a\nb"), "b");
});

test("a text is over when something was said after its first words, and not by what the log tells late", () => {
  const writing = { kind: "text", text: "one", since: 100 };
  assert.equal(live.stillWritten(writing, 99), writing);
  assert.equal(live.stillWritten(writing, 101), null);
  assert.equal(live.stillWritten(null, 101), null);
});
