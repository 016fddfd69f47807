import type { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import type { ContainerConfig, ContainerMount } from "../adapters/runtime/port.ts";
import { type Abortable, isAborted } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import { ConfigError } from "../model/config-error.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { deviceIds } from "./device.ts";
import type { DeviceAllocator } from "./device-allocator.ts";
import type { PodDevices } from "./pod-devices.ts";

/** What devices add to a container. */
export interface DeviceContribution {
  readonly env: ContainerConfig["envs"];
  readonly mounts: readonly ContainerMount[];
  readonly devices: ContainerConfig["devices"];
  readonly cdiDevices: readonly string[];
  readonly annotations: Readonly<Record<string, string>>;
}

interface ContributorDeps {
  readonly pods: PodDevices;
  readonly allocator: Pick<DeviceAllocator, "allocateMissing">;
  readonly plugins: { preStart(resource: string, ids: readonly string[], options: Abortable): Promise<void> };
  waiting(pod: Pod, what: string): () => void;
}

/** Adds to each container what the plugins of its devices answered when these were allocated. */
export function deviceContributor({ pods, allocator, plugins, waiting }: ContributorDeps): {
  readonly name: string;
  contribute(
    creation: { readonly pod: Pod; readonly container: Container; readonly interrupt: AbortSignal },
    before: Pick<DeviceContribution, "annotations">,
  ): Promise<DeviceContribution>;
} {
  return {
    name: "devices",
    async contribute({ pod, container, interrupt: signal }, before) {
      const { uid = "" } = pod.metadata;
      try {
        await allocator.allocateMissing(pod, container, { signal });
        const held = pods.of(uid, container.name);
        for (const [resource, devices] of held) {
          const answered = waiting(pod, `for device plugin ${resource} to answer PreStartContainer`);
          await plugins.preStart(resource, [...deviceIds(devices)], { signal }).finally(answered);
        }
        const merged = mergeAnswers([...held.values()].map(({ answer }) => answer));
        // The agent's own annotations win, as in Kubernetes.
        const others = Object.entries(merged.annotations).filter(([key]) => !Object.hasOwn(before.annotations, key));
        return { ...merged, annotations: Object.fromEntries(others) };
      } catch (error) {
        if (isAborted(error, signal)) throw error;
        // Nothing was created yet: CreateContainerConfigError, as in Kubernetes.
        throw new ConfigError(messageOf(error), { cause: error });
      }
    },
  };
}

/** Merges the answers of several plugins; of two that set the same the first counts, as in Kubernetes. Pure. */
export function mergeAnswers(answers: readonly ContainerAllocateResponse[]): DeviceContribution {
  const env = new Map<string, string>();
  const mounts = new Map<string, ContainerMount>();
  const devices = new Map<string, ContainerConfig["devices"][number]>();
  const annotations = new Map<string, string>();
  const cdiDevices = new Set<string>();
  for (const answer of answers) {
    for (const [name, value] of Object.entries(answer.envs)) addFirst(env, name, value);
    for (const [name, value] of Object.entries(answer.annotations)) addFirst(annotations, name, value);
    for (const { containerPath, hostPath, readOnly } of answer.mounts) {
      addFirst(mounts, containerPath, { containerPath, hostPath, readonly: readOnly, propagation: "private" });
    }
    for (const { containerPath, hostPath, permissions } of answer.devices) {
      addFirst(devices, containerPath, { containerPath, hostPath, permissions });
    }
    for (const { name } of answer.cdiDevices) cdiDevices.add(name);
  }
  return {
    env: [...env].map(([name, value]) => ({ name, value })),
    mounts: [...mounts.values()],
    devices: [...devices.values()],
    cdiDevices: [...cdiDevices],
    annotations: Object.fromEntries(annotations),
  };
}

function addFirst<V>(map: Map<string, V>, key: string, value: V): void {
  if (!map.has(key)) map.set(key, value);
}
