import { machineInfo } from "../adapters/host/machine.ts";
import { filesystemSize, hugePages, swapSize } from "../adapters/host/node-facts.ts";
import type { ImagePort, RuntimeImage, RuntimePort } from "../adapters/runtime/port.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { orAborted } from "../lib/or-aborted.ts";
import { gitVersion, reportedVersion } from "../lib/version.ts";
import type { NodeAddress, NodeCondition, NodeStatus } from "../model/generated/types.ts";
import { type DeviceCounts, nodeResources, withDevices } from "./capacity.ts";
import { nodeConditions } from "./conditions.ts";
import { declaredFeatures } from "./declared-features.ts";
import type { NodeAddresses } from "./node-addresses.ts";
import { type NodeIdentity, type NodeStatusFacts, nodeImages } from "./node-object.ts";
import { RuntimeHealth } from "./runtime-health.ts";

/** Timeout of a call to the runtime, in milliseconds; a slower one counts as failed. */
const ASK_MS = 5000;
/** Interval at which images are listed, in milliseconds. */
const IMAGES_MS = 30_000;

export interface NodeGatherDeps {
  readonly runtime: Pick<RuntimePort, "status" | "version">;
  readonly images: Pick<ImagePort, "listImages">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: OptionStore<typeof agentOptions>;
  readonly addresses: NodeAddresses;
  /** The conditions of pressure, as eviction has them. */
  pressure?(): readonly string[];
  /** The devices of plugins. */
  devices?(): DeviceCounts;
  /** Attachable volumes that are in use; undefined while unknown. */
  volumesInUse?(): readonly string[] | undefined;
  /** Bytes of the filesystem at a path; it may hang. */
  storageSize?(path: string): Promise<number>;
  /** Further problems that keep the node from being ready. */
  problems(): readonly string[];
  /** Conditions in addition to those that every node has. */
  moreConditions?(previous: readonly NodeCondition[] | undefined, now: string): readonly NodeCondition[];
}

/** Gathers the facts of the node status. A part that cannot be read never holds back the rest. */
export class NodeGatherer {
  private readonly machine = machineInfo();
  private imageList: { readonly at: number; readonly images: readonly RuntimeImage[] } | undefined;
  private runtimeName: string | undefined;
  private storageBytes = 0;
  private readonly health: RuntimeHealth;
  /** Fixed at start: a declared feature is not withdrawn while the agent runs. */
  private readonly declared: readonly string[];

  constructor(private readonly deps: NodeGatherDeps) {
    this.health = new RuntimeHealth(deps.clock);
    const { featureGates } = deps.store.current;
    this.declared = declaredFeatures((gate) => isGateOn(gate, featureGates));
  }

  /** The identity that the node is registered with. */
  identity(nodeName: string): NodeIdentity {
    const options = this.deps.store.current;
    return {
      name: nodeName,
      architecture: this.machine.architecture,
      labels: options.nodeLabels,
      taints: options.registerWithTaints,
      providerId: options.providerID,
      isExternalCloud: options.cloudProvider === "external",
      nodeIp: options.nodeIP,
      // The local API has no controller that attaches.
      controllerAttaches: options.enableControllerAttachDetach && !options.apiserver,
    };
  }

  async gather(previous: NodeStatus | undefined, { signal }: Abortable): Promise<NodeStatusFacts> {
    const { store, clock } = this.deps;
    const options = store.current;
    const [addresses, images, storageBytes, runtime] = await Promise.all([
      this.addresses(previous, signal),
      this.images(signal),
      this.storageSize(options.rootDir, signal),
      this.runtimeVersion(signal),
      this.ask((limited) => this.deps.runtime.status(limited), signal).then((status) => this.health.record(status)),
    ]);
    const { status } = this.health;
    const { machine } = this;
    const pressure = this.deps.pressure?.() ?? [];
    const volumesInUse = this.deps.volumesInUse?.();
    const health = {
      memoryPressure: pressure.includes("MemoryPressure"),
      diskPressure: pressure.includes("DiskPressure"),
      pidPressure: pressure.includes("PIDPressure"),
      problems: [...this.health.problems(), ...this.deps.problems()],
    };
    const now = `${new Date(clock.now().wall).toISOString().slice(0, 19)}Z`;
    return {
      addresses,
      resources: withDevices(
        nodeResources(
          { cores: machine.cores, memoryBytes: machine.memoryBytes, storageBytes, hugePages: hugePages() },
          options,
        ),
        this.deps.devices?.() ?? new Map(),
      ),
      conditions: [
        ...nodeConditions(health, previous?.conditions, now),
        ...(this.deps.moreConditions?.(previous?.conditions, now) ?? []),
      ],
      port: options.port,
      images: nodeImages(images, options.nodeStatusMaxImages),
      info: {
        machineId: machine.machineId,
        systemUuid: machine.systemUuid,
        bootId: machine.bootId,
        kernel: machine.kernel,
        osImage: machine.osImage,
        swapBytes: swapSize(),
        runtime,
        // Clients parse it: the Kubernetes version without the suffix of this agent.
        kubeletVersion: reportedVersion(options.version).replace(gitVersion, gitVersion.replace(/\+.*$/, "")),
      },
      handlers: status?.handlers ?? [],
      supplementalGroupsPolicy: status?.handlers.length ? status.supplementalGroupsPolicy : undefined,
      declaredFeatures: this.declared,
      ...(volumesInUse && { volumesInUse }),
    };
  }

  /**
   * A machine that lost its `--node-ip` keeps the addresses of the last report, as in Kubernetes, and so does one whose
   * DNS is slow.
   */
  private async addresses(previous: NodeStatus | undefined, signal: AbortSignal): Promise<readonly NodeAddress[]> {
    const { addresses, log } = this.deps;
    const refresh = (): Promise<readonly NodeAddress[]> =>
      addresses.refresh(previous).catch((error: unknown) => {
        log.warn("Failed to determine node addresses", { error: messageOf(error) });
        return addresses.current;
      });
    return (await this.ask(refresh, signal)) ?? addresses.current;
  }

  /** A filesystem that does not answer keeps its size. */
  private async storageSize(path: string, signal: AbortSignal): Promise<number> {
    const { storageSize = filesystemSize } = this.deps;
    this.storageBytes = (await this.ask(() => storageSize(path), signal)) ?? this.storageBytes;
    return this.storageBytes;
  }

  private async images(signal: AbortSignal): Promise<readonly RuntimeImage[]> {
    const now = this.deps.clock.now().mono;
    if (this.imageList !== undefined && now - this.imageList.at < IMAGES_MS) return this.imageList.images;
    const images = await this.ask((limited) => this.deps.images.listImages(limited), signal);
    if (images !== undefined) this.imageList = { at: now, images };
    return this.imageList?.images ?? [];
  }

  private async runtimeVersion(signal: AbortSignal): Promise<string> {
    const version = await this.ask((limited) => this.deps.runtime.version(limited), signal);
    if (version !== undefined) this.runtimeName = `${version.name}://${version.version}`;
    return this.runtimeName ?? "Unknown";
  }

  private async ask<T>(question: (limited: Abortable) => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    try {
      return await withScope([signal], { clock: this.deps.clock, ms: ASK_MS }, (limited) =>
        orAborted(question({ signal: limited }), limited),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }
}
