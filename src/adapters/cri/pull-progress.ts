import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { ownValue } from "../../lib/own-value.ts";
import { parseImageRef } from "../../model/image-ref.ts";
import type { CallOptions, GrpcChannel } from "../grpc/channel.ts";
import { type PullProgress, type RunningPull, RuntimeError } from "../runtime/port.ts";
import type { Info } from "./generated/containerd-content.ts";
import { contentService as rpc } from "./methods.ts";
import { assignManifests, type PullManifests } from "./pull-manifests.ts";

/** containerd labels each blob of a pull with its repository. */
const SOURCE_LABEL = "containerd.io/distribution.source.";
/** No registry accepts a larger manifest. */
const MANIFEST_BYTES = 4 * 1024 * 1024;
/** Manifests that are read for pulls that cannot be told apart. */
const MOST_SHARED = 8;
/** Images have at most 127 layers; what a hostile manifest has beyond this is left out. */
const MOST_PARTS = 512;
const DIGEST = /^[a-z0-9+._-]+:[0-9a-f]{32,}$/;
/** The digest at the end of an ingest's reference, such as `layer-sha256:…` or `layer-NAME@sha256:…`. */
const INGESTED_DIGEST = /(?:^|[-@])([a-z0-9+._]+:[0-9a-f]{32,})$/;

/**
 * How containerd reports a blob whose content is not what the manifest says. Only its own words and the image's name may
 * stand before it: what a registry answered is quoted further behind, and must not choose the blob.
 */
