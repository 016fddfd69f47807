import { mkdirSync, writeFileSync } from "node:fs";
import type { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import type { ContainerConfig, RuntimePort, SandboxConfig } from "../src/adapters/cri/port.ts";
import { manyListeners } from "../src/lib/abort.ts";
import { MASKED_PATHS, READONLY_PATHS } from "../src/pods/config/masked-paths.ts";

/** Times of one pod made by bare CRI calls, in milliseconds. */
export interface RawTimes {
  /** From the first call until the container runs, by the runtime's own clock. */
  readonly running: number;
  /** Create and start alone. */
  readonly restart: number;
}

const { signal } = manyListeners();

/** Makes a pod with the same calls and the same configuration that the agent uses (mounts, hidden paths), and no more. */
export async function rawPod(
  runtime: RuntimePort,
  name: string,
  places: { logs: string; cgroup: string },
): Promise<RawTimes> {
  const sandbox = sandboxOf(name, places);
  const began = Date.now();
  const sandboxId = await runtime.runSandbox(sandbox, "", { signal });
  await runtime.sandboxStatus(sandboxId, { signal });
  const made = performance.now();
  const id = await runtime.createContainer(
    { sandboxId, sandbox, config: containerOf(`${places.logs}/${name}`) },
    { signal },
  );
  await runtime.startContainer(id, { signal });
  const restart = performance.now() - made;
  const { startedAt } = await runtime.containerStatus(id, { signal });
  return { running: startedAt - began, restart };
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

function sandboxOf(name: string, { logs, cgroup }: { logs: string; cgroup: string }): SandboxConfig {
  return {
    metadata: { name, namespace: "default", uid: `uid-${name}`, attempt: 0 },
    ...{ hostname: name, logDirectory: `${logs}/${name}`, portMappings: [], labels: {}, annotations: {} },
    linux: {
      ...{ cgroupParent: `${cgroup}/kubepods/besteffort/${name}`, sysctls: {} },
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        ...{ privileged: false, supplementalGroups: [], seccomp: { type: "runtimeDefault" } },
      },
    },
  };
}

function containerOf(directory: string): ContainerConfig {
  mkdirSync(directory, { recursive: true });
  for (const file of ["etc-hosts", "message"]) writeFileSync(`${directory}/${file}`, "");
  const mount = (containerPath: string, file: string): ContainerConfig["mounts"][number] => ({
    ...{ containerPath, hostPath: `${directory}/${file}`, readonly: false, propagation: "private" },
  });
  return {
    ...{ name: "app", attempt: 0, image: { ref: "kubelet.local/demo:1", userSpecified: "kubelet.local/demo:1" } },
    ...{ command: ["sleep", "100000"], args: [], workingDir: "", envs: [], devices: [] },
    mounts: [mount("/etc/hosts", "etc-hosts"), mount("/dev/termination-log", "message")],
    ...{ labels: {}, annotations: {}, logPath: "app/0.log", stdin: false, stdinOnce: false, tty: false },
    linux: {
      resources: { cpuShares: 2, oomScoreAdj: 1000 },
      security: {
        namespaces: { network: "pod", pid: "container", ipc: "pod" },
        ...{ privileged: false, readonlyRootfs: false, noNewPrivs: false, addCapabilities: [], dropCapabilities: [] },
        ...{ supplementalGroups: [], maskedPaths: MASKED_PATHS, readonlyPaths: READONLY_PATHS },
        seccomp: { type: "unconfined" },
      },
    },
  };
}
