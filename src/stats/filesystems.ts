import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock, Instant } from "../lib/clock.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { FilesystemSpace } from "../model/usage.ts";
import type { FilesystemSamples } from "./samples.ts";

/** A filesystem as the runtime reports it. */
export interface RuntimeFilesystem {
  readonly mountpoint: string;
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

/** The filesystems of images, and those of writable layers if the runtime reports them apart. */
export interface RuntimeFilesystems {
  readonly images: readonly RuntimeFilesystem[];
  readonly containers: readonly RuntimeFilesystem[];
}

export interface FilesystemDeps {
  readonly clock: Clock;
  /** Space of the filesystem at a path; undefined if it cannot be read. Never rejects, but may hang. */
  space(path: string): Promise<FilesystemSpace | undefined>;
  imageFilesystems(options: Abortable): Promise<RuntimeFilesystems>;
}

/** A filesystem that takes longer is not waited for: its last measurement counts, up to this age, in milliseconds. */
const SPACE_MS = 200;
const SPACE_KEPT_MS = 60_000;
/** Timeout of the call to the runtime, and the age at which it is made again. */
const RUNTIME_MS = 2000;
const IMAGES_AGE_MS = 30_000;
const RETRY_MS = 1000;

interface Measured {
  readonly space: FilesystemSpace;
  /** When the measurement began. */
  readonly at: Instant;
}

type Role = "node" | "image" | "container";

/** Samples the filesystems of the node. A filesystem or a runtime that hangs never delays the sample of the others. */
export class FilesystemSampler {
  /** The newest sample. */
  latest: FilesystemSamples | undefined;
  private runtime: { readonly images: RuntimeFilesystem; readonly containers: RuntimeFilesystem } | undefined;
  private askedAt: number | undefined;
  private readonly measured = new Map<Role, Measured>();

  constructor(
    private readonly deps: FilesystemDeps,
    private readonly options: { readonly rootDir: string },
  ) {}

  /** Returns the last sample if it is not older, else takes one. */
  async sample({ signal, maxAgeMs }: Abortable & { maxAgeMs: number }): Promise<FilesystemSamples> {
    const { clock } = this.deps;
    const at = clock.now();
    if (this.latest !== undefined && at.mono - this.latest.at.mono < maxAgeMs) return this.latest;
    const { images, containers } = (await this.runtimeFilesystems(signal)) ?? {};
    const [node, image, container] = await Promise.all([
      this.measure("node", this.options.rootDir, signal),
      this.measure("image", images?.mountpoint, signal),
      this.measure("container", containers?.mountpoint, signal),
    ]);
    const oldest = [node, image, container].reduce((at, one) => (one && one.at.mono < at.mono ? one.at : at), at);
    this.latest = {
      at: oldest,
      ...(node && { node: node.space }),
      ...(image && { image: image.space }),
      ...(container && { container: container.space }),
      ...(images && { imageBytes: images.usedBytes, imageInodes: images.inodesUsed }),
      ...(containers && { containerBytes: containers.usedBytes, containerInodes: containers.inodesUsed }),
    };
    return this.latest;
  }

  /** The last answer of the runtime; only the first is waited for, later ones are fetched in the background. */
  private async runtimeFilesystems(signal: AbortSignal): Promise<FilesystemSampler["runtime"]> {
    const now = this.deps.clock.now().mono;
    const isFirst = this.askedAt === undefined;
    if (this.askedAt === undefined || now - this.askedAt >= IMAGES_AGE_MS) {
      this.askedAt = now;
      const asked = this.askRuntime(signal);
      if (isFirst) await asked;
    }
    return this.runtime;
  }

  private async askRuntime(signal: AbortSignal): Promise<void> {
    const work = (limited: AbortSignal) => this.deps.imageFilesystems({ signal: limited });
    const found = await this.within(RUNTIME_MS, signal, work).catch(() => undefined);
    const images = found?.images.find(({ mountpoint }) => mountpoint !== "");
    const containers = found?.containers.find(({ mountpoint }) => mountpoint !== "") ?? images;
    if (images !== undefined && containers !== undefined) this.runtime = { images, containers };
    // Soon again: the runtime may just be starting, and then counts nothing yet.
    if ((this.runtime?.images.usedBytes ?? 0) === 0)
      this.askedAt = this.deps.clock.now().mono - IMAGES_AGE_MS + RETRY_MS;
  }

  /**
   * Measures a filesystem. On a busy machine that may take long just when it matters: then the last measurement counts,
   * and this one does once it is there. Undefined if it cannot be read, or hangs.
   */
  private async measure(role: Role, path: string | undefined, signal: AbortSignal): Promise<Measured | undefined> {
    if (path === undefined) return undefined;
    const { clock } = this.deps;
    const at = clock.now();
    const reading = this.deps.space(path).then((space) => {
      if (space === undefined) this.measured.delete(role);
      else this.measured.set(role, { space, at });
    });
    await this.within(SPACE_MS, signal, () => reading);
    const found = this.measured.get(role);
    return found !== undefined && clock.now().mono - found.at.mono <= SPACE_KEPT_MS ? found : undefined;
  }

  /** Space of the filesystem at a path; undefined if it cannot be read in time. */
  async space(path: string | undefined, signal: AbortSignal): Promise<FilesystemSpace | undefined> {
    return path === undefined ? undefined : this.within(SPACE_MS, signal, () => this.deps.space(path));
  }

  private async within<T>(
    ms: number,
    signal: AbortSignal,
    work: (limited: AbortSignal) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await withScope([signal], { clock: this.deps.clock, ms }, (limited) => orAborted(work(limited), limited));
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }
}
