import { isTree } from "../schema/type-schema.ts";

/** Applies a JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces. A new value. */
export function mergePatch(value: unknown, patch: unknown): unknown {
  if (!isTree(patch)) return patch;
  const merged: Record<string, unknown> = isTree(value) ? { ...value } : {};
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete merged[key];
    else setOwn(merged, key, mergePatch(Object.hasOwn(merged, key) ? merged[key] : undefined, change));
  }
  return merged;
}

/** Sets a key that a user chose: `__proto__` is one like any other. */
export function setOwn(object: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}
