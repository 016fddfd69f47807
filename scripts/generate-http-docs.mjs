// Writes docs/http-api.md from the route table of src/server.
//
//   node scripts/generate-http-docs.mjs           write the page
//   node scripts/generate-http-docs.mjs --check   exit 1 when the committed page differs
import "./require-node.mjs";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { register } from "tsx/esm/api";

const path = join(import.meta.dirname, "..", "docs", "http-api.md");
const unregister = register();
const { httpApiPage } = await import("../src/server/docs.ts");
await unregister();
const page = httpApiPage();

if (process.argv.includes("--check")) {
  let current = "";
  try {
    current = readFileSync(path, "utf8");
  } catch {
    // A missing page differs too.
  }
  if (current !== page) {
    process.stdout.write("docs/http-api.md is not current: run node scripts/generate-http-docs.mjs\n");
    process.exitCode = 1;
  }
} else writeFileSync(path, page);
