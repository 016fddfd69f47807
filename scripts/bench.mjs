// `npm run bench`: makes the machine ready, then measures (bench/run.ts). Further arguments go to the benchmark.
import "./require-node.mjs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { red, say } from "./progress.mjs";
import { root, setup } from "./setup.mjs";

const missing = await setup({ forTests: true });
if (missing.length > 0) {
  say(red(`Cannot measure without ${missing.join(", ")}.`));
  process.exit(1);
}
const { status } = spawnSync(
  process.execPath,
  ["--import", "tsx", join(root, "bench/run.ts"), ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit", env: { ...process.env, TSX_DISABLE_CACHE: "1" } },
);
process.exit(status ?? 1);
