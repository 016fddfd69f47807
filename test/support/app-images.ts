import { execFile, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";

const SCRIPT = join(import.meta.dirname, "../../scripts/build-app-images.mjs");
const NOT_HERE = 77;

/** The directory of the images of examples/apps; builds them once. Ends the suite as skipped where that cannot be done. */
export function requireAppImages(): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT], { encoding: "utf8" });
  if (status === NOT_HERE) {
    process.stdout.write(`needs the images of examples/apps: ${stderr.trim()}\n`);
    process.exit(NOT_HERE);
  }
  if (status !== 0) throw new Error(`build of the images failed: ${stderr}`);
  return stdout.trimEnd().split("\n").at(-1) ?? "";
}

/** Imports every archive of a directory into the site's runtime. */
export async function importArchives(site: Site, dir: string): Promise<void> {
  const { signal } = new AbortController();
  // The agent answers before its runtime does.
  await until("the runtime is there", () =>
    site.cri.version({ signal }).then(
      () => true,
      () => false,
    ),
  );
  const archives = readdirSync(dir).filter((name) => name.endsWith(".tar"));
  for (const name of archives) {
    const args = ["-a", site.layout.socket, "-n", "k8s.io", "images", "import", join(dir, name)];
    await promisify(execFile)("ctr", args);
  }
}
