import type * as wire from "../adapters/devices/generated/podresources.ts";
import type { PodResourcesAnswers } from "../adapters/devices/pod-resources-server.ts";
import { TooManyCallsError } from "../adapters/grpc/server.ts";
import { clip } from "../lib/bounded-text.ts";
import type { AssignedCompute, AssignedMemory } from "../model/assigned-resources.ts";
import type { ContainerClaim } from "../model/claim-device.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { isSidecar } from "../model/pod-facts.ts";
import { type ContainerDevices, NO_NODE } from "./device.ts";
import type { DeviceInventory } from "./inventory.ts";
import type { PodDevices } from "./pod-devices.ts";

/** Bytes of a name in an error: the longest valid one, and no more of others. */
const NAME_BYTES = 253;

/** Calls that are counted, by the version of the API. */
export type CountedCall = "list" | "get" | "getAllocatable" | "getError";

/** What the pod resources API is answered from. */
export interface PodResourcesDeps {
  /** Pods that run or start. */
  activePods(): readonly Pod[];
  /** All pods of the node, also completed ones. */
  knownPods(): readonly Pod[];
  readonly devices: PodDevices;
  readonly inventory: DeviceInventory;
  /** Exclusive CPUs and memory; missing if the node gives none out. */
  readonly compute?: AssignedCompute | undefined;
  /** Prepared claims of containers; missing if the node has none. */
  readonly claims?: { claimsOf(pod: Pod, container: Container): readonly ContainerClaim[] } | undefined;
  /** True if List shows active pods only. */
  listsActive(): boolean;
  counted(call: CountedCall, version: "v1" | "v1alpha1"): void;
  /** The rate limit: whether a call may be answered, and how many devices it was answered with. */
  readonly rate: { mayCall(): boolean; answered(devices: number): void };
}

/** Answers who has which devices, CPUs, memory and claims, in the words and the shape of Kubernetes. */
export class PodResources implements PodResourcesAnswers {
  constructor(private readonly deps: PodResourcesDeps) {}

  list(): wire.ListPodResourcesResponse {
    this.admit();
    this.deps.counted("list", "v1");
    const pods = this.deps.listsActive() ? this.deps.activePods() : this.deps.knownPods();
    return this.charged({ podResources: pods.map((pod) => this.resourcesOf(pod)) });
  }

  /** All known pods with their regular containers and devices only. */
  listAlpha(): wire.ListPodResourcesResponse {
    this.admit();
    this.deps.counted("list", "v1alpha1");
    const empty = { cpuIds: [], memory: [], dynamicResources: [] };
    const containersOf = ({ spec, metadata }: Pod): wire.ContainerResources[] =>
      spec.containers.map(({ name }) => {
        const devices = this.devicesOf(metadata.uid ?? "", name);
        return { name, devices: devices.map((one) => ({ ...one, topology: undefined })), ...empty };
      });
    return this.charged({
      podResources: this.deps.knownPods().map((pod) => ({ ...nameOf(pod), containers: containersOf(pod) })),
    });
  }

  allocatable(): wire.AllocatableResourcesResponse {
    this.admit();
    this.deps.counted("getAllocatable", "v1");
    const { inventory, compute } = this.deps;
    const devices = inventory.names().flatMap((resource) => {
      const all = inventory.devices(resource);
      return [...inventory.healthy(resource)].flatMap((id) => perNode(resource, id, all.get(id)?.nodes ?? []));
    });
    this.deps.rate.answered(devices.length);
    return {
      devices,
      cpuIds: (compute?.allocatableCpus() ?? []).map(BigInt),
      memory: (compute?.allocatableMemory() ?? []).map(memoryOf),
    };
  }

  /** Of a pod that is active: a completed one has nothing any more. */
  get({ podName, podNamespace }: wire.GetPodResourcesRequest): wire.GetPodResourcesResponse {
    this.admit();
    this.deps.counted("get", "v1");
    const pod = this.deps
      .activePods()
      .find(({ metadata }) => metadata.name === podName && metadata.namespace === podNamespace);
    if (pod !== undefined) {
      const [podResources] = this.charged({ podResources: [this.resourcesOf(pod)] }).podResources;
      return { podResources };
    }
    this.deps.counted("getError", "v1");
    throw new Error(`pod ${clip(podName, NAME_BYTES)} in namespace ${clip(podNamespace, NAME_BYTES)} not found`);
  }

  private admit(): void {
    if (!this.deps.rate.mayCall()) throw new TooManyCallsError();
  }

  private charged(answer: wire.ListPodResourcesResponse): wire.ListPodResourcesResponse {
    let devices = 0;
    for (const { containers } of answer.podResources) for (const one of containers) devices += one.devices.length;
    this.deps.rate.answered(devices);
    return answer;
  }

  /** Sidecars and regular containers: what other init containers had is free, or taken over by these. */
  private resourcesOf(pod: Pod): wire.PodResources {
    const containers = [...(pod.spec.initContainers ?? []).filter(isSidecar), ...pod.spec.containers];
    return { ...nameOf(pod), containers: containers.map((container) => this.containerOf(pod, container)) };
  }

  private containerOf(pod: Pod, container: Container): wire.ContainerResources {
    const { name } = container;
    const { uid = "" } = pod.metadata;
    const { compute } = this.deps;
    return {
      name,
      devices: this.devicesOf(uid, name),
      cpuIds: (compute?.cpus(uid, name) ?? []).map(BigInt),
      memory: (compute?.memory(uid, name) ?? []).map(memoryOf),
      dynamicResources: (this.deps.claims?.claimsOf(pod, container) ?? []).map(claimOf),
    };
  }

  private devicesOf(uid: string, container: string): wire.ContainerDevices[] {
    return [...this.deps.devices.of(uid, container)].flatMap(([resource, devices]) =>
      [...nodesById(devices)].flatMap(([id, nodes]) => perNode(resource, id, nodes)),
    );
  }
}

/** The NUMA nodes of each device. A container may have thousands of devices: each is looked at once. */
function nodesById({ byNode }: ContainerDevices): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const [node, ids] of byNode) {
    for (const id of ids) {
      const nodes = found.get(id) ?? [];
      if (node !== NO_NODE) nodes.push(node);
      found.set(id, nodes);
    }
  }
  return found;
}

/** One entry for each NUMA node of the device; one without a topology if it has none. */
function perNode(resourceName: string, id: string, nodes: readonly number[]): wire.ContainerDevices[] {
  if (nodes.length === 0) return [{ resourceName, deviceIds: [id], topology: undefined }];
  return nodes.map((node) => ({ resourceName, deviceIds: [id], topology: topologyOf([node]) }));
}

function topologyOf(nodes: readonly number[]): wire.TopologyInfo {
  return { nodes: nodes.map((node) => ({ ID: BigInt(node) })) };
}

function memoryOf({ type, bytes, nodes }: AssignedMemory): wire.ContainerMemory {
  return { memoryType: type, size: BigInt(bytes), topology: topologyOf(nodes) };
}

function claimOf({ name, namespace, devices }: ContainerClaim): wire.DynamicResource {
  return {
    claimName: name,
    claimNamespace: namespace,
    claimResources: devices.map(({ cdiDevices, driver, pool, device, shareId }) => ({
      cdiDevices: cdiDevices.map((cdi) => ({ name: cdi })),
      driverName: driver,
      poolName: pool,
      deviceName: device,
      shareId,
    })),
  };
}

function nameOf({ metadata }: Pod): { name: string; namespace: string } {
  return { name: metadata.name ?? "", namespace: metadata.namespace ?? "" };
}
