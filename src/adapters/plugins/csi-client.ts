import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { type DeepPartial, GrpcChannel, type Method, method } from "../grpc/channel.ts";
import type { GrpcCode } from "../grpc/grpc-error.ts";
import { CsiError, csiError } from "./csi-error.ts";
import * as csi from "./generated/csi.ts";

/** Time limit of one call to a driver in milliseconds, as in Kubernetes. */
const CALL_MS = 120_000;
/** Fields of the largest answer of a driver, far more than any has: each may take a hundred bytes once it is decoded. */
const ANSWER_FIELDS = 10_000;
/** The longest node id that CSI allows, in bytes. */
const NODE_ID_BYTES = 256;
/** No driver names more topology keys. */
const MOST_SEGMENTS = 64;
const SEGMENT_BYTES = 317;
/** What is kept of a driver's words about a volume's health, in bytes: they become an event. */
const CONDITION_BYTES = 1024;

const NODE = "/csi.v1.Node";
/** The methods of the node service. */
export const csiNodeService = {
  stage: method(`${NODE}/NodeStageVolume`, csi.NodeStageVolumeRequest, csi.NodeStageVolumeResponse),
  unstage: method(`${NODE}/NodeUnstageVolume`, csi.NodeUnstageVolumeRequest, csi.NodeUnstageVolumeResponse),
  publish: method(`${NODE}/NodePublishVolume`, csi.NodePublishVolumeRequest, csi.NodePublishVolumeResponse),
  unpublish: method(`${NODE}/NodeUnpublishVolume`, csi.NodeUnpublishVolumeRequest, csi.NodeUnpublishVolumeResponse),
  expand: method(`${NODE}/NodeExpandVolume`, csi.NodeExpandVolumeRequest, csi.NodeExpandVolumeResponse),
  stats: method(`${NODE}/NodeGetVolumeStats`, csi.NodeGetVolumeStatsRequest, csi.NodeGetVolumeStatsResponse),
  capabilities: method(`${NODE}/NodeGetCapabilities`, csi.NodeGetCapabilitiesRequest, csi.NodeGetCapabilitiesResponse),
  info: method(`${NODE}/NodeGetInfo`, csi.NodeGetInfoRequest, csi.NodeGetInfoResponse),
};

/** What a driver can do on a node besides publishing volumes. */
export interface CsiCapabilities {
  readonly stages: boolean;
  readonly mountsWithGroup: boolean;
  /** Tells one writer from many writers on one node. */
  readonly countsWriters: boolean;
  readonly expands: boolean;
  readonly hasStats: boolean;
  readonly hasCondition: boolean;
}

/** The node as a driver knows it. */
export interface CsiNodeInfo {
  readonly nodeId: string;
  /** 0: the driver sets no limit. */
  readonly maxVolumes: number;
  readonly topology: Readonly<Record<string, string>>;
}

type Texts = Readonly<Record<string, string>>;

/** How a volume is to be used. */
export interface CsiUse {
  readonly mode: keyof typeof csi.VolumeCapability_AccessMode_Mode;
  /** Undefined for a raw block device. */
  readonly filesystem:
    | { readonly type: string; readonly options: readonly string[]; readonly group?: number }
    | undefined;
}

export interface CsiStageRequest {
  readonly volumeId: string;
  readonly publishContext: Texts;
  readonly stagingPath: string;
  readonly use: CsiUse;
  /** Must not be logged. */
  readonly secrets: Texts;
  readonly context: Texts;
}

export interface CsiPublishRequest extends CsiStageRequest {
  readonly targetPath: string;
  readonly readonly: boolean;
}

export interface CsiExpandRequest {
  readonly volumeId: string;
  /** Where the volume is published; for a block device the device. */
  readonly volumePath: string;
  /** Empty if the driver does not stage. */
  readonly stagingPath: string;
  readonly bytes: number;
  readonly use: CsiUse;
  /** Must not be logged. */
  readonly secrets: Texts;
}

/** What a driver tells of a volume's space; bytes or inodes are undefined if it does not count them. */
export interface CsiVolumeStats {
  readonly bytes: CsiUsage | undefined;
  readonly inodes: CsiUsage | undefined;
  /** Undefined if the driver reports no health. */
  readonly condition: { readonly isAbnormal: boolean; readonly message: string } | undefined;
}

export interface CsiUsage {
  readonly available: number;
  readonly total: number;
  readonly used: number;
}

/** One call that ended. */
export interface CsiCall {
  /** With the service: `/csi.v1.Node/NodeStageVolume`. */
  readonly method: string;
  readonly tookMs: number;
  readonly code: GrpcCode;
  /** It was about a volume of an in-tree kind that the driver has taken over. */
  readonly isMigrated: boolean;
}

export interface CsiCallOptions extends Abortable {
  readonly isMigrated?: boolean;
}

/** The node service of one CSI driver. Every failure of a call is a CsiError with the driver's own message. */
export class CsiClient {
  private readonly channel: GrpcChannel;

  constructor(
    readonly endpoint: string,
    private readonly onCall: (call: CsiCall) => void = () => undefined,
  ) {
    this.channel = new GrpcChannel(endpoint, undefined, { hasOwnConnection: true, failureOf: csiError });
  }

  async info(options: CsiCallOptions): Promise<CsiNodeInfo> {
    const answer = await this.call(csiNodeService.info, {}, options);
    const segments = Object.entries(answer.accessibleTopology?.segments ?? {}).slice(0, MOST_SEGMENTS);
    return {
      nodeId: clip(answer.nodeId, NODE_ID_BYTES),
      maxVolumes: Number(answer.maxVolumesPerNode),
      topology: Object.fromEntries(
        segments.map(([key, value]) => [clip(key, SEGMENT_BYTES), clip(value, SEGMENT_BYTES)]),
      ),
    };
  }

