import { canonicalJson } from "../model/canonical-json.ts";

/** Whether a status says the same as the one that is stored, where numbers that are zero may be missing. Pure. */
export function isSameStatus(stored: object | undefined, next: object): boolean {
  return meaningful(stored ?? {}) === meaningful(next);
}

function meaningful(status: object): string {
  const isEmpty = (value: unknown): boolean =>
    value === 0 || value === "" || value === undefined || (Array.isArray(value) && value.length === 0);
  return canonicalJson(Object.fromEntries(Object.entries(status).filter(([, value]) => !isEmpty(value))));
}
