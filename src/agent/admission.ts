import { machineInfo } from "../adapters/host/machine.ts";
import { filesystemSize, hasAppArmor, hugePages } from "../adapters/host/node-facts.ts";
import type { RuntimePort, RuntimeStatus } from "../adapters/runtime/port.ts";
import type { AgentOptions } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { writeAtomic } from "../lib/atomic-file.ts";
import type { Node } from "../model/generated/types.ts";
import { ARCH_LABEL, HOSTNAME_LABEL, OS_LABEL } from "../model/labels.ts";
import { type NodeResources, nodeResources } from "../node/index.ts";
import type { AdmissionNode, RejectionFile } from "../pods/index.ts";

export interface AdmissionParts {
  readonly nodeName: string;
  options(): AgentOptions;
  /** The node as the API server has it; undefined without one, or before it answered. */
  apiNode(): Node | undefined;
}

/** `ROOT/rejected_pods.json`. */
export function rejectionFile(host: { readSmall(path: string): string }, rootDir: string): RejectionFile {
  const path = `${rootDir}/rejected_pods.json`;
  return { load: () => host.readSmall(path), save: (text) => writeAtomic(path, text) };
}

/** What the node's own rules about pods are made from, and what its runtime can do. */
export class NodeRules {
  private readonly machine = machineInfo();
  private readonly appArmor = hasAppArmor();
  private storageBytes = 0;
  private runtime: RuntimeStatus | undefined;

  constructor(private readonly parts: AdmissionParts) {}

  /** Finds out what may take a while: called whenever the runtime was (re)connected. What fails is asked again then. */
  async refresh(runtime: Pick<RuntimePort, "status">, { signal }: Abortable): Promise<void> {
    const [storage, status] = await Promise.allSettled([
      filesystemSize(this.parts.options().rootDir),
      runtime.status({ signal }),
    ]);
    if (storage.status === "fulfilled") this.storageBytes = storage.value;
    if (status.status === "fulfilled") this.runtime = status.value;
  }

  /** Whether the default handler can make mounts read-only with all below them. */
  get hasRecursiveReadOnly(): boolean {
    return (
      this.runtime?.handlers.some(({ name, recursiveReadOnlyMounts }) => name === "" && recursiveReadOnlyMounts) ===
      true
    );
  }

  /** More starts at once than this make each other slow: most of a start is computing. */
  get usefulStarts(): number {
    return Math.max(4, 2 * this.machine.cores);
  }

  resources(): NodeResources {
    const { machine, storageBytes } = this;
    return nodeResources(
      { cores: machine.cores, memoryBytes: machine.memoryBytes, storageBytes, hugePages: hugePages() },
      this.parts.options(),
    );
  }

  /** The node as admission sees it now. */
  admission(): AdmissionNode {
    const { nodeName } = this.parts;
    const { nodeLabels, allowedUnsafeSysctls, maxPods } = this.parts.options();
    const { pods, ...allocatable } = this.resources().allocatable;
    const api = this.parts.apiNode();
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
      // 0 means no limit of their number.
      allocatable: { ...allocatable, ...(maxPods > 0 && pods !== undefined ? { pods } : {}) },
      kernel: this.machine.kernel,
      hasAppArmor: this.appArmor,
      hasStrictGroups: runtime === undefined ? undefined : runtime.supplementalGroupsPolicy,
      allowedUnsafeSysctls,
    };
  }
}
