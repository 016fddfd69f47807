/** Containers whose kills are counted; the oldest make room. */
const MOST = 2000;

/**
 * How many processes of each container of a pod the kernel killed for lack of memory since the agent started. Unlike the
 * kernel's own count it outlives the instance of the container, which a kill usually ends.
 */
export class OomCounts {
  private readonly counts = new Map<string, number>();

  add(podUid: string, container: string): void {
    const key = keyOf(podUid, container);
    const count = this.of(podUid, container) + 1;
    this.counts.delete(key);
    this.counts.set(key, count);
    const oldest = this.counts.keys().next();
    if (this.counts.size > MOST && !oldest.done) this.counts.delete(oldest.value);
  }

  of(podUid: string, container: string): number {
    return this.counts.get(keyOf(podUid, container)) ?? 0;
  }
}

function keyOf(podUid: string, container: string): string {
  return `${podUid}/${container}`;
}
