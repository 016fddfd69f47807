/** A type of D-Bus: a basic one by its letter, an array, or a structure (a dictionary entry is one of two). */
export type BusType =
  | { readonly kind: "basic"; readonly letter: string }
  | { readonly kind: "array"; readonly of: BusType }
  | { readonly kind: "struct"; readonly of: readonly BusType[] };

/** Nesting that the specification allows. */
const DEEPEST = 64;

/** The types of a signature such as `sa{sv}`. Throws for one that is malformed. */
export function parseSignature(signature: string): readonly BusType[] {
  const types: BusType[] = [];
  for (let at = 0; at < signature.length; ) {
    const [type, next] = parseOne(signature, at, 0);
    types.push(type);
    at = next;
  }
  return types;
}

function parseOne(signature: string, at: number, depth: number): [BusType, number] {
  const letter = signature[at] ?? "";
  if (depth > DEEPEST) throw new Error(`signature ${signature}: nested too deeply`);
  if (letter === "a") {
    const [of, next] = parseOne(signature, at + 1, depth + 1);
    return [{ kind: "array", of }, next];
  }
  const closing = { "(": ")", "{": "}" }[letter];
  if (closing !== undefined) {
    const of: BusType[] = [];
    let next = at + 1;
    while (signature[next] !== closing) {
      const [type, after] = parseOne(signature, next, depth + 1);
      of.push(type);
      next = after;
    }
    // Without a member it would take no bytes, and an array of them would have no end.
    if (of.length === 0) throw new Error(`signature ${signature}: has an empty structure`);
    return [{ kind: "struct", of }, next + 1];
  }
  if (!/^[ybnqiuxtdhsogv]$/.test(letter)) throw new Error(`signature ${signature}: is malformed`);
  return [{ kind: "basic", letter }, at + 1];
}

/** Letters of the types that take 2, 4 and 8 bytes; all others begin anywhere. */
const ALIGNED = [
  [2, "nq"],
  [4, "biuhso"],
  [8, "xtd"],
] as const;

/** What the value's position is a multiple of. */
export function alignmentOf(type: BusType): number {
  if (type.kind === "struct") return 8;
  if (type.kind === "array") return 4;
  return ALIGNED.find(([, letters]) => letters.includes(type.letter))?.[0] ?? 1;
}
