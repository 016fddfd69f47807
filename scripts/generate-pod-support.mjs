// Writes docs/pod-support.md from the table of what the agent does with each field of a pod.
//
//   node scripts/generate-pod-support.mjs           write the page
//   node scripts/generate-pod-support.mjs --check   exit 1 when the committed page differs
import "./require-node.mjs";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { register } from "tsx/esm/api";

const path = join(import.meta.dirname, "..", "docs", "pod-support.md");
const unregister = register();
const { podSupportPage } = await import("../src/model/pod-support-page.ts");
await unregister();
const page = podSupportPage();

if (process.argv.includes("--check")) {
  let current = "";
  try {
    current = readFileSync(path, "utf8");
  } catch {
    // A missing page differs too.
  }
  if (current !== page) {
    process.stdout.write("docs/pod-support.md is not current: run node scripts/generate-pod-support.mjs\n");
    process.exitCode = 1;
  }
} else writeFileSync(path, page);
