import { machineInfo } from "../adapters/host/machine.ts";
import { filesystemSize, hasAppArmor, hugePages } from "../adapters/host/node-facts.ts";
import type { RuntimePort, RuntimeStatus } from "../adapters/runtime/port.ts";
import { type AgentOptions, isGateOn } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { LiveValue } from "../lib/live.ts";
import type { Node, Taint } from "../model/generated/types.ts";
import { ARCH_LABEL, HOSTNAME_LABEL, OS_LABEL } from "../model/labels.ts";
import { type NodeResources, nodeResources, withDevices, withPatchedResources } from "./capacity.ts";
import { declaredFeatures } from "./declared-features.ts";

/** What `NodeRules` is built from. */
export interface NodeRulesDeps {
  readonly nodeName: string;
  options(): AgentOptions;
  /** The Node object of the API server; undefined without one, or before it answered. */
  apiNode(): Node | undefined;
  /** Bytes of the filesystem at a path; it may hang. */
  storageSize?(path: string): Promise<number>;
  /** The conditions of pressure. */
  pressure?(): readonly string[];
  /** Devices of plugins that pods may have or already have, by resource. */
  devices?(): ReadonlyMap<string, number>;
}

/** The node as pod admission sees it. */
export interface NodeForAdmission {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Without `pods` their number is not limited. */
  readonly allocatable: Readonly<Record<string, string>>;
  readonly kernel: string;
  readonly hasAppArmor: boolean;
  /** Undefined until the runtime has answered. */
  readonly hasStrictGroups: boolean | undefined;
  readonly allowedUnsafeSysctls: readonly string[];
  readonly hasPodLevelResources: boolean;
  /** Tolerations may compare numbers. */
  readonly comparesNumbers: boolean;
  /** False if the scheduler cannot have claimed devices for extended resources. */
  readonly claimsExtendedResources: boolean;
  /** The features that the node declares; undefined if it declares none. */
  readonly declaredFeatures: readonly string[] | undefined;
  /** The conditions of pressure, such as `MemoryPressure`. */
  readonly pressure: readonly string[];
  readonly isShuttingDown: boolean;
}

/** The node's own facts that pods are admitted and made with: resources, labels, and the features of its runtime. */
export class NodeRules {
  /** True while the node shuts down. */
  readonly shutdown = new LiveValue(false);
  private readonly machine = machineInfo();
  private readonly appArmor = hasAppArmor();
  private storageBytes = 0;
  private runtime: RuntimeStatus | undefined;

  constructor(private readonly deps: NodeRulesDeps) {}

  /** Reads what may take a while; called at each relist. A part that fails keeps its last value. */
  async refresh(runtime: Pick<RuntimePort, "status">, { signal }: Abortable): Promise<void> {
    const { storageSize = filesystemSize } = this.deps;
    // Each as soon as it is there: a filesystem may hang.
    await Promise.allSettled([
      storageSize(this.deps.options().rootDir).then((bytes) => {
        this.storageBytes = bytes;
      }),
      runtime.status({ signal }).then((status) => {
        this.runtime = status;
      }),
    ]);
  }

  /** True if the handler supports recursive read-only mounts; false for one that is not known. */
  hasRecursiveReadOnly(handler: string | undefined): boolean {
    const found = this.runtime?.handlers.find(({ name }) => name === handler);
    return found?.recursiveReadOnlyMounts === true;
  }

  /** The default of `maxConcurrentStarts`: more starts at once slow each other down, most of a start is computing. */
  get usefulStarts(): number {
    return Math.max(4, 2 * this.machine.cores);
  }

  resources(): NodeResources {
    const { machine, storageBytes } = this;
    return nodeResources(
      { cores: machine.cores, memoryBytes: machine.memoryBytes, storageBytes, hugePages: hugePages() },
      this.deps.options(),
    );
  }

  /** The node for admission, as of now. */
  admission(): NodeForAdmission {
    const { nodeName } = this.deps;
    const { nodeLabels, allowedUnsafeSysctls, maxPods, featureGates } = this.deps.options();
    const api = this.deps.apiNode();
    const devices = [...(this.deps.devices?.() ?? [])].map(
      ([name, count]) => [name, { capacity: count, allocatable: count }] as const,
    );
    const own = withDevices(this.resources(), new Map(devices));
    const { pods, ...allocatable } = withPatchedResources(own, api?.status).allocatable;
    const { runtime } = this;
    return {
      name: nodeName,
      labels: {
        [HOSTNAME_LABEL]: nodeName,
        [OS_LABEL]: "linux",
        [ARCH_LABEL]: this.machine.architecture,
        ...nodeLabels,
        ...api?.metadata.labels,
      },
      taints: api?.spec?.taints ?? [],
      // 0 means no limit.
      allocatable: { ...allocatable, ...(maxPods > 0 && pods !== undefined ? { pods } : {}) },
      kernel: this.machine.kernel,
      hasAppArmor: this.appArmor,
      hasStrictGroups: runtime === undefined ? undefined : runtime.supplementalGroupsPolicy,
      allowedUnsafeSysctls,
      hasPodLevelResources: isGateOn("PodLevelResources", featureGates),
      comparesNumbers: isGateOn("TaintTolerationComparisonOperators", featureGates),
      claimsExtendedResources: isGateOn("DRAExtendedResource", featureGates),
      declaredFeatures: isGateOn("NodeDeclaredFeatures", featureGates)
        ? declaredFeatures((gate) => isGateOn(gate, featureGates))
        : undefined,
      pressure: this.deps.pressure?.() ?? [],
      isShuttingDown: this.shutdown.current,
    };
  }
}
