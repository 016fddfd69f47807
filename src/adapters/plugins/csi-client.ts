import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { type EndedCall, GrpcChannel, method } from "../grpc/channel.ts";
import * as csi from "./generated/csi.ts";

/** Time limit of one call to a driver in milliseconds, as in Kubernetes. */
const CALL_MS = 120_000;
/** The longest node id that CSI allows, in bytes. */
const NODE_ID_BYTES = 256;
/** No driver names more topology keys. */
const MOST_SEGMENTS = 64;
const SEGMENT_BYTES = 317;

const NODE = "/csi.v1.Node";
const METHODS = {
  stage: method(`${NODE}/NodeStageVolume`, csi.NodeStageVolumeRequest, csi.NodeStageVolumeResponse),
  unstage: method(`${NODE}/NodeUnstageVolume`, csi.NodeUnstageVolumeRequest, csi.NodeUnstageVolumeResponse),
  publish: method(`${NODE}/NodePublishVolume`, csi.NodePublishVolumeRequest, csi.NodePublishVolumeResponse),
  unpublish: method(`${NODE}/NodeUnpublishVolume`, csi.NodeUnpublishVolumeRequest, csi.NodeUnpublishVolumeResponse),
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

/** The node service of one CSI driver. Every failure is a RuntimeError with the driver's own message. */
export class CsiClient {
  private readonly channel: GrpcChannel;

  constructor(
    readonly endpoint: string,
    onCall: (call: EndedCall) => void = () => undefined,
  ) {
    this.channel = new GrpcChannel(endpoint, onCall, { hasOwnConnection: true });
  }

  async info({ signal }: Abortable): Promise<CsiNodeInfo> {
    const answer = await this.channel.unary(METHODS.info, {}, { signal, timeoutMs: CALL_MS });
    const segments = Object.entries(answer.accessibleTopology?.segments ?? {}).slice(0, MOST_SEGMENTS);
    return {
      nodeId: clip(answer.nodeId, NODE_ID_BYTES),
      maxVolumes: Number(answer.maxVolumesPerNode),
      topology: Object.fromEntries(
        segments.map(([key, value]) => [clip(key, SEGMENT_BYTES), clip(value, SEGMENT_BYTES)]),
      ),
    };
  }

  async capabilities({ signal }: Abortable): Promise<CsiCapabilities> {
    const { capabilities } = await this.channel.unary(METHODS.capabilities, {}, { signal, timeoutMs: CALL_MS });
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

  async stage(request: CsiStageRequest, { signal }: Abortable): Promise<void> {
    await this.channel.unary(METHODS.stage, stageFields(request), { signal, timeoutMs: CALL_MS });
  }

  async unstage(request: { volumeId: string; stagingPath: string }, { signal }: Abortable): Promise<void> {
    const { volumeId, stagingPath: stagingTargetPath } = request;
    await this.channel.unary(METHODS.unstage, { volumeId, stagingTargetPath }, { signal, timeoutMs: CALL_MS });
  }

  async publish(request: CsiPublishRequest, { signal }: Abortable): Promise<void> {
    const { targetPath, readonly } = request;
    const fields = { ...stageFields(request), targetPath, readonly };
    await this.channel.unary(METHODS.publish, fields, { signal, timeoutMs: CALL_MS });
  }

  async unpublish(request: { volumeId: string; targetPath: string }, { signal }: Abortable): Promise<void> {
    await this.channel.unary(METHODS.unpublish, request, { signal, timeoutMs: CALL_MS });
  }

  close(): void {
    this.channel.close();
  }
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
