import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fullName, KUBELET_METRICS } from "./metric-names.ts";

const PROMTOOL = "/usr/bin/promtool";

/** Why Prometheus' tool cannot be used here, or undefined when it can. */
export function whyNoPromtool(): string | undefined {
  return existsSync(PROMTOOL) ? undefined : "not installed: prometheus";
}

/** Names of Kubernetes and cAdvisor that the tool does not like; they are what dashboards ask for. */
const THEIRS = new Set([
  ...[...KUBELET_METRICS.keys()].map(fullName),
  ...["cadvisor_version_info", "container_cpu_load_d_average_10s", "container_fs_inodes_total"],
  "container_memory_failcnt",
]);

/** What `promtool check metrics` does not like about a page, beside the names of Kubernetes itself. */
export function promtoolProblems(page: string): string[] {
  const { status, stdout, stderr } = spawnSync(PROMTOOL, ["check", "metrics"], { input: page, encoding: "utf8" });
  const lines = `${stdout}${stderr}`.split("\n").filter((line) => line !== "");
  // 3: the page is well formed, but names could be better.
  if (status !== 0 && status !== 3) return lines;
  return lines.filter((line) => !THEIRS.has(line.split(" ", 1)[0] ?? ""));
}

/** Runs `promtool` with these arguments; the answer is what it wrote if it failed. */
export function promtool(...args: readonly string[]): string | undefined {
  const { status, stdout, stderr } = spawnSync(PROMTOOL, args, { encoding: "utf8" });
  return status === 0 ? undefined : `${stdout}${stderr}`;
}
