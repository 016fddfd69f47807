import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
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

/** A filesystem that takes longer is left out of the sample, in milliseconds. */
const SPACE_MS = 200;
/** Timeout of the call to the runtime, and the age at which it is made again. */
const RUNTIME_MS = 2000;
const IMAGES_AGE_MS = 30_000;
const RETRY_MS = 1000;

/** Samples the filesystems of the node. A filesystem or a runtime that hangs never delays the sample of the others. */
export class FilesystemSampler {
  /** The newest sample. */
  latest: FilesystemSamples | undefined;
  private runtime: { readonly images: RuntimeFilesystem; readonly containers: RuntimeFilesystem } | undefined;
  private askedAt: number | undefined;

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
      this.space(this.options.rootDir, signal),
      this.space(images?.mountpoint, signal),
      this.space(containers?.mountpoint, signal),
    ]);
    this.latest = {
      at,
      ...(node && { node }),
      ...(image && { image }),
      ...(container && { container }),
      ...(images && { imageBytes: images.usedBytes, imageInodes: images.inodesUsed }),
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
    // Soon again: the runtime may just be starting.
    else if (this.runtime === undefined) this.askedAt = this.deps.clock.now().mono - IMAGES_AGE_MS + RETRY_MS;
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
