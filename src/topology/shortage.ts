import { clip } from "../lib/bounded-text.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { HintProvider } from "../model/topology.ts";

/** The longest description in bytes: a machine may have many NUMA nodes. */
const MOST_BYTES = 1024;

/**
 * Describes which resource of the container (of the pod if missing) is short on which NUMA node, and by how much; empty
 * if no provider knows. A node that could hold everything is not mentioned.
 */
export function shortageOf(
  providers: readonly HintProvider[],
  pod: Pod,
  { container, nodes }: { readonly container: Container | undefined; readonly nodes: readonly number[] },
): string {
  const resources = providers.flatMap((provider) =>
    [...(provider.needs?.(pod, container) ?? [])].map(([resource, requested]) => ({
      resource,
      requested,
      free: provider.free?.(resource) ?? new Map<number, number>(),
    })),
  );
  const lines = nodes.flatMap((node) => {
    const short = resources
      .map(({ resource, requested, free }) => ({ resource, requested, free: free.get(node) ?? 0 }))
      .filter(({ requested, free }) => free < requested)
      .map(
        ({ resource, requested, free }) =>
          `${resource} short by ${requested - free} (requested ${requested}, free ${free})`,
      );
    return short.length === 0 ? [] : [`NUMA node ${node}: ${short.join(", ")}`];
  });
  return clip(lines.join("; "), MOST_BYTES);
}
