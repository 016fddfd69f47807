import { mkdirSync, writeFileSync } from "node:fs";
import type { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import { cgroupHierarchies, cgroupTree, removeCgroupDir } from "../src/adapters/embedded/cgroups.ts";
import { LinuxHost } from "../src/adapters/host/index.ts";
import type { ContainerConfig, RuntimePort, SandboxConfig } from "../src/adapters/runtime/port.ts";
import { manyListeners } from "../src/lib/abort.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { MASKED_PATHS, READONLY_PATHS } from "../src/pods/config/masked-paths.ts";

/** Times of one pod made by bare CRI calls, in milliseconds. */
export interface RawTimes {
  /** From the first call until the container runs, by the runtime's own clock. */
  readonly running: number;
  /** Create and start alone. */
  readonly restart: number;
  /** From the first call until the last answer. */
  readonly whole: number;
}

/** Where raw pods keep their logs and cgroups, and what they run. */
export interface RawPlaces {
  readonly logs: string;
  readonly cgroup: string;
  readonly command?: readonly string[];
  /** The demo image of `kubelet up` unless said. */
  readonly image?: string;
}

/** The cgroup of raw pods beside those of an agent. */
export const RAW_CGROUP = "/kubelet-bench";

/** Once no raw pod is left. */
export function removeRawCgroup(): void {
  const hierarchies = cgroupHierarchies(new LinuxHost({ clock: new SystemClock() }).mountTable());
  for (const path of cgroupTree(hierarchies, RAW_CGROUP)) removeCgroupDir(path);
}

const { signal } = manyListeners();

/** Makes a pod with the same calls and the same configuration that the agent uses (mounts, hidden paths), and no more. */
export async function rawPod(runtime: RuntimePort, name: string, places: RawPlaces): Promise<RawTimes> {
  const sandbox = sandboxOf(name, places);
  const began = Date.now();
  const from = performance.now();
  const sandboxId = await runtime.runSandbox(sandbox, "", { signal });
  await runtime.sandboxStatus(sandboxId, { signal });
  const made = performance.now();
  const id = await runtime.createContainer(
    { sandboxId, sandbox, config: containerOf(`${places.logs}/${name}`, places) },
    { signal },
  );
  await runtime.startContainer(id, { signal });
  const restart = performance.now() - made;
  const whole = performance.now() - from;
  const { startedAt } = await runtime.containerStatus(id, { signal });
  return { running: startedAt - began, restart, whole };
}

/** Removes every pod whose name begins with `raw-`. */
export async function removeRaw(runtime: CriRuntime): Promise<void> {
  const all = await runtime.listSandboxes({}, { signal });
  const own = all.filter(({ metadata }) => metadata.name.startsWith("raw-"));
  for (let i = 0; i < own.length; i += 8) {
    await Promise.all(
      own.slice(i, i + 8).map(async ({ id }) => {
        await runtime.stopSandbox(id, { signal });
        await runtime.removeSandbox(id, { signal });
      }),
    );
  }
}

/** Starts the pods, so many at a time; the answer is the time until the last one runs. */
export async function rawBurst(
  runtime: RuntimePort,
  names: readonly string[],
  { places, concurrency }: { places: RawPlaces; concurrency: number },
): Promise<number> {
  const left = [...names];
  const began = performance.now();
  const worker = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) await rawPod(runtime, name, places);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return performance.now() - began;
}

/** Stops a raw pod as the agent would and takes it away; the answer is how long that took. */
export async function rawEnd(runtime: RuntimePort, name: string, graceSeconds: number): Promise<number> {
  const sandbox = (await runtime.listSandboxes({}, { signal })).find(({ metadata }) => metadata.name === name);
  const containers = await runtime.listContainers({}, { signal });
  const container = containers.find(({ sandboxId }) => sandboxId === sandbox?.id);
  if (sandbox === undefined || container === undefined) throw new Error(`there is no raw pod ${name}`);
  const began = performance.now();
  await runtime.stopContainer(container.id, graceSeconds, { signal });
  await runtime.stopSandbox(sandbox.id, { signal });
  await runtime.removeContainer(container.id, { signal });
  await runtime.removeSandbox(sandbox.id, { signal });
  return performance.now() - began;
}

function sandboxOf(name: string, { logs, cgroup }: RawPlaces): SandboxConfig {
  return {
    metadata: { name, namespace: "default", uid: `uid-${name}`, attempt: 0 },
    hostname: name,
    logDirectory: `${logs}/${name}`,
    portMappings: [],
    labels: {},
    annotations: {},
    linux: {
      cgroupParent: `${cgroup}/kubepods/besteffort/${name}`,
      sysctls: {},
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        privileged: false,
        supplementalGroups: [],
        seccomp: { type: "runtimeDefault" },
      },
    },
  };
}

function containerOf(directory: string, places: RawPlaces): ContainerConfig {
  const { command = ["sleep", "100000"], image = "kubelet.local/demo:1" } = places;
  mkdirSync(directory, { recursive: true });
  for (const file of ["etc-hosts", "message"]) writeFileSync(`${directory}/${file}`, "");
  const mount = (containerPath: string, file: string): ContainerConfig["mounts"][number] => ({
    containerPath,
    hostPath: `${directory}/${file}`,
    readonly: false,
    propagation: "private",
  });
  return {
    name: "app",
    attempt: 0,
    image: { ref: image, userSpecified: image },
    command,
    args: [],
    workingDir: "",
    envs: [],
    devices: [],
    cdiDevices: [],
    mounts: [mount("/etc/hosts", "etc-hosts"), mount("/dev/termination-log", "message")],
    labels: {},
    annotations: {},
    logPath: "app/0.log",
    stdin: false,
    stdinOnce: false,
    tty: false,
    linux: {
      resources: { cpuShares: 2, oomScoreAdj: 1000 },
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        privileged: false,
        readonlyRootfs: false,
        noNewPrivs: false,
        addCapabilities: [],
        dropCapabilities: [],
        supplementalGroups: [],
        maskedPaths: MASKED_PATHS,
        readonlyPaths: READONLY_PATHS,
        seccomp: { type: "unconfined" },
      },
    },
  };
}
