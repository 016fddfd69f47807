import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { httpApiPage } from "./docs.ts";

test("docs/http-api.md is generated from the route table", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/http-api.md"), "utf8");
  assert.equal(page, httpApiPage(), "run node scripts/generate-docs.mjs");
});
