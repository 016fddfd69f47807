// The whole lint: oxlint with type information, our own regular expressions, the layer table. All three always run.
import "./require-node.mjs";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { say, seconds, tail } from "./progress.mjs";

const root = join(import.meta.dirname, "..");
const folders = ["src", "web", "test", "bench", "scripts", ".dependency-cruiser.cjs"];

const oxlint = join(root, "node_modules/.bin/oxlint");
const CHECKS = [
  { name: "oxlint", command: oxlint, args: ["--type-aware", "--deny-warnings", "-f", "unix", ...folders] },
  { name: "house rules", command: process.execPath, args: [join(root, "scripts/check-rules.mjs")] },
  { name: "layers", command: process.execPath, args: [join(root, "scripts/check-layers.mjs")] },
];

const results = await Promise.all(
  CHECKS.map(async ({ name, command, args }) => {
    const since = performance.now();
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => (output += chunk));
    child.stderr.setEncoding("utf8").on("data", (chunk) => (output += chunk));
    const code = await new Promise((resolve) => {
      child.on("error", (error) => resolve(error.message));
      child.on("close", (status, signal) => resolve(signal ?? status));
    });
    return { name, code, output, took: performance.now() - since };
  }),
);

for (const { name, code, output, took } of results) {
  say(`${code === 0 ? "✓" : "✗"} ${name} ${seconds(took)}`);
  if (code !== 0) say(tail(output === "" ? String(code) : output, 200));
}
process.exitCode = results.every(({ code }) => code === 0) ? 0 : 1;
