/** An entry of a kubeconfig's lists. */
interface Named {
  readonly name?: unknown;
}

/** A kubeconfig as parsed; other fields stay as they are. */
export type Kubeconfig = Readonly<Record<string, unknown>>;

const LISTS = ["clusters", "users", "contexts"];

/**
 * Adds the cluster, user and context of one kubeconfig to another, in place of those of the same name, and makes its
 * context the current one. Pure.
 */
export function mergeKubeconfig(into: Kubeconfig, added: Kubeconfig): Kubeconfig {
  const lists = LISTS.map((list): [string, readonly Named[]] => {
    const own = entriesOf(added[list]);
    const names = new Set(own.map(({ name }) => name));
    return [list, [...entriesOf(into[list]).filter(({ name }) => !names.has(name)), ...own]];
  });
  const head = { apiVersion: "v1", kind: "Config" };
  return { ...head, ...into, ...Object.fromEntries(lists), "current-context": added["current-context"] };
}

function entriesOf(list: unknown): readonly Named[] {
  return Array.isArray(list) ? list.filter((entry): entry is Named => typeof entry === "object" && entry !== null) : [];
}
