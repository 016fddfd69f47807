import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kubeBinDir } from "./control-plane.ts";

const CGROUPS = "/sys/fs/cgroup";
/** What a kubelet sets for the whole machine when it starts. */
const SYSCTLS = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"].map(
  (name) => `/proc/sys/${name}`,
);

/** Returns the path of the original kubelet; undefined if it was not built (`scripts/build-kubernetes.mjs kubelet`). */
export function goKubelet(): string | undefined {
  const path = join(kubeBinDir(), "kubelet");
  return existsSync(path) ? path : undefined;
}

/** Ends this process with the runner's exit code for "not here" if there is no original kubelet. */
export function skipWithoutGoKubelet(): void {
  if (goKubelet() !== undefined) return;
  process.stdout.write(`${kubeBinDir()} has no kubelet (node scripts/build-kubernetes.mjs kubelet)\n`);
  process.exit(77);
}

/** Makes the cgroup that a kubelet is given as its root, in every hierarchy: the original does not start without it. */
export function makeCgroup(path: string): void {
  const isUnified = existsSync(join(CGROUPS, "cgroup.controllers"));
  const hierarchies = isUnified
    ? [""]
    : readdirSync(CGROUPS).filter((name) => existsSync(join(CGROUPS, name, "tasks")));
  for (const name of hierarchies) mkdirSync(join(CGROUPS, name, path), { recursive: true });
}

/** Returns a function that sets back what a kubelet sets for the whole machine. */
export function savedSysctls(): () => void {
  const saved = SYSCTLS.map((path) => [path, readFileSync(path, "utf8")] as const);
  return () => {
    for (const [path, value] of saved) if (readFileSync(path, "utf8") !== value) writeFileSync(path, value);
  };
}
