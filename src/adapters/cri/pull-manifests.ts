import { parseImageRef } from "../../model/image-ref.ts";
import type { RunningPull } from "../runtime/port.ts";
import type { Info } from "./generated/containerd-content.ts";

/** containerd labels a manifest with the digests of its parts, and an index with those of its manifests. */
const PART_LABEL = "containerd.io/gc.ref.content.";
const INDEX_PART_LABEL = `${PART_LABEL}m.`;

/** The manifests that a pull may be of. */
export interface PullManifests {
  readonly manifests: readonly Info[];
  /** True if other pulls of the repository may be of them as well: nothing tells which. */
  readonly isShared: boolean;
}

/** What is known of one repository. */
export interface RepositoryFacts {
  /** Its blobs. */
  readonly blobs: readonly Info[];
  /** Digests of manifests by the pull that is known to be of them. */
  readonly assigned: ReadonlyMap<RunningPull, string>;
  /** True if the pull receives the blob with this digest. */
  isReceiving(pull: RunningPull, digest: string): boolean;
}

/**
 * Decides which manifests the pulls of one repository are of; none for a pull whose manifest has not arrived. containerd
 * does not record it, so it follows from digests in image names and from when manifests arrived: one that only one of
 * the pulls can have brought is that pull's. What is left belongs to all the others together. Pure.
 */
export function assignManifests(
  pulls: readonly RunningPull[],
  facts: RepositoryFacts,
): ReadonlyMap<RunningPull, PullManifests> {
  const { blobs, assigned, isReceiving } = facts;
  const manifests = blobs.filter((blob) => partsOf(blob).length > 0).sort((a, b) => createdAt(b) - createdAt(a));
  const taken = new Set(assigned.values());
  const isFree = ({ digest }: Info): boolean => !taken.has(digest);
  const isFresh = (pull: RunningPull, info: Info): boolean => createdAt(info) >= pull.since;
  const isOpen = (pull: RunningPull, info: Info): boolean => partsOf(info).some((part) => isReceiving(pull, part));
  const best = (pull: RunningPull, among: readonly Info[]): Info | undefined =>
    among.find((info) => isOpen(pull, info)) ?? among.find((info) => isFresh(pull, info));

  const found = new Map<RunningPull, PullManifests>();
  const assign = (pull: RunningPull, manifest: Info): void => {
    found.set(pull, { manifests: [manifest], isShared: false });
    taken.add(manifest.digest);
  };
  let rest = pulls.filter((pull) => !assigned.has(pull));
  for (const pull of rest) {
    const named = namedManifests(pull, { blobs, manifests });
    const one = best(pull, named ?? (pulls.length === 1 ? manifests : []));
    if (one !== undefined) assign(pull, one);
    else if (named !== undefined) found.set(pull, { manifests: [], isShared: false });
  }
  rest = rest.filter((pull) => !found.has(pull));
  for (let before = -1; before !== rest.length; ) {
    before = rest.length;
    for (const pull of rest) {
      const others = rest.filter((other) => other !== pull && !found.has(other));
      const own = manifests.filter(
        (info) => isFree(info) && isFresh(pull, info) && !others.some((other) => isFresh(other, info)),
      );
      const one = best(pull, own);
      if (one !== undefined) assign(pull, one);
    }
    rest = rest.filter((pull) => !found.has(pull));
  }
  for (const pull of rest) {
    const fresh = manifests.filter((info) => isFree(info) && isFresh(pull, info));
    const open = manifests.filter((info) => isOpen(pull, info));
    const own = fresh.length > 0 ? fresh : open.some(isFree) ? open.filter(isFree) : open;
    found.set(pull, { manifests: own, isShared: own.length > 0 && (rest.length > 1 || !own.every(isFree)) });
  }
  return found;
}

/** The manifests that the digest in the image's name stands for; undefined if it has none. */
function namedManifests(
  { image }: RunningPull,
  { blobs, manifests }: { blobs: readonly Info[]; manifests: readonly Info[] },
): readonly Info[] | undefined {
  const { digest } = parseImageRef(image);
  if (digest === "") return undefined;
  const parts = blobs
    .filter((blob) => blob.digest === digest)
    .flatMap(({ labels }) => values(labels, INDEX_PART_LABEL));
  return manifests.filter((info) => info.digest === digest || parts.includes(info.digest));
}

/** The digests that a manifest names; none for an index and for what is not a manifest. Pure. */
function partsOf({ labels }: Info): readonly string[] {
  const ofManifests = values(labels, INDEX_PART_LABEL);
  return values(labels, PART_LABEL).filter((digest) => !ofManifests.includes(digest));
}

function values(labels: Info["labels"], prefix: string): readonly string[] {
  return Object.entries(labels).flatMap(([name, digest]) => (name.startsWith(prefix) ? [digest] : []));
}

function createdAt(info: Info): number {
  return info.createdAt?.getTime() ?? 0;
}
