// Writes docs/configuration.md from the option tables of src/config.
//
//   node scripts/generate-config-docs.mjs           write the page
//   node scripts/generate-config-docs.mjs --check   exit 1 when the committed page differs
import "./require-node.mjs";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { register } from "tsx/esm/api";

const path = join(import.meta.dirname, "..", "docs", "configuration.md");
const unregister = register();
const { configurationPage } = await import("../src/config/docs.ts");
await unregister();
const page = configurationPage();

if (process.argv.includes("--check")) {
  let current = "";
  try {
    current = readFileSync(path, "utf8");
  } catch {
    // A missing page differs too.
  }
  if (current !== page) {
    process.stdout.write("docs/configuration.md is not current: run node scripts/generate-config-docs.mjs\n");
    process.exitCode = 1;
  }
} else writeFileSync(path, page);
