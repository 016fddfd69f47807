/** An object of a manifest, with the line on which its document begins. */
interface PlacedObject {
  readonly value: unknown;
  readonly line: number;
}

interface Flattened {
  readonly objects: PlacedObject[];
  readonly problems: { line: number; message: string }[];
}

/** Deeper or larger than any pod; also ends at a YAML alias that contains itself. */
const MOST_DEPTH = 64;
const MOST_NODES = 200_000;

/**
 * The objects of all documents: one of the wanted kinds stands for itself, a list for its items. Anything else is a
 * problem.
 */
export function flattenDocuments(documents: readonly PlacedObject[], wanted: readonly string[]): Flattened {
  const result: Flattened = { objects: [], problems: [] };
  let count = 0;
  for (const { value, line } of documents) {
    if (value === null || value === undefined) continue;
    count++;
    if (!isReasonable(value)) result.problems.push({ line, message: "nested too deeply or too large for a manifest" });
    else flatten({ value, line }, result, { wanted, allowsList: true });
  }
  if (count === 0)
    result.problems.push({ line: 1, message: "the manifest is empty; remove it, or write a pod into it" });
  return result;
}

interface Expected {
  readonly wanted: readonly string[];
  readonly allowsList: boolean;
}

function flatten({ value, line }: PlacedObject, result: Flattened, { wanted, allowsList }: Expected): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    result.problems.push({ line, message: "a manifest must be an object with apiVersion, kind, metadata and spec" });
    return;
  }
  const { apiVersion, kind, items } = value as Readonly<Record<string, unknown>>;
  if (apiVersion !== "v1" || typeof kind !== "string") {
    const shown = [apiVersion, kind].map((part) => JSON.stringify(part)?.slice(0, 60) ?? "missing").join(", kind ");
    result.problems.push({ line, message: `apiVersion ${shown} is no pod; write apiVersion: v1 and kind: Pod` });
  } else if (wanted.includes(kind)) {
    result.objects.push({ value, line });
  } else if (allowsList && isListOf(kind, wanted)) {
    if (!Array.isArray(items)) result.problems.push({ line, message: `a ${kind} must have a list of items` });
    else
      for (const item of items) flatten({ value: withKind(item, kind), line }, result, { wanted, allowsList: false });
  } else {
    result.problems.push({
      line,
      message: `kind ${JSON.stringify(kind.slice(0, 60))} cannot be run; only ${wanted.join(", ")} and lists of them can`,
    });
  }
}

function isListOf(kind: string, wanted: readonly string[]): boolean {
  return kind === "List" || (kind.endsWith("List") && wanted.includes(kind.slice(0, -"List".length)));
}

/** The items of a PodList need not say what they are. */
function withKind(item: unknown, listKind: string): unknown {
  if (listKind === "List" || typeof item !== "object" || item === null || Array.isArray(item)) return item;
  return { apiVersion: "v1", kind: listKind.slice(0, -"List".length), ...item };
}

function isReasonable(root: unknown): boolean {
  let nodes = 0;
  const visit = (value: unknown, depth: number): boolean => {
    if (++nodes > MOST_NODES || depth > MOST_DEPTH) return false;
    if (typeof value !== "object" || value === null) return true;
    return Object.values(value).every((inner) => visit(inner, depth + 1));
  };
  return visit(root, 0);
}
