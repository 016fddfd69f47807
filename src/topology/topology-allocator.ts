import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { Rejection } from "../model/rejection.ts";
import {
  ANYWHERE,
  type HintProvider,
  type Readmission,
  TooManyNodesError,
  type TopologyHint,
} from "../model/topology.ts";
import { type MergeRules, mergeHints } from "./merge-hints.ts";
import type { TopologyCounters, TopologyScope } from "./metrics.ts";
import { shortageOf } from "./shortage.ts";

interface TopologyDeps {
  /** In the order in which they allocate. */
  readonly providers: readonly HintProvider[];
  readonly clock: Clock;
  readonly counted: TopologyCounters;
  /** The pod without containers that do not start again; the pod itself if missing. */
  remaining?(pod: Pod): Pod;
}

/** In Kubernetes' words. */
const MISALIGNED = "Resources cannot be allocated with Topology locality";
const POD_LEVEL: Readonly<Record<TopologyScope, string>> = {
  container: "Pod Scope pod with pod-level resources failed admission with a container-level topology manager",
  pod: "Pod Scope pod with pod-level resources failed admission under pod-scope topology manager",
};

/** What has to be aligned; `merge` is undefined for the policy none. */
export interface TopologyRules {
  readonly merge?: MergeRules | undefined;
  readonly scope: TopologyScope;
  /** True for pods whose pod-level resources are allocated (the gate PodLevelResourceManagers). */
  isPodLevel?(pod: Pod): boolean;
}

/**
 * Allocates what the providers hand out, container by container: those that initialize the pod first, as in Kubernetes.
 * Each provider persists its own allocations, so that nothing is left to record here.
 */
export class TopologyAllocator {
  readonly name = "topology";

  constructor(
    private readonly deps: TopologyDeps,
    private readonly rules: TopologyRules,
  ) {}

  /**
   * Allocates what the containers of the pod need; a rejected pod may have a part of it until it is released. All of it
   * is reserved before the call returns: what providers have to wait for (a disk, a plugin) comes after that.
   */
  async allocate(pod: Pod, options: Abortable): Promise<{ readonly rejection: Rejection } | undefined> {
    const { clock, counted } = this.deps;
    const started = clock.now().mono;
    let isAdmitted = false;
    try {
      const rejection = this.reserve(pod) ?? (await this.commit(pod, options));
      isAdmitted = rejection === undefined;
      if (isAdmitted && this.rules.scope === "pod") this.countAligned();
      return rejection && { rejection };
    } finally {
      counted.admission({ ms: clock.now().mono - started });
      if (!isAdmitted && this.rules.merge !== undefined) counted.rejected();
    }
  }

  /** Counts as an attempt, as in Kubernetes, which allocates before it compares requests with what the node has. */
  problem(pod: Pod): Rejection | undefined {
    const { clock, counted } = this.deps;
    const started = clock.now().mono;
    const rejection = this.reserve(pod);
    this.release(pod.metadata.uid ?? "");
    counted.admission({ ms: clock.now().mono - started });
    if (rejection !== undefined && this.rules.merge !== undefined) counted.rejected();
    return rejection;
  }

  readmit(pod: Pod): Readmission | { readonly rejection: Rejection } {
    try {
      const answers = this.deps.providers.map((provider) => provider.readmit?.(pod));
      return answers.find((answer) => answer !== undefined);
    } catch (error) {
      return { rejection: unexpected(error) };
    }
  }

  /**
   * Only providers that the pod has nothing of are asked; what the others gave it counts for the alignment. Containers
   * that do not start again get nothing.
   */
  async adopt(given: Pod, options: Abortable): Promise<Rejection | undefined> {
    const pod = this.remaining(given);
    const lacking = this.lacking(pod);
    if (lacking.length === 0) return undefined;
    let isAdopted = false;
    try {
      const rejection = this.reserve(pod, lacking);
      if (rejection !== undefined) return rejection;
      for (const provider of lacking) await provider.commit(pod, options);
      isAdopted = true;
      return undefined;
    } finally {
      if (!isAdopted) for (const provider of lacking) provider.release(pod.metadata.uid ?? "");
    }
  }

  isLackedBy(pod: Pod): boolean {
    return this.lacking(this.remaining(pod)).length > 0;
  }

  release(uid: string): void {
    for (const provider of this.deps.providers) provider.release(uid);
  }

  /** The providers have their own records. */
  restore(): void {}

  held(): Iterable<string> {
    return this.deps.providers.flatMap((provider) => [...(provider.held?.() ?? [])]);
  }

  private lacking(pod: Pod): readonly HintProvider[] {
    const containers = this.isWhole(pod) ? [undefined] : containersOf(pod);
    const isNeeded = (provider: HintProvider): boolean =>
      containers.some((container) => provider.needs?.(pod, container).size !== 0);
    return this.deps.providers.filter((provider) => provider.isLackedBy?.(pod) === true && isNeeded(provider));
  }

