/** FNV-1a over bytes, 32 bits, as an unsigned number. */
export function fnv1a32(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

const OFFSET_128 = 0x6c62272e07bb014262b821756295c58dn;
const MASK_128 = (1n << 128n) - 1n;
/** Of the prime 2^88 + 315. */
const PRIME_LOW = 315n;

/** FNV-1a over bytes, 128 bits, as 32 hex digits. */
export function fnv1a128(bytes: Uint8Array): string {
  let hash = OFFSET_128;
  for (const byte of bytes) {
    const mixed = hash ^ BigInt(byte);
    hash = ((mixed << 88n) + mixed * PRIME_LOW) & MASK_128;
  }
  return hash.toString(16).padStart(32, "0");
}
