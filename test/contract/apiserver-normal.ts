/** Replaces what differs between any two servers: identities, times, versions and random words. */
export function normalized(value: unknown, key = ""): unknown {
  if (typeof value === "string") return normalText(value, key);
  if (Array.isArray(value)) {
    const list = value.map((item) => normalized(item, key));
    // Fields that were written at the same second are in no order.
    return key === "managedFields" ? list.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : list;
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      // Prose of the schemas is not served.
      .filter(([name]) => !(key === "columnDefinitions" && name === "description"))
      .map(([name, inner]) => [normalText(name, ""), normalized(inner, name)]),
  );
}

const TIMES = ["creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time", "lastPhaseTransitionTime"];

function normalText(text: string, key: string): string {
  if (key === "resourceVersion" && /^\d+$/.test(text)) return "VERSION";
  if (TIMES.includes(key)) return "TIME";
  if (key === "token") return "TOKEN";
  if (key === "cells" && /^\d+s$/.test(text)) return "AGE";
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
    .replaceAll(/kube-api-access-[a-z0-9]{5}/g, "kube-api-access-RANDOM");
}
