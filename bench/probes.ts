// What probes cost: `tsx bench/probes.ts [COUNT] [httpGet|tcpSocket]`. Measured as it ships, in one file and with the
// launcher's limits: through tsx the same code takes a fifth more.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const launcher = readFileSync(join(import.meta.dirname, "../bin/kubelet"), "utf8");
const flags = launcher.match(/--max-[a-z-]+=\d+/g) ?? [];
const dir = mkdtempSync(join(tmpdir(), "probes-"));
const outfile = join(dir, "probes.mjs");
const define = { __AGENT_VERSION__: '""', __KUBERNETES_VERSION__: '"1.36.3"', __BUILD_DATE__: '""' };
try {
  await build({
    entryPoints: [join(import.meta.dirname, "probes-run.ts")],
    outfile,
    define,
    bundle: true,
    minifySyntax: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
  const child = spawn(process.execPath, [...flags, outfile, ...process.argv.slice(2)], { stdio: "inherit" });
  process.exitCode = await new Promise<number>((resolve, reject) => {
    child.on("error", reject).on("close", (code) => resolve(code ?? 1));
  });
} finally {
  rmSync(dir, { recursive: true, force: true });
}
