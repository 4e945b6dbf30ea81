// A line that is drawn without being read as Markdown is one that Markdown would not change.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Lexer } from "marked";
import { page } from "./support.mjs";

let server;
let isWords;
before(async () => {
  server = await page();
  ({ isWords } = await server.load("/src/ui/markdown.tsx"));
});
after(() => server?.close());

/** Markdown leaves it as it is: one paragraph with one text. */
function unchanged(text) {
  const tokens = new Lexer({ gfm: true }).lex(text).filter((it) => it.type !== "space");
  const [first] = tokens;
  return (
    tokens.length === 1 && first.type === "paragraph" && first.tokens.length === 1 && first.tokens[0].type === "text"
  );
}

test("what counts as words is what Markdown leaves as it is", () => {
  const plain = [
    "I begin.",
    "word-12-end",
    "Read it (twice), then “go on” - slowly.",
    "Größe 3, 50 % + 1 = 4!",
    "Übung #4",
  ];
  for (const text of plain) assert.ok(isWords(text) && unchanged(text), text);
  const marked = [
    ...[
      "1. first",
      "- item",
      "+ item",
      "# head",
      "> said",
      "    code",
      "a **b**",
      "a _b_",
      "`x`",
      "~~x~~",
      "<b>x</b>",
      "a & b",
    ],
    ...[
      "a\nb",
      "Title\n===",
      "see https://a.example",
      "see www.a.example",
      "me@a.example",
      "[a](b)",
      "a | b",
      "a\\*b",
      "",
      " ",
    ],
  ];
  for (const text of marked) assert.ok(!isWords(text), text);
  // Every mark at every place of a line.
  for (const mark of "*_`~<>&[]\\|@:#+-=.!()'\"0123456789 ".split(""))
    for (const text of [`${mark}ab cd`, `ab${mark}cd`, `ab ${mark}cd${mark} e`, `ab cd${mark}`])
      if (isWords(text)) assert.ok(unchanged(text.trimEnd()), text);
});
