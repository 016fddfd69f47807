// Writes the pages of docs/ that are made from tables in the source.
//
//   node scripts/generate-docs.mjs           write the pages
//   node scripts/generate-docs.mjs --check   exit 1 when a committed page differs
import "./require-node.mjs";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { register } from "tsx/esm/api";

const docs = join(import.meta.dirname, "..", "docs");
const unregister = register();
const { configurationPage } = await import("../src/config/docs.ts");
const { podSupportPage } = await import("../src/model/pod-support-page.ts");
const { httpApiPage } = await import("../src/server/docs.ts");
await unregister();
const pages = {
  "configuration.md": configurationPage(),
  "http-api.md": httpApiPage(),
  "pod-support.md": podSupportPage(),
};

function current(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // A missing page differs too.
    return "";
  }
}

for (const [name, page] of Object.entries(pages)) {
  const path = join(docs, name);
  if (!process.argv.includes("--check")) writeFileSync(path, page);
  else if (current(path) !== page) {
    process.stdout.write(`docs/${name} is not current: run npm run generate\n`);
    process.exitCode = 1;
  }
}