  async capabilities(options: CsiCallOptions): Promise<CsiCapabilities> {
    const { capabilities } = await this.call(csiNodeService.capabilities, {}, options);
    const all = new Set<number>(capabilities.flatMap(({ rpc }) => rpc?.type ?? []));
    const { STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, EXPAND_VOLUME, VOLUME_CONDITION } =
      csi.NodeServiceCapability_RPC_Type;
    const { SINGLE_NODE_MULTI_WRITER, VOLUME_MOUNT_GROUP } = csi.NodeServiceCapability_RPC_Type;
    return {
      stages: all.has(STAGE_UNSTAGE_VOLUME),
      hasStats: all.has(GET_VOLUME_STATS),
      expands: all.has(EXPAND_VOLUME),
      hasCondition: all.has(VOLUME_CONDITION),
      countsWriters: all.has(SINGLE_NODE_MULTI_WRITER),
      mountsWithGroup: all.has(VOLUME_MOUNT_GROUP),
    };
  }

  async stage(request: CsiStageRequest, options: CsiCallOptions): Promise<void> {
    named(request.volumeId, request.stagingPath, "staging target path");
    await this.call(csiNodeService.stage, stageFields(request), options);
  }

  async unstage(request: { volumeId: string; stagingPath: string }, options: CsiCallOptions): Promise<void> {
    const { volumeId, stagingPath: stagingTargetPath } = request;
    named(volumeId, stagingTargetPath, "staging target path");
    await this.call(csiNodeService.unstage, { volumeId, stagingTargetPath }, options);
  }

  async publish(request: CsiPublishRequest, options: CsiCallOptions): Promise<void> {
    const { targetPath, readonly } = request;
    named(request.volumeId, targetPath, "target path");
    await this.call(csiNodeService.publish, { ...stageFields(request), targetPath, readonly }, options);
  }

  async unpublish(request: { volumeId: string; targetPath: string }, options: CsiCallOptions): Promise<void> {
    named(request.volumeId, request.targetPath, "target path");
    await this.call(csiNodeService.unpublish, request, options);
  }

  /** Grows the volume and what is on it; resolves to the size that the driver reports, 0 if it reports none. */
  async expand(request: CsiExpandRequest, options: CsiCallOptions): Promise<number> {
    const { volumeId, volumePath, stagingPath, bytes, use, secrets } = request;
    named(volumeId, volumePath, "volume path");
    const fields = {
      volumeId,
      volumePath,
      stagingTargetPath: stagingPath,
      capacityRange: { requiredBytes: BigInt(bytes), limitBytes: 0n },
      volumeCapability: capability(use),
      secrets: { ...secrets },
    };
    const { capacityBytes } = await this.call(csiNodeService.expand, fields, options);
    return Number(capacityBytes);
  }

  async stats(request: { volumeId: string; volumePath: string }, options: CsiCallOptions): Promise<CsiVolumeStats> {
    named(request.volumeId, request.volumePath, "target path");
    const { usage, volumeCondition } = await this.call(csiNodeService.stats, request, options);
    const of = (unit: number): CsiUsage | undefined => {
      const found = usage.findLast((one) => one.unit === unit);
      return found && { available: Number(found.available), total: Number(found.total), used: Number(found.used) };
    };
    const { BYTES, INODES } = csi.VolumeUsage_Unit;
    return {
      bytes: of(BYTES),
      inodes: of(INODES),
      condition: volumeCondition && {
        isAbnormal: volumeCondition.abnormal,
        message: clip(volumeCondition.message, CONDITION_BYTES),
      },
    };
  }

  close(): void {
    this.channel.close();
  }

  private async call<Request, Response>(
    called: Method<Request, Response>,
    request: DeepPartial<Request>,
    { signal, isMigrated = false }: CsiCallOptions,
  ): Promise<Response> {
    const began = performance.now();
    const ended = (code: GrpcCode): void =>
      this.onCall({ method: called.path, tookMs: performance.now() - began, code, isMigrated });
    try {
      const method = { ...called, mostFields: ANSWER_FIELDS };
      const answer = await this.channel.unary(method, request, { signal, timeoutMs: CALL_MS });
      ended("OK");
      return answer;
    } catch (error) {
      ended(error instanceof CsiError ? error.code : "Canceled");
      throw error;
    }
  }
}

/** Throws, in the words of Kubernetes, for a call that says nothing. */
function named(volumeId: string, path: string, what: string): void {
  if (volumeId === "") throw new Error("missing volume id");
  if (path === "") throw new Error(`missing ${what}`);
}

function stageFields(request: CsiStageRequest): Partial<csi.NodeStageVolumeRequest> {
  const { volumeId, publishContext, stagingPath, use, secrets, context } = request;
  return {
    volumeId,
    publishContext: { ...publishContext },
    stagingTargetPath: stagingPath,
    volumeCapability: capability(use),
    secrets: { ...secrets },
    volumeContext: { ...context },
  };
}

function capability({ mode, filesystem }: CsiUse): csi.VolumeCapability {
  const accessMode = { mode: csi.VolumeCapability_AccessMode_Mode[mode] };
  if (filesystem === undefined) return { block: {}, accessMode };
  const { type, options, group } = filesystem;
  const volumeMountGroup = group === undefined ? "" : String(group);
  return { mount: { fsType: type, mountFlags: [...options], volumeMountGroup }, accessMode };
}
