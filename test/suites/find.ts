import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Scheduled } from "./lanes.ts";

/** A program of tests that needs the real world. */
export interface Suite extends Scheduled {
  readonly file: string;
  readonly node: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Only tests whose name matches. */
  readonly pattern?: string | undefined;
}

export const root = join(import.meta.dirname, "../..");

/**
 * `usual`: contracts and integration. `features`: integration that a developer waits for only after a change of it.
 * `nodes`: what has to hold on the other releases of Node too.
 */
export type Kind = "usual" | "features" | "chaos" | "cluster" | "nodes";

/** Suites that judge the agent by a time of few seconds, or by what the whole machine does meanwhile. */
const ALONE = new Set([
  "src/eviction/memory-pressure.root.test.ts",
  "test/integration/agent-up.ts",
  "test/cluster/eviction.ts",
  "test/cluster/monitoring-original.ts",
  "test/features/log-rotation-rate.ts",
  "test/cluster/monitoring-cadvisor.ts",
]);
/** The original kubelet always uses it. A machine over this one's files, as that of kubeadm, breaks when it is removed. */
const FIXED_DIRECTORY = "/var/lib/kubelet";
/** Suites that change the same thing of the machine. */
const SHARES: Readonly<Record<string, string>> = {
  "test/integration/lifecycle-kernel.ts": "huge pages",
  "test/integration/volumes.ts": "huge pages",
  "test/cluster/exchange.ts": FIXED_DIRECTORY,
  "test/cluster/kubeadm.ts": FIXED_DIRECTORY,
};

/**
 * The suites of a kind, by parts of their paths; `PART:PATTERN` takes only the tests whose name matches. A part of a path
 * finds features and chaos among the usual ones too.
 */
export function findSuites(kind: Kind, filters: readonly string[]): Suite[] {
  if (filters.length === 0) return all(kind);
  const suites = kind === "usual" ? [...all("usual"), ...all("features"), ...all("chaos")] : all(kind);
  return suites.flatMap((suite) => {
    const found = filters.map((filter) => filter.split(":")).find(([part = ""]) => suite.file.includes(part));
    return found === undefined ? [] : [{ ...suite, pattern: found[1] }];
  });
}

function all(kind: Kind): Suite[] {
  if (kind === "cluster" || kind === "chaos" || kind === "features") {
    return inFolder(`test/${kind}`).map((file) => suiteOf(file, file));
  }
  const onNodes = list("src").filter((file) => file.endsWith(".root.test.ts"));
  if (kind === "nodes") {
    // What a race finds does not depend on the release of Node: the others run fewer.
    const env = { KUBELET_TEST_RACES: "500" };
    return otherNodes().flatMap((node) =>
      onNodes.map((file) => ({ ...suiteOf(`${file} on Node ${versionOf(node)}`, file), node, env })),
    );
  }
  const integration = inFolder("test/integration").filter((file) => basename(file) !== "run.ts");
  return [
    ...onNodes.map((file) => suiteOf(file, file)),
    ...contractSuites(),
    ...integration.map((file) => suiteOf(file, file)),
  ];
}

function suiteOf(name: string, file: string): Suite {
  return { name, file, node: process.execPath, isAlone: ALONE.has(file), shares: SHARES[file] };
}

/** One contract, each runtime that this machine has: Debian's containerd 1.6, and 2.x where it could be built. */
function contractSuites(): Suite[] {
  const file = "test/contract/runtime-containerd.ts";
  const built = process.env["CONTAINERD2_BIN_DIR"] ?? "";
  const system = { ...suiteOf(`${file} on the system's containerd`, file), env: { CONTAINERD_BIN_DIR: "" } };
  if (built === "") return [system];
  return [system, { ...suiteOf(`${file} on containerd 2`, file), env: { CONTAINERD_BIN_DIR: built } }];
}

function otherNodes(): string[] {
  return (process.env["KUBELET_TEST_NODES"] ?? "").split(":").filter((path) => path !== "");
}

function versionOf(node: string): string {
  return /node-(\d+\.\d+\.\d+)\//.exec(node)?.[1] ?? node;
}

/** The programs of a folder, not of those below it. */
function inFolder(folder: string): string[] {
  return list(folder).filter((file) => /^[^/]+\.ts$/.test(file.slice(folder.length + 1)) && !file.endsWith(".test.ts"));
}

function list(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return names.map((name) => join(folder, name)).sort();
}
