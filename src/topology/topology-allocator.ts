import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { Rejection } from "../model/rejection.ts";
import { ANYWHERE, type HintProvider, type TopologyHint } from "../model/topology.ts";
import { type MergeRules, mergeHints } from "./merge-hints.ts";
import type { TopologyCounters, TopologyScope } from "./metrics.ts";
import { shortageOf } from "./shortage.ts";

interface TopologyDeps {
  /** In the order in which they allocate. */
  readonly providers: readonly HintProvider[];
  readonly clock: Clock;
  readonly counted: TopologyCounters;
}

/** What has to be aligned; `merge` is undefined for the policy none. */
export interface TopologyRules {
  readonly merge?: MergeRules | undefined;
  readonly scope: TopologyScope;
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

  /** Allocates what the containers of the pod need; a rejected pod may have a part of it until it is released. */
  async allocate(pod: Pod, options: Abortable): Promise<{ readonly rejection: Rejection } | undefined> {
    const { clock, counted } = this.deps;
    const started = clock.now().mono;
    let isAdmitted = false;
    try {
      const rejection = await this.admit(pod, options);
      isAdmitted = rejection === undefined;
      return rejection && { rejection };
    } finally {
      counted.admission({ ms: clock.now().mono - started });
      if (!isAdmitted && this.rules.merge !== undefined) counted.rejected();
    }
  }

  release(uid: string): void {
    for (const provider of this.deps.providers) provider.release(uid);
  }

  /** The providers have their own records. */
  restore(): void {}

  held(): Iterable<string> {
    return this.deps.providers.flatMap((provider) => [...(provider.held?.() ?? [])]);
  }

  private async admit(pod: Pod, options: Abortable): Promise<Rejection | undefined> {
    const { merge, scope } = this.rules;
    const forPod = merge !== undefined && scope === "pod" ? this.align(pod, undefined, merge) : undefined;
    if (forPod !== undefined && "reason" in forPod) return forPod;
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const affinity = forPod ?? (merge === undefined ? ANYWHERE : this.align(pod, container, merge));
      if ("reason" in affinity) return affinity;
      const rejection = await this.allocateContainer(pod, container, { ...options, affinity });
      if (rejection !== undefined) return rejection;
      if (scope === "container") this.countAligned();
    }
    if (scope === "pod") this.countAligned();
    return undefined;
  }

  private async allocateContainer(
    pod: Pod,
    container: Container,
    grant: Abortable & { readonly affinity: TopologyHint },
  ): Promise<Rejection | undefined> {
    for (const provider of this.deps.providers) {
      try {
        const rejection = await provider.allocate(pod, container, grant);
        if (rejection !== undefined) return rejection;
      } catch (error) {
        grant.signal.throwIfAborted();
        const nodes = [...(provider.free?.(provider.name).keys() ?? [])].sort((x, y) => x - y);
        const short = shortageOf([provider], pod, { container, nodes });
        const message = `Allocate failed due to ${messageOf(error)}, which is unexpected`;
        return { reason: "UnexpectedAdmissionError", message: short === "" ? message : `${message}: ${short}` };
      }
    }
    return undefined;
  }

  /** The affinity that suits all providers, or why the policy admits none. */
  private align(pod: Pod, container: Container | undefined, merge: MergeRules): TopologyHint | Rejection {
    const { providers, counted } = this.deps;
    const hints = providers.map((provider) =>
      container === undefined ? provider.podHints(pod) : provider.hints(pod, container),
    );
    const { hint, isAdmitted } = mergeHints(hints, merge);
    if (isAdmitted) return hint;
    if (merge.policy === "single-numa-node") counted.misaligned(this.rules.scope, "numa_node");
    const short = shortageOf(providers, pod, { container, nodes: merge.nodes });
    const message = "Resources cannot be allocated with Topology locality";
    return { reason: "TopologyAffinityError", message: short === "" ? message : `${message}: ${short}` };
  }

  /** Only one NUMA node is a promise of alignment. */
  private countAligned(): void {
    const { merge, scope } = this.rules;
    if (merge?.policy === "single-numa-node") this.deps.counted.aligned(scope, "numa_node");
  }
}
