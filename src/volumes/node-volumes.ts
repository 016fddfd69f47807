import type { Abortable } from "../lib/abort.ts";
import { type Live, LiveValue } from "../lib/live.ts";

/** The volumes that several kinds have in use: unknown until all of them know theirs. */
export function allInUse(
  parts: readonly Live<readonly string[] | undefined>[],
  options: Abortable,
): Live<readonly string[] | undefined> {
  const sum = (): readonly string[] | undefined => {
    const lists = parts.map(({ current }) => current);
    return lists.some((list) => list === undefined) ? undefined : lists.flatMap((list) => list ?? []).sort();
  };
  const all = new LiveValue(sum());
  for (const part of parts) part.onChange(() => all.set(sum()), options);
  return all;
}