const BAD_BLOB = /^[\w ,:=-]*(?:"[^"]{1,512}": )?failed commit on ref "([^"]{1,256})": unexpected commit/;
/** Milliseconds that the removal of an ingest may take. */
const DISCARD_MS = 5000;

/** A blob that is being received. */
interface Ingest {
  readonly ref: string;
  readonly bytes: number;
  /** Wall-clock milliseconds of the last write. */
  readonly updatedAt: number;
}

/** What the pull of an image transfers: sizes by digest, and those of them that are complete. */
interface Parts {
  /** The manifest that names them; undefined if others may as well be meant. */
  readonly manifest: string | undefined;
  readonly sizes: Map<string, number>;
  readonly complete: Set<string>;
}

/**
 * How far running pulls are, from containerd's content store: one call for the ingests of all pulls, one for the blobs
 * that are complete, and for each pull its manifest once.
 */
export class ContainerdPullProgress {
  private readonly known = new Map<string, Parts>();
  /** References of blobs of which more was received than they have. */
  private readonly oversized = new Set<string>();

  constructor(
    private readonly channel: GrpcChannel,
    private readonly options: { namespace: string },
  ) {}

  /** Undefined if the runtime has no such service. Repeatable; what it remembers of an image ends with its pull. */
  async read(
    pulls: readonly RunningPull[],
    { signal }: Abortable,
  ): Promise<ReadonlyMap<string, PullProgress> | undefined> {
    const keys = new Set(pulls.map(keyOf));
    for (const key of this.known.keys()) if (!keys.has(key)) this.known.delete(key);
    const call = { signal, optional: true, metadata: { "containerd-namespace": this.options.namespace } };
    try {
      const ingests = await this.ingests(call);
      for (const group of byRepository(pulls)) await this.find(group, ingests, call);
      await this.markComplete(pulls, ingests, call);
      return new Map(pulls.map((pull) => [pull.image, this.progress(pull, ingests)]));
    } catch (error) {
      if (error instanceof RuntimeError && error.code === "Unimplemented") return undefined;
      throw error;
    }
  }

  /**
   * Removes what a failed pull has left of blobs with wrong content: containerd keeps it, goes on from there with the next
   * pull, and fails again, whatever the registry sends by then. Never rejects.
   */
  async discardBroken(error: unknown): Promise<void> {
    const bad = BAD_BLOB.exec(messageOf(error))?.[1];
    const refs = new Set([...this.oversized, ...(bad === undefined ? [] : [bad])]);
    this.oversized.clear();
    const metadata = { "containerd-namespace": this.options.namespace };
    const call = { signal: new AbortController().signal, timeoutMs: DISCARD_MS, metadata };
    for (const ref of refs) await this.channel.unary(rpc.abort, { ref }, call).catch(() => undefined);
  }

  private async ingests(call: CallOptions): Promise<ReadonlyMap<string, Ingest>> {
    const { statuses } = await this.channel.unary(rpc.listStatuses, {}, call);
    const found = new Map<string, Ingest>();
    for (const { ref, offset, updatedAt } of statuses) {
      const digest = INGESTED_DIGEST.exec(ref)?.[1];
      if (digest !== undefined) found.set(digest, { ref, bytes: Number(offset), updatedAt: updatedAt?.getTime() ?? 0 });
    }
    return found;
  }

  /** Finds the manifests of the pulls of one repository, as far as they have arrived, and what each has to transfer. */
  private async find(
    pulls: readonly RunningPull[],
    ingests: ReadonlyMap<string, Ingest>,
    call: CallOptions,
  ): Promise<void> {
    const manifestOf = (pull: RunningPull): string | undefined => this.known.get(keyOf(pull))?.manifest;
    const assigned = new Map(
      pulls.flatMap((pull) => [[pull, manifestOf(pull) ?? ""] as const]).filter(([, one]) => one),
    );
    const [first] = pulls;
    if (first === undefined || assigned.size === pulls.length) return;
    const { host, repository } = sourceOf(first.image);
    const label = `${SOURCE_LABEL}${host}`;
    const all = await this.list([`labels."${label}"~="${repository}"`], call);
    const isOwn = ({ labels }: Info): boolean => (ownValue(labels, label) ?? "").split(",").includes(repository);
    const isReceiving = (pull: RunningPull, digest: string): boolean => isOpen(ingests.get(digest), pull);
    const found = assignManifests(pulls, { blobs: all.filter(isOwn), assigned, isReceiving });
    for (const [pull, manifests] of found) await this.remember(pull, manifests, call);
  }

  private async remember(pull: RunningPull, { manifests, isShared }: PullManifests, call: CallOptions): Promise<void> {
    const key = keyOf(pull);
    const known = this.known.get(key);
    this.known.delete(key);
    const read = manifests.filter(({ size }) => size <= MANIFEST_BYTES).slice(0, MOST_SHARED);
    const [only] = read;
    if (only === undefined) return;
    const sizes = new Map<string, number>();
    for (const { digest } of read) {
      for (const [part, bytes] of partSizes(await this.content(digest, call))) {
        sizes.set(part, Math.max(bytes, sizes.get(part) ?? 0));
      }
    }
    for (const { digest, createdAt } of await this.list(digestFilters([...sizes.keys()]), call)) {
      if ((createdAt?.getTime() ?? 0) < pull.since) sizes.delete(digest);
    }
    const complete = new Set([...(known?.complete ?? [])].filter((digest) => sizes.has(digest)));
    this.known.set(key, { manifest: isShared ? undefined : only.digest, sizes, complete });
  }

  /** Asks for the blobs that are neither known to be complete nor being received. */
  private async markComplete(
    pulls: readonly RunningPull[],
    ingests: ReadonlyMap<string, Ingest>,
    call: CallOptions,
  ): Promise<void> {
    const pending = new Set<string>();
    for (const pull of pulls) {
      const { sizes, complete } = this.known.get(keyOf(pull)) ?? EMPTY;
      for (const digest of sizes.keys()) if (!complete.has(digest) && !ingests.has(digest)) pending.add(digest);
    }
    if (pending.size === 0) return;
    const present = new Set((await this.list(digestFilters([...pending]), call)).map(({ digest }) => digest));
    for (const { sizes, complete } of this.known.values()) {
      for (const digest of sizes.keys()) if (present.has(digest)) complete.add(digest);
    }
  }

  private progress(pull: RunningPull, ingests: ReadonlyMap<string, Ingest>): PullProgress {
    const parts = this.known.get(keyOf(pull));
    if (parts === undefined) return { doneBytes: 0, isTransferring: false };
    let [doneBytes, totalBytes, isTransferring] = [0, 0, false];
    let oversized: string | undefined;
    for (const [digest, size] of parts.sizes) {
      const ingest = parts.complete.has(digest) ? undefined : ingests.get(digest);
      doneBytes += parts.complete.has(digest) ? size : Math.min(size, ingest?.bytes ?? 0);
      totalBytes += size;
      if (!isOpen(ingest, pull)) continue;
      if ((ingest?.bytes ?? 0) < size) isTransferring = true;
      // Any pull may name a blob of another one, with a size of its own choice.
      if (ingest === undefined || ingest.bytes <= this.largestSize(digest)) continue;
      oversized = digest;
      this.oversized.add(ingest.ref);
    }
    const isShared = parts.manifest === undefined;
    return { doneBytes, totalBytes, isTransferring, ...(isShared && { isShared }), ...(oversized && { oversized }) };
  }

  /** The largest size that a running pull knows of a blob: which of them is right shows only when it is complete. */
  private largestSize(digest: string): number {
    return Math.max(...[...this.known.values()].map(({ sizes }) => sizes.get(digest) ?? 0));
  }

  private async list(filters: readonly string[], call: CallOptions): Promise<readonly Info[]> {
    const found: Info[] = [];
    if (filters.length === 0) return found;
    for await (const { info } of this.channel.stream(rpc.list, { filters: [...filters] }, call)) found.push(...info);
    return found;
  }

  private async content(digest: string, call: CallOptions): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const { data } of this.channel.stream(rpc.read, { digest }, call)) {
      chunks.push(data);
      bytes += data.length;
      if (bytes > MANIFEST_BYTES) return "";
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

const EMPTY: Parts = { manifest: undefined, sizes: new Map(), complete: new Set() };

/** Pulls of one repository have its blobs in common. */
function byRepository(pulls: readonly RunningPull[]): Iterable<readonly RunningPull[]> {
  const groups = new Map<string, RunningPull[]>();
  for (const pull of pulls) {
    const { host, repository } = sourceOf(pull.image);
    const key = `${host} ${repository}`;
    groups.set(key, [...(groups.get(key) ?? []), pull]);
  }
  return groups.values();
}

/** A later pull of the same image may be of another manifest. */
function keyOf({ image, since }: RunningPull): string {
  return `${image} ${since}`;
}

/** True for an ingest that this pull has written to; one that an earlier pull has left behind is older. */
function isOpen(ingest: Ingest | undefined, { since }: RunningPull): boolean {
  return ingest !== undefined && ingest.updatedAt >= since;
}

/** The host, without a port, and the repository by which containerd labels blobs. Pure. */
export function sourceOf(image: string): { readonly host: string; readonly repository: string } {
  const { registry, repository } = parseImageRef(image);
  if (registry === "" || registry === "index.docker.io" || registry === "docker.io") {
    return { host: "docker.io", repository: repository.includes("/") ? repository : `library/${repository}` };
  }
  const host = registry.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return { host, repository };
}

function digestFilters(digests: readonly string[]): readonly string[] {
  return digests.map((digest) => `digest=="${digest}"`);
}

/** Digests and sizes of an image's layers and configuration. A manifest of another form has none. Pure. */
export function partSizes(manifest: string): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const { digest, size } of descriptors(manifest).slice(0, MOST_PARTS)) {
    if (DIGEST.test(digest) && Number.isSafeInteger(size) && size > 0) sizes.set(digest, size);
  }
  return sizes;
}

interface Descriptor {
  readonly digest: string;
  readonly size: number;
}

function descriptors(manifest: string): readonly Descriptor[] {
  try {
    // A registry wrote it: nothing about its form is certain.
    const { config, layers } = (JSON.parse(manifest) ?? {}) as { config?: unknown; layers?: unknown };
    return [config, ...(Array.isArray(layers) ? layers : [])].filter(isDescriptor);
  } catch {
    return [];
  }
}

function isDescriptor(value: unknown): value is Descriptor {
  if (typeof value !== "object" || value === null) return false;
  const { digest, size } = value as Partial<Record<keyof Descriptor, unknown>>;
  return typeof digest === "string" && typeof size === "number";
}
