import type { ObservedPod } from "../../model/observed.ts";

/** What a pod consists of in the runtime, by id. */
export interface PodParts {
  readonly sandboxes: readonly string[];
  readonly containers: readonly { readonly id: string; readonly sandboxId: string }[];
}

const NOTHING: PodParts = { sandboxes: [], containers: [] };

/**
 * Which sandboxes and containers a pod has, as long as that is certain: what was listed once, and what the agent made
 * since. Nobody else makes parts of a pod, so a read need not list them again; whoever is not certain (a call failed,
 * something was removed, the connection was lost) doubts, and the next read lists.
 */
export class Inventory {
  private readonly certain = new Map<string, PodParts>();
  /** Pods that may have something in the runtime; all of them once everything was listed on this connection. */
  private readonly present = new Set<string>();
  private isComplete = false;
  /** Lists under way; one that something was made or doubted during tells nothing certain. */
  private readonly listing = new Map<string, object>();

  /** What the pod has, or undefined when only a list can tell. */
  partsOf(uid: string): PodParts | undefined {
    const parts = this.certain.get(uid);
    if (parts !== undefined) return parts;
    return this.isComplete && !this.present.has(uid) ? NOTHING : undefined;
  }

  /** A list of the whole runtime was made. */
  listedAll(uids: Iterable<string>): void {
    for (const uid of uids) this.present.add(uid);
    this.isComplete = true;
  }

  /** The parts of this pod are about to be listed; the ticket goes to `listed`. */
  beginList(uid: string): object {
    const ticket = {};
    this.listing.set(uid, ticket);
    return ticket;
  }

  /** This was the whole pod while nothing was made. */
  listed({ uid, sandboxes, containers }: ObservedPod, ticket: object): void {
    if (this.listing.get(uid) !== ticket) return;
    this.listing.delete(uid);
    this.certain.set(uid, {
      sandboxes: sandboxes.map(({ id }) => id),
      containers: containers.map(({ id, sandboxId }) => ({ id, sandboxId })),
    });
    this.present.add(uid);
  }

  /** The agent made a sandbox, or a container in one. */
  made(uid: string, id: string, sandboxId: string | undefined): void {
    const parts = this.partsOf(uid);
    this.listing.delete(uid);
    this.present.add(uid);
    if (parts === undefined) return;
    const { sandboxes, containers } = parts;
    if (sandboxId === undefined) this.certain.set(uid, { sandboxes: [...sandboxes, id], containers });
    else this.certain.set(uid, { sandboxes, containers: [...containers, { id, sandboxId }] });
  }

  /** Something may have been made or removed that nobody told of. */
  doubt(uid: string): void {
    this.listing.delete(uid);
    this.certain.delete(uid);
    this.present.add(uid);
  }

  doubtAll(): void {
    this.listing.clear();
    this.certain.clear();
    this.isComplete = false;
  }

  /** The pod is gone, with everything that it had. */
  forget(uid: string): void {
    this.listing.delete(uid);
    this.certain.delete(uid);
    this.present.delete(uid);
  }
}
