interface Ring {
  readonly desired: { get(uid: string): unknown };
  readonly observer: { get(uid: string): unknown };
  pool(): { worker(uid: string): unknown; isFinished(uid: string): boolean };
}

/**
 * True while the pod may use its claims. One that was rejected, or that ended while it was not known which claims it had,
 * uses none also while its object is there.
 */
export function mayUseClaims(uid: string, { desired, observer, pool }: Ring): boolean {
  if (desired.get(uid) !== undefined || pool().worker(uid) !== undefined) return !pool().isFinished(uid);
  return observer.get(uid) !== undefined;
}
