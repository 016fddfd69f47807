import { type Abortable, AbortScope } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { LiveValue } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Node } from "../model/generated/types.ts";

const RETRY = { initialMs: 500, maxMs: 30_000 };

export interface PodCidrDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: { setPodCidr(cidr: string, options: Abortable): Promise<void> };
  readonly node: { readonly current: Node | undefined; onNode(fn: (node: Node) => void, options: Abortable): void };
}

/** Passes the pod CIDR of the node on to the runtime, and retries with back-off, until the signal aborts. */
export async function syncPodCidr({ clock, log, runtime, node }: PodCidrDeps, signal: AbortSignal): Promise<void> {
  const cidr = new LiveValue(cidrOf(node.current));
  node.onNode((next) => cidr.set(cidrOf(next)), { signal });
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
