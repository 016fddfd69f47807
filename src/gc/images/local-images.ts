import { createHash } from "node:crypto";
import type { RuntimeImage } from "../../adapters/runtime/port.ts";

/** Where the agent records the images that it pulled, below its root directory, as Kubernetes does. */
const RECORDS = "image_manager/pulled";

/**
 * Tells images that the agent pulled, and could pull again, from those that were imported or built here: by its own
 * pulls, and by the records of those before it.
 */
export class LocalImages {
  private readonly pulled = new Set<string>();

  constructor(
    private readonly deps: { list(directory: string): Promise<readonly string[]> },
    private readonly rootDir: string,
  ) {}

  /** Takes over the reference that the runtime gave an image that was pulled. */
  recordPull(ref: string): void {
    this.pulled.add(ref);
  }

  recordRemoval(imageId: string): void {
    this.pulled.delete(imageId);
  }

  /** Returns a test for images that no registry is known to have. */
  async test(): Promise<(image: RuntimeImage) => boolean> {
    const records = new Set(await this.deps.list(`${this.rootDir}/${RECORDS}`));
    return ({ id, digests }) => {
      const references = [id, ...digests];
      return !references.some((ref) => this.pulled.has(ref) || records.has(recordName(ref)));
    };
  }
}

/** The file name of an image's pull record. */
export function recordName(ref: string): string {
  return `sha256-${createHash("sha256").update(ref).digest("hex")}`;
}
