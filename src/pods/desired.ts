import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Pod } from "../model/generated/types.ts";

/** A pod as its source wants it. */
export interface DesiredPod {
  readonly uid: string;
  readonly pod: Pod;
  readonly source: string;
  readonly warnings: readonly string[];
  /** Wall-clock milliseconds at which this UID was first seen. */
  readonly seenAt: number;
}

/** The complete list of one source. A pod that is missing from it is no longer wanted. */
export interface SourceSnapshot {
  readonly source: string;
  readonly pods: readonly { readonly pod: Pod; readonly warnings: readonly string[] }[];
  /** The source has manifests that it could not read: its list may lack pods. */
  readonly isIncomplete?: boolean;
}

/** The changes of a snapshot; removals come first, as in Kubernetes. */
export interface DesiredChange {
  readonly removed: readonly DesiredPod[];
  readonly added: readonly DesiredPod[];
  readonly updated: readonly DesiredPod[];
}

/**
 * The desired pods by UID. The sources are its only writers, by whole snapshots; a snapshot without a pod followed by
 * one with it is a removal and an addition, however close they are.
 */
export class DesiredPods {
  private readonly bySource = new Map<string, Map<string, DesiredPod>>();
  private readonly byUid = new Map<string, DesiredPod>();
  private readonly awaited: Set<string>;
  private readonly incomplete = new Set<string>();
  private readonly completions = new Listeners();

  constructor(
    private readonly deps: { clock: Clock },
    options: { sources: readonly string[] },
  ) {
    this.awaited = new Set(options.sources);
  }

  /** True once every configured source has delivered its first list; before that no pod is orphaned. */
  get allSourcesReady(): boolean {
    return this.awaited.size === 0;
  }

  /** True once every source has delivered its list and none of them had manifests that it could not read. */
  get isComplete(): boolean {
    return this.allSourcesReady && this.incomplete.size === 0;
  }

  /** Calls `fn` each time the list becomes complete, until the signal aborts. */
  onComplete(fn: () => void, options: Abortable): void {
    this.completions.add(fn, options);
  }

  /** True while the last list of the source may lack pods. */
  isIncomplete(source: string): boolean {
    return this.incomplete.has(source);
  }

  get(uid: string): DesiredPod | undefined {
    return this.byUid.get(uid);
  }

  list(): readonly DesiredPod[] {
    return [...this.byUid.values()];
  }

  /** Takes over a source's list; returns what it changed. */
  apply(snapshot: SourceSnapshot): DesiredChange {
    const wasComplete = this.isComplete;
    const before = this.bySource.get(snapshot.source) ?? new Map<string, DesiredPod>();
    const after = new Map<string, DesiredPod>();
    const added: DesiredPod[] = [];
    const updated: DesiredPod[] = [];
    for (const { pod, warnings } of snapshot.pods) {
      const uid = pod.metadata.uid ?? "";
      if (uid === "" || after.has(uid)) continue;
      const known = before.get(uid);
      // A source that tracks changes itself passes the same object again.
      const unchanged = known !== undefined && (known.pod === pod || JSON.stringify(known.pod) === JSON.stringify(pod));
      const next = unchanged
        ? known
        : {
            uid,
            pod,
            source: snapshot.source,
            warnings,
            seenAt: known?.seenAt ?? this.deps.clock.now().wall,
          };
      after.set(uid, next);
      if (known === undefined) added.push(next);
      else if (!unchanged) updated.push(next);
    }
    const removed = [...before.values()].filter((pod) => !after.has(pod.uid));
    for (const { uid } of removed) this.byUid.delete(uid);
    for (const [uid, pod] of after) this.byUid.set(uid, pod);
    this.bySource.set(snapshot.source, after);
    this.awaited.delete(snapshot.source);
    if (snapshot.isIncomplete === true) this.incomplete.add(snapshot.source);
    else this.incomplete.delete(snapshot.source);
    if (!wasComplete && this.isComplete) this.completions.call();
    return { removed, added, updated };
  }
}
