import type { SuccessPolicy } from "../../model/generated/types.ts";
import { parseIndexes } from "./index-set.ts";

/** The number of the first rule that the indexes that succeeded fulfil. Pure. */
export function matchedSuccessRule(
  policy: SuccessPolicy | undefined,
  succeeded: ReadonlySet<number>,
  completions: number,
): number | undefined {
  if (policy === undefined || succeeded.size === 0) return undefined;
  const found = policy.rules.findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && succeeded.size >= succeededCount;
    const wanted = parseIndexes(succeededIndexes, completions);
    if (wanted.size === 0) return false;
    const reached = [...wanted].filter((index) => succeeded.has(index)).length;
    return reached === wanted.size || (succeededCount !== undefined && reached >= succeededCount);
  });
  return found === -1 ? undefined : found;
}
