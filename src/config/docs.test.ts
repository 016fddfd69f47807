import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { optionNames, optionOf } from "./agent-options.ts";
import { configurationPage } from "./docs.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/configuration.md"), "utf8");

test("docs/configuration.md is what the tables say", () => {
  assert.equal(page, configurationPage(), "run node scripts/generate-docs.mjs");
});

test("docs/configuration.md has every option", () => {
  for (const name of optionNames) {
    const { field, flag } = optionOf(name);
    assert.ok(field === undefined || page.includes(`\`${field}\``), name);
    assert.ok(flag === undefined || page.includes(`-${flag}\``), name);
  }
});
