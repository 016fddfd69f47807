// The layer table as a check: dependency-cruiser with the rules of .dependency-cruiser.cjs.
// Its command line refuses Node 20, its library does not, so the library it is. Without swc it would read no
// TypeScript 7 file and pass with nothing cruised: that is a failure here.
// Usage: node scripts/check-layers.mjs [ROOT]
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { cruise } from "dependency-cruiser";

const root = resolve(process.argv[2] ?? join(import.meta.dirname, ".."));
process.chdir(root);
const config = createRequire(join(root, "package.json"))(join(root, ".dependency-cruiser.cjs"));
const folders = ["src", "test", "bench"].filter((folder) => existsSync(folder));
const { output } = await cruise(folders, {
  ...config.options,
  ruleSet: { forbidden: config.forbidden },
  validate: true,
  outputType: "json",
});
const { summary, modules } = JSON.parse(output);

for (const { rule, from, to, cycle } of summary.violations) {
  const path = cycle === undefined ? to : cycle.map((step) => step.name).join(" → ");
  const why = config.forbidden.find((candidate) => candidate.name === rule.name)?.comment ?? "";
  process.stdout.write(`${from}: imports ${path}: ${why} [${rule.name}]\n`);
}
const read = modules.filter((module) => /^src\/.*\.ts$/.test(module.source) && module.dependencies.length > 0).length;
if (read === 0) process.stdout.write("no import was read: the layer check checked nothing\n");
process.exitCode = summary.violations.length > 0 || read === 0 ? 1 : 0;
