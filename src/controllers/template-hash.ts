import { canonicalJson } from "../model/canonical-json.ts";
import { fnv1a32 } from "../model/fnv.ts";

/** Letters and digits of generated names: no vowels, no words. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

/** A short name for the content of a value; another count of collisions gives another one. Pure. */
export function hashName(value: unknown, collisionCount?: number): string {
  const text = `${canonicalJson(value)}${collisionCount === undefined ? "" : `#${collisionCount}`}`;
  const digits = String(fnv1a32(Buffer.from(text)));
  return digits.replace(/\d/g, (digit) => ALPHABET[digit.charCodeAt(0) % ALPHABET.length] ?? "");
}
