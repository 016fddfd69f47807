import { type Abortable, AbortScope } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { LiveValue } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Node } from "../model/generated/types.ts";

const RETRY = { initialMs: 500, maxMs: 30_000 };

export interface PodCidrDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: { setPodCidr(cidr: string, options: Abortable): Promise<void> };
  /** Undefined without an API server. */
  readonly node?: { readonly current: Node | undefined; onNode(fn: (node: Node) => void, options: Abortable): void };
  /** The CIDR of the configuration; empty if there is none. */
  readonly configured: string;
}

/**
 * Passes the pod CIDR on to the runtime, and retries with back-off, until the signal aborts: that of the node, and as long
 * as it has none that of the configuration, as in Kubernetes.
 */
export async function syncPodCidr(deps: PodCidrDeps, signal: AbortSignal): Promise<void> {
  const { clock, log, runtime, node, configured } = deps;
  const wanted = (next: Node | undefined): string => cidrOf(next) || configured;
  const cidr = new LiveValue(wanted(node?.current));
  node?.onNode((next) => cidr.set(wanted(next)), { signal });
  const backoff = new Backoff(RETRY);
  let applied = "";
  while (!signal.aborted) {
    const podCidr = cidr.current;
    if (podCidr === applied || podCidr === "") {
      await nextChange(cidr, signal);
      continue;
    }
    try {
      await runtime.setPodCidr(podCidr, { signal });
      applied = podCidr;
      backoff.reset();
      log.info("Updated pod CIDR of the runtime", { podCidr });
    } catch (error) {
      if (signal.aborted) return;
      log.warn("Failed to update pod CIDR of the runtime", { podCidr, error: messageOf(error) });
      await clock.sleep(backoff.next(clock.now()), { signal }).catch(() => undefined);
    }
  }
}

/** Returns the loop that passes the configured pod CIDR on to the runtime where there is no Node object; none without one. */
export function standalonePodCidr(deps: Omit<PodCidrDeps, "node">): readonly Loop[] {
  return deps.configured === "" ? [] : [{ name: "pod CIDR", run: (signal) => syncPodCidr(deps, signal) }];
}

function cidrOf(node: Node | undefined): string {
  return (node?.spec.podCIDRs ?? []).join(",") || (node?.spec.podCIDR ?? "");
}

function nextChange(value: LiveValue<string>, signal: AbortSignal): Promise<void> {
  const scope = new AbortScope([signal]);
  return new Promise<void>((resolve) => {
    scope.signal.addEventListener("abort", () => resolve(), { once: true });
    value.onChange(() => scope.abort(), scope);
    if (scope.signal.aborted) resolve();
  }).finally(() => scope.dispose());
}
