import { createHash } from "node:crypto";
import { status } from "@grpc/grpc-js";
import { required } from "./node-service.ts";
import { type LoopVolumes, Refusal } from "./volumes.ts";

/** Of a volume for which nobody asks for a size. XFS needs 300 MiB; files are sparse. */
const DEFAULT_BYTES = 320 * 1024 * 1024;
const MOST_BYTES = 2 ** 40;

interface CapacityRange {
  readonly requiredBytes: number;
  readonly limitBytes: number;
}

interface Capability {
  readonly accessMode?: object | null;
}

/** Identity and controller of the driver, so that its volumes can be made, grown and removed as CSI has it. */
export class LoopController {
  constructor(
    private readonly volumes: LoopVolumes,
    private readonly name: string,
  ) {}

  get identity(): Readonly<Record<string, (request: never) => object>> {
    return {
      getPluginInfo: () => ({ name: this.name, vendorVersion: "1.0" }),
      // The controller service; volumes grow while they are used.
      getPluginCapabilities: () => ({ capabilities: [{ service: { type: 1 } }, { volumeExpansion: { type: 1 } }] }),
      probe: () => ({ ready: { value: true } }),
    };
  }

  get methods(): Readonly<Record<string, (request: never) => object>> {
    return {
      // Create, delete, expand.
      controllerGetCapabilities: () => ({ capabilities: [1, 9].map((type) => ({ rpc: { type } })) }),
      createVolume: (request: {
        name: string;
        capacityRange: CapacityRange | null;
        volumeCapabilities: readonly Capability[];
      }) => this.create(request),
      deleteVolume: ({ volumeId }: { volumeId: string }) => {
        required({ volumeId });
        if (/^[A-Za-z0-9._-]+$/.test(volumeId)) this.volumes.remove(volumeId);
        return {};
      },
      validateVolumeCapabilities: (request: { volumeId: string; volumeCapabilities: readonly Capability[] }) => {
        const { volumeId, volumeCapabilities } = request;
        required({ volumeId, "volume capabilities": volumeCapabilities[0] });
        this.volumes.find(volumeId);
        return { confirmed: { volumeCapabilities } };
      },
      controllerExpandVolume: (request: { volumeId: string; capacityRange: CapacityRange | null }) => {
        const { volumeId, capacityRange } = request;
        required({ volumeId, "capacity range": capacityRange });
        const volume = this.volumes.find(volumeId);
        const bytes = Math.max(volume.bytes, sizeOf(capacityRange));
        if (bytes > volume.bytes) this.volumes.resize(volume, bytes);
        return { capacityBytes: bytes, nodeExpansionRequired: true };
      },
    };
  }

  private create(request: {
    readonly name: string;
    readonly capacityRange: CapacityRange | null;
    readonly volumeCapabilities: readonly Capability[];
  }): object {
    const { name, capacityRange, volumeCapabilities } = request;
    required({ name, "volume capabilities": volumeCapabilities[0] });
    const bytes = sizeOf(capacityRange);
    const known = this.volumes.byName(name);
    if (known !== undefined && known.bytes !== bytes) {
      throw new Refusal(status.ALREADY_EXISTS, `volume ${name} exists with ${known.bytes} bytes`);
    }
    const id = `loop-${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;
    const volume = known ?? this.volumes.create({ id, name, bytes });
    return { volume: { volumeId: volume.id, capacityBytes: volume.bytes } };
  }
}

function sizeOf(range: CapacityRange | null): number {
  const { requiredBytes = 0, limitBytes = 0 } = range ?? {};
  const bytes = requiredBytes || Math.min(DEFAULT_BYTES, limitBytes || DEFAULT_BYTES);
  if (bytes > MOST_BYTES || (limitBytes > 0 && bytes > limitBytes)) {
    throw new Refusal(status.OUT_OF_RANGE, `${bytes} bytes are not possible`);
  }
  return bytes;
}
