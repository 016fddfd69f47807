import type { Pod } from "../../model/generated/types.ts";
import { CONFIG_SOURCE_ANNOTATION } from "../../model/labels.ts";
import { isStaticPod } from "../../model/pod-facts.ts";
import type { DesiredPods } from "../desired.ts";
import type { ListedPod } from "../observe/observe.ts";

interface OrphanDeps {
  readonly desired: Pick<DesiredPods, "allSourcesReady" | "get" | "isIncomplete">;
  hasWorker(uid: string): boolean;
  /** True for a pod that this agent may stop, on a runtime that others use too. */
  isOwned(pod: ListedPod): boolean;
  /** Stops and removes a pod of which only this is known. */
  stop(pod: Pod): void;
}

/** Orphaned pods: those that the runtime listed and no source wants. */
export class OrphanedPods {
  /** Pods of the last list that have neither a worker nor been found wanted. */
  private candidates = new Map<string, ListedPod>();

  constructor(private readonly deps: OrphanDeps) {}

  /** Takes over a list of the runtime. */
  listed(pods: ReadonlyMap<string, ListedPod>): void {
    this.candidates = new Map(pods);
  }

  /**
   * Stops orphaned pods, once every source has delivered its pods. Pods of a source that is incomplete are left alone:
   * the unreadable manifest may be theirs.
   */
  stopAll(): void {
    const { desired } = this.deps;
    if (!desired.allSourcesReady) return;
    for (const [uid, listed] of this.candidates) {
      if (this.deps.hasWorker(uid) || desired.get(uid) !== undefined) this.candidates.delete(uid);
      else if (!desired.isIncomplete(listed.annotations[CONFIG_SOURCE_ANNOTATION] ?? "")) this.stop(uid, listed);
    }
  }

  /** Stops earlier versions of a static pod that only the runtime knows: its manifest changed while no agent ran. */
  stopEarlierVersions(pod: Pod): void {
    const { uid, name, namespace } = pod.metadata;
    for (const [other, listed] of this.candidates) {
      const isNamesake = listed.name === name && listed.namespace === namespace;
      if (other !== uid && isNamesake && isStaticPod(podOf(other, listed))) this.stop(other, listed);
    }
  }

  private stop(uid: string, listed: ListedPod): void {
    if (!this.deps.isOwned(listed)) return;
    this.candidates.delete(uid);
    if (!this.deps.hasWorker(uid)) this.deps.stop(podOf(uid, listed));
  }
}

/** As much of a pod as its sandbox tells. */
function podOf(uid: string, { name, namespace, annotations }: ListedPod): Pod {
  const source = annotations[CONFIG_SOURCE_ANNOTATION];
  return {
    metadata: { uid, name, namespace, ...(source && { annotations: { [CONFIG_SOURCE_ANNOTATION]: source } }) },
    spec: { containers: [] },
  };
}
