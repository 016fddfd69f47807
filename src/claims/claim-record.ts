import type { ClaimDevice } from "../model/claim-device.ts";

/** A claim that is prepared on this node, or about to be. */
export interface ClaimRecord {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** The pods that use it. */
  readonly pods: ReadonlySet<string>;
  /** What each driver of the claim prepared; empty before it did, and for a driver without devices to pass on. */
  readonly drivers: ReadonlyMap<string, readonly ClaimDevice[]>;
  /** Prepared by this run of the agent: after a restart of the node, what an earlier run prepared may be lost. */
  readonly isPrepared: boolean;
}

/** The key of a claim: namespace and name, because a pod only knows these. */
export function claimKey({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/** All devices of a claim. */
export function devicesOf({ drivers }: Pick<ClaimRecord, "drivers">): readonly ClaimDevice[] {
  return [...drivers.values()].flat();
}

/**
 * True if a device is for a request of its claim; an empty request means the whole claim. Drivers name the request, or
 * the subrequest of a prioritised list (`request/subrequest`).
 */
export function isForRequest({ requests }: Pick<ClaimDevice, "requests">, request: string): boolean {
  if (request === "" || requests.length === 0 || requests.includes(request)) return true;
  return !request.includes("/") && requests.some((name) => name.split("/")[0] === request);
}
