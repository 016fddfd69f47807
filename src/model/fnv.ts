/** FNV-1a over bytes, 32 bits, as an unsigned number. */
export function fnv1a32(bytes: Uint8Array): number {
  return new Fnv1a32().add(bytes).value;
}

/** FNV-1a, 32 bits, over bytes that come in parts. */
export class Fnv1a32 {
  private hash = 0x811c9dc5;

  add(bytes: Uint8Array): this {
    let { hash } = this;
    for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
    this.hash = hash;
    return this;
  }

  /** As an unsigned number. */
  get value(): number {
    return this.hash >>> 0;
  }
}

const TWO_32 = 2 ** 32;
/** Of the prime 2^88 + 315. */
const PRIME_LOW = 315;

/**
 * FNV-1a over bytes, 128 bits, as 32 hex digits. In four parts of 32 bits, the lowest first: a bigint would allocate
 * several objects per byte.
 */
export function fnv1a128(bytes: Uint8Array): string {
  let [a, b, c, d] = [0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e];
  for (const byte of bytes) {
    const mixed = (a ^ byte) >>> 0;
    // Each part times 315, with the carry of the one before and what 2^88 (64 + 24 bits) moves into it.
    const first = mixed * PRIME_LOW;
    const second = b * PRIME_LOW + Math.floor(first / TWO_32);
    const third = c * PRIME_LOW + Math.floor(second / TWO_32) + ((mixed << 24) >>> 0);
    const fourth = d * PRIME_LOW + Math.floor(third / TWO_32) + (((b << 24) | (mixed >>> 8)) >>> 0);
    [a, b, c, d] = [first >>> 0, second >>> 0, third >>> 0, fourth >>> 0];
  }
  return [d, c, b, a].map((part) => part.toString(16).padStart(8, "0")).join("");
}
