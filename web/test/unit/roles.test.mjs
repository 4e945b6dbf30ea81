// Beside a role's name stands what it does, in the same words as on the command line.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { page } from "./support.mjs";

let server;
let roles;
before(async () => {
  server = await page();
  roles = await server.load("/src/ui/roles.ts");
});
after(() => server?.close());

test("every role of the built-in table has the duty that the core names", () => {
  const source = readFileSync(new URL("../../../core/src/roles.rs", import.meta.url), "utf8");
  const [, arms] = /pub fn duty\(.*?\n(.*?)\n}\n/s.exec(source);
  const duties = [...arms.matchAll(/"(\w+)" => "([^"]+)"/g)].map(([, role, duty]) => [role, duty]);
  assert.equal(duties.length, 6);
  for (const [role, duty] of duties) assert.equal(roles.titled(role), `${role} (${duty})`);
});

test("a role of the project's own stands alone, and words after a role stay", () => {
  assert.equal(roles.titled("gardener"), "gardener");
  assert.equal(roles.titled("constructor"), "constructor");
  assert.equal(roles.withDuty("codeweaver, attempt 2"), "codeweaver (implements), attempt 2");
  assert.equal(roles.withDuty("the ward runs"), "the ward runs");
});
