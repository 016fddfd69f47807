import type { Clock } from "../lib/clock.ts";

/** A cache with expiration; evicts the oldest entry if it is full. */
export class TtlCache<V> {
  private readonly entries = new Map<string, { readonly value: V; readonly until: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly most: number,
  ) {}

  get(key: string): V | undefined {
    const found = this.entries.get(key);
    if (found === undefined) return undefined;
    if (found.until > this.clock.now().mono) return found.value;
    this.entries.delete(key);
    return undefined;
  }

  set(key: string, value: V, ttlMs: number): void {
    if (ttlMs <= 0) return;
    this.entries.delete(key);
    this.entries.set(key, { value, until: this.clock.now().mono + ttlMs });
    if (this.entries.size <= this.most) return;
    const [oldest] = this.entries.keys();
    if (oldest !== undefined) this.entries.delete(oldest);
  }

  get size(): number {
    return this.entries.size;
  }
}
