import { machineInfo } from "../adapters/host/machine.ts";
import { filesystemSize, hugePages, swapSize } from "../adapters/host/node-facts.ts";
import type { ImagePort, RuntimeImage, RuntimePort, RuntimeStatus } from "../adapters/runtime/port.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { gitVersion, reportedVersion } from "../lib/version.ts";
import type { NodeAddress, NodeCondition, NodeStatus } from "../model/generated/types.ts";
import {
  declaredFeatures,
  type NodeFacts,
  type NodeIdentity,
  nodeConditions,
  nodeImages,
  nodeResources,
} from "../node/index.ts";

/** A runtime that does not answer for this long is down, for the node's state. */
const ASK_MS = 5000;
/** The list of images is asked for this often. */
const IMAGES_MS = 30_000;

export interface NodeGatherDeps {
  readonly runtime: Pick<RuntimePort, "status" | "version">;
  readonly images: Pick<ImagePort, "listImages">;
  readonly clock: Clock;
  readonly store: OptionStore<typeof agentOptions>;
  readonly addresses: readonly NodeAddress[];
  /** What else keeps the node from being ready. */
  problems(): readonly string[];
  /** Conditions beside the ones that every node has. */
  moreConditions?(previous: readonly NodeCondition[] | undefined, now: string): readonly NodeCondition[];
}

/** Finds out what the status of the node tells. A part that cannot be found out never keeps the rest back. */
export class NodeGatherer {
  private readonly machine = machineInfo();
  private imageList: { readonly at: number; readonly images: readonly RuntimeImage[] } | undefined;
  private runtimeName: string | undefined;
  /** A promise is not taken back while the agent runs. */
  private readonly declared: readonly string[];

  constructor(private readonly deps: NodeGatherDeps) {
    const { featureGates } = deps.store.current;
    this.declared = declaredFeatures((gate) => isGateOn(gate, featureGates));
  }

  /** What the node is, for its registration. */
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
      controllerAttaches: options.enableControllerAttachDetach,
    };
  }

  async gather(previous: NodeStatus | undefined, { signal }: Abortable): Promise<NodeFacts> {
    const { store, clock, addresses } = this.deps;
    const options = store.current;
    const [status, images, storageBytes, runtime] = await Promise.all([
      this.ask((limited) => this.deps.runtime.status(limited), signal),
      this.images(signal),
      filesystemSize(options.rootDir),
      this.runtimeVersion(signal),
    ]);
    const { machine } = this;
    const health = {
      ...{ memoryPressure: false, diskPressure: false, pidPressure: false },
      problems: [...runtimeProblems(status), ...this.deps.problems()],
    };
    const now = `${new Date(clock.now().wall).toISOString().slice(0, 19)}Z`;
    // A cloud's controller that has filled the addresses in knows better.
    const isFilled = options.cloudProvider === "external" && (previous?.addresses ?? []).length > 0;
    return {
      addresses: isFilled ? (previous?.addresses ?? []) : addresses,
      resources: nodeResources(
        { cores: machine.cores, memoryBytes: machine.memoryBytes, storageBytes, hugePages: hugePages() },
        options,
      ),
      conditions: [
        ...nodeConditions(health, previous?.conditions, now),
        ...(this.deps.moreConditions?.(previous?.conditions, now) ?? []),
      ],
      port: options.port,
      images: nodeImages(images, options.nodeStatusMaxImages),
      info: {
        ...{ machineId: machine.machineId, systemUuid: machine.systemUuid, bootId: machine.bootId },
        ...{ kernel: machine.kernel, osImage: machine.osImage, swapBytes: swapSize() },
        runtime,
        // Others parse it: it is the version whose behaviour we follow, without our own.
        kubeletVersion: reportedVersion(options.version).replace(gitVersion, gitVersion.replace(/\+.*$/, "")),
      },
      handlers: status?.handlers ?? [],
      supplementalGroupsPolicy: status?.handlers.length ? status.supplementalGroupsPolicy : undefined,
      declaredFeatures: this.declared,
      // No kind of volume that is supported is attached by a controller.
      volumesInUse: [],
    };
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
        question({ signal: limited }),
      );
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }
}

function runtimeProblems(status: RuntimeStatus | undefined): string[] {
  if (status === undefined) return ["container runtime is down"];
  if (!status.ready) return [`container runtime not ready: ${status.message}`];
  return status.networkReady ? [] : [`container runtime network not ready: ${status.message}`];
}
