import { createHash } from "node:crypto";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { FakeControl } from "./fake-control.ts";
import {
  type ImageFilesystems,
  type ImagePort,
  type ImagePull,
  type PullProgress,
  type RunningPull,
  RuntimeError,
  type RuntimeImage,
} from "./port.ts";

/** `present`: there; `pullable`: a pull succeeds; `broken`: the registry has it but every pull fails. */
export interface FakeImage {
  readonly state: "present" | "pullable" | "broken";
  readonly pullMs?: number;
  readonly sizeBytes?: number;
  readonly uid?: number;
  readonly username?: string;
  readonly pinned?: boolean;
  /** A pull without this password is refused. */
  readonly password?: string;
  /** A pull stops after so many bytes, of more than it has too, and goes on only when the image is set anew. */
  readonly stallsAtBytes?: number;
}

/** How often a stalled pull looks whether it may go on, in milliseconds. */
const STALL_MS = 100;

/** The images of the fake runtime; an image that was never named does not exist anywhere. */
export class FakeImages implements ImagePort {
  private readonly images = new Map<string, FakeImage>();
  /** When the running pulls were begun, in monotonic milliseconds. */
  private readonly pulling = new Map<string, number>();
  /** False for a runtime that does not report how far pulls are. */
  reportsProgress = true;

  constructor(private readonly deps: { clock: Clock; control: FakeControl }) {}

  /** Makes an image known under this name. */
  set(name: string, image: FakeImage): void {
    this.images.set(name, image);
  }

  /** The present image of this name or id. */
  find(reference: string): RuntimeImage | undefined {
    for (const [name, image] of this.images) {
      const found = describe(name, image);
      const matches = name === reference || found.id === reference || found.digests.includes(reference);
      if (image.state === "present" && matches) return found;
    }
    return undefined;
  }

  listImages({ signal }: Abortable): Promise<readonly RuntimeImage[]> {
    return this.deps.control.around(["listImages", ""], signal, () =>
      [...this.images].filter(([, image]) => image.state === "present").map(([name, image]) => describe(name, image)),
    );
  }

  imageStatus(image: string, { signal }: Abortable): Promise<RuntimeImage | undefined> {
    return this.deps.control.around(["imageStatus", image], signal, () => this.find(image));
  }

  pullImage(image: string, request: ImagePull, { signal }: Abortable): Promise<string> {
    return this.deps.control.around(["pullImage", image], signal, async () => {
      this.pulling.set(image, this.deps.clock.now().mono);
      try {
        return await this.transfer(image, request, signal);
      } finally {
        this.pulling.delete(image);
      }
    });
  }

  /** Bytes arrive evenly over the time of the pull. */
  pullProgress(
    pulls: readonly RunningPull[],
    { signal }: Abortable,
  ): Promise<ReadonlyMap<string, PullProgress> | undefined> {
    return this.deps.control.around(["pullProgress", ""], signal, () => {
      if (!this.reportsProgress) return undefined;
      return new Map(pulls.map(({ image }) => [image, this.progress(image)]));
    });
  }

  private progress(image: string): PullProgress {
    const began = this.pulling.get(image);
    const { sizeBytes = 1_000_000, pullMs = 0, stallsAtBytes } = this.images.get(image) ?? {};
    if (began === undefined) return { doneBytes: 0, isTransferring: false };
    const share = pullMs === 0 ? 1 : (this.deps.clock.now().mono - began) / pullMs;
    const received = Math.round(Math.min(sizeBytes * share, stallsAtBytes ?? sizeBytes));
    const doneBytes = Math.min(received, sizeBytes);
    const oversized = received > sizeBytes ? { oversized: describe(image, { state: "present" }).id } : {};
    return { doneBytes, totalBytes: sizeBytes, isTransferring: doneBytes < sizeBytes, ...oversized };
  }

  private async transfer(image: string, request: ImagePull, signal: AbortSignal): Promise<string> {
    const known = this.images.get(image);
    if (known?.pullMs !== undefined) await this.deps.clock.sleep(known.pullMs, { signal });
    while (this.images.get(image)?.stallsAtBytes !== undefined) await this.deps.clock.sleep(STALL_MS, { signal });
    if (known === undefined) throw pullError("NotFound", image, "not found");
    if (known.state === "broken") throw pullError("Unknown", image, "unexpected end of data");
    if (known.password !== undefined && known.password !== request.auth?.password) {
      throw pullError("PermissionDenied", image, "authorization failed");
    }
    const { stallsAtBytes: _, ...rest } = known;
    this.images.set(image, { ...rest, state: "present" });
    return describe(image, known).id;
  }

  removeImage(image: string, { signal }: Abortable): Promise<void> {
    return this.deps.control.around(["removeImage", image], signal, () => {
      const found = this.find(image);
      const name = found?.tags[0];
      const known = name === undefined ? undefined : this.images.get(name);
      if (name !== undefined && known !== undefined) this.images.set(name, { ...known, state: "pullable" });
    });
  }

  imageFilesystems({ signal }: Abortable): Promise<ImageFilesystems> {
    return this.deps.control.around(["imageFilesystems", ""], signal, () => {
      const present = [...this.images.values()].filter(({ state }) => state === "present");
      const usedBytes = present.reduce((total, { sizeBytes = 0 }) => total + sizeBytes, 0);
      return { images: [{ mountpoint: "/fake/images", usedBytes, inodesUsed: present.length }], containers: [] };
    });
  }
}

function describe(name: string, image: FakeImage): RuntimeImage {
  const digest = `sha256:${createHash("sha256").update(name).digest("hex")}`;
  return {
    id: digest,
    tags: [name],
    digests: [`${name.replace(/:[^:/]*$/, "")}@${digest}`],
    sizeBytes: image.sizeBytes ?? 1_000_000,
    ...(image.uid !== undefined && { uid: image.uid }),
    username: image.username ?? "",
    pinned: image.pinned ?? false,
  };
}

function pullError(code: "NotFound" | "Unknown" | "PermissionDenied", image: string, why: string): RuntimeError {
  return new RuntimeError(code, `failed to pull and unpack image "${image}": ${why}`);
}
