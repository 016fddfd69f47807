import { PODS } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import type { Informer } from "../informers.ts";
import { keyOf, partsOf } from "../object-index.ts";
import { isTerminal } from "../pod-state.ts";

/** Names of the claims that a pod uses; those of ephemeral volumes are made for it. */
export function claimNamesOf({ metadata, spec }: Pod): readonly string[] {
  return (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return [persistentVolumeClaim.claimName];
    return ephemeral === undefined ? [] : [`${metadata.name ?? ""}-${name}`];
  });
}

/** Pods by the claims that they use. */
export class ClaimConsumers {
  private readonly pods: Informer<Pod>;
  private readonly users = new Map<string, Set<string>>();

  constructor(deps: Pick<ControllerDeps, "informers">) {
    this.pods = deps.informers.of(PODS);
  }

  /** Calls `wake` with the key of each claim whose use changed. */
  follow(wake: (claim: string) => void, { signal }: Abortable): void {
    this.pods.onChange(
      (change) => {
        const { kind, object } = change;
        const { namespace = "" } = object.metadata;
        const isSame = change.kind === "updated" && stateOf(change.object) === stateOf(change.previous);
        for (const name of claimNamesOf(object)) {
          const claim = `${namespace}/${name}`;
          const users = this.users.get(claim) ?? new Set<string>();
          if (kind === "deleted") users.delete(keyOf(object));
          else users.add(keyOf(object));
          if (users.size === 0) this.users.delete(claim);
          else this.users.set(claim, users);
          if (!isSame) wake(claim);
        }
      },
      { signal },
    );
  }

  of(claim: string): readonly Pod[] {
    return [...(this.users.get(claim) ?? [])].flatMap((key) => {
      const { namespace, name } = partsOf(key);
      const pod = this.pods.get(namespace, name);
      return pod === undefined ? [] : [pod];
    });
  }
}

/** What makes a difference for the claims of a pod. */
function stateOf(pod: Pod): string {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  return JSON.stringify([pod.spec.nodeName, isTerminal(pod), deletionTimestamp, deletionGracePeriodSeconds]);
}