  /** What a pod as a whole has does not depend on its init containers. */
  private remaining(pod: Pod): Pod {
    return this.isWhole(pod) ? pod : (this.deps.remaining?.(pod) ?? pod);
  }

  private reserve(pod: Pod, providers = this.deps.providers): Rejection | undefined {
    const { merge, scope } = this.rules;
    const forPod = merge !== undefined && scope === "pod" ? this.align(pod, undefined, merge) : undefined;
    if (forPod !== undefined && "reason" in forPod) return forPod;
    if (forPod !== undefined && this.isWhole(pod)) return this.reservePod(pod, forPod, providers);
    for (const container of containersOf(pod)) {
      const affinity = forPod ?? (merge === undefined ? ANYWHERE : this.align(pod, container, merge));
      if ("reason" in affinity) return affinity;
      for (const provider of providers) {
        const rejection = reserveOf(provider, pod, { container, affinity });
        if (rejection !== undefined) return rejection;
      }
      if (scope === "container") this.countAligned();
    }
    return undefined;
  }

  private reservePod(pod: Pod, affinity: TopologyHint, providers: readonly HintProvider[]): Rejection | undefined {
    for (const provider of providers) {
      for (const container of provider.reservePod === undefined ? containersOf(pod) : [undefined]) {
        const rejection = reserveOf(provider, pod, { container, affinity });
        if (rejection !== undefined) return rejection;
      }
    }
    return undefined;
  }

  private async commit(pod: Pod, options: Abortable): Promise<Rejection | undefined> {
    try {
      for (const provider of this.deps.providers) await provider.commit(pod, options);
      return undefined;
    } catch (error) {
      options.signal.throwIfAborted();
      return unexpected(error);
    }
  }

  /** The affinity that suits all providers, or why the policy admits none; an error of a provider rejects the pod, too. */
  private align(pod: Pod, container: Container | undefined, merge: MergeRules): TopologyHint | Rejection {
    try {
      return this.affinity(pod, container, merge);
    } catch (error) {
      if (!(error instanceof TooManyNodesError)) return unexpected(error);
      return this.misaligned(pod, [error.message, "set topologyManagerPolicy to none"]);
    }
  }

  private affinity(pod: Pod, container: Container | undefined, merge: MergeRules): TopologyHint | Rejection {
    const { providers, counted } = this.deps;
    const hints = providers.map((provider) =>
      container === undefined ? provider.podHints(pod) : provider.hints(pod, container),
    );
    const { hint, isAdmitted } = mergeHints(hints, merge);
    if (isAdmitted) return hint;
    if (merge.policy === "single-numa-node") counted.misaligned(this.rules.scope, "numa_node");
    const problems = container === undefined ? providers.flatMap((provider) => provider.problem?.(pod) ?? []) : [];
    const short = shortageOf(providers, pod, { container, nodes: merge.nodes });
    return this.misaligned(pod, [...problems, ...(short === "" ? [] : [short])]);
  }

  private misaligned(pod: Pod, why: readonly string[]): Rejection {
    const message = this.isPodLevel(pod) ? POD_LEVEL[this.rules.scope] : MISALIGNED;
    return { reason: "TopologyAffinityError", message: [message, ...why].join(": ") };
  }

  /** True if all of the pod is allocated at once. */
  private isWhole(pod: Pod): boolean {
    return this.rules.merge !== undefined && this.rules.scope === "pod" && this.isPodLevel(pod);
  }

  private isPodLevel(pod: Pod): boolean {
    return this.rules.isPodLevel?.(pod) === true;
  }

  /** Only one NUMA node is a promise of alignment. */
  private countAligned(): void {
    const { merge, scope } = this.rules;
    if (merge?.policy === "single-numa-node") this.deps.counted.aligned(scope, "numa_node");
  }
}

/** Of one provider, for the container or for the pod as a whole. */
function reserveOf(
  provider: HintProvider,
  pod: Pod,
  { container, affinity }: { readonly container: Container | undefined; readonly affinity: TopologyHint },
): Rejection | undefined {
  try {
    if (container === undefined) return provider.reservePod?.(pod, affinity);
    return provider.reserve(pod, container, affinity);
  } catch (error) {
    const nodes = [...(provider.free?.(provider.name).keys() ?? [])].sort((x, y) => x - y);
    const { reason, message } = unexpected(error);
    const short = shortageOf([provider], pod, { container, nodes });
    return { reason, message: short === "" ? message : `${message}: ${short}` };
  }
}

function unexpected(error: unknown): Rejection {
  const message = `Allocate failed due to ${messageOf(error)}, which is unexpected`;
  return { reason: "UnexpectedAdmissionError", message };
}

/** In the order in which they start. */
function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}
