/**
 * The fields of a JSON value by their paths, each with its type: `/stats[]/cpu/usage/total: number`. Items of lists and
 * entries of maps by path or number (`/kubepods`, `8:0`) count as one.
 */
export function fieldsOf(value: unknown): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const note = (path: string, type: string): void => {
    // Null and an empty list are what a list without items is in Go.
    if (type !== "null" || !found.has(path)) found.set(path, type);
  };
  const walk = (of: unknown, path: string): void => {
    if (Array.isArray(of)) {
      note(path, "list");
      for (const item of of) walk(item, `${path}[]`);
    } else if (typeof of === "object" && of !== null) {
      note(path, "object");
      for (const [key, one] of Object.entries(of)) walk(one, `${path}/${/^\/|^\d+:\d+$/.test(key) ? "*" : key}`);
    } else {
      note(path, of === null ? "null" : typeof of);
    }
  };
  walk(value, "");
  return found;
}

/** The numbers of a JSON value by their paths; items of lists by their names or devices, else by index. */
export function numbersOf(value: unknown): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  const walk = (of: unknown, path: string): void => {
    if (typeof of === "number") found.set(path, of);
    else if (Array.isArray(of)) {
      for (const [index, item] of (of as Record<string, unknown>[]).entries()) {
        walk(item, `${path}[${String(item?.["name"] ?? item?.["device"] ?? index)}]`);
      }
    } else if (typeof of === "object" && of !== null) {
      for (const [key, one] of Object.entries(of)) walk(one, `${path}/${key}`);
    }
  };
  walk(value, "");
  return found;
}
