import { ownValue } from "../lib/own-value.ts";
import type { ResourceRequirements } from "./generated/types.ts";
import { isQualifiedName } from "./names.ts";
import type { Problems } from "./problems.ts";
import { compareAmounts, tryParseQuantity } from "./quantity.ts";

const NATIVE = ["cpu", "memory", "ephemeral-storage"];

/** Checks names and amounts, and that nothing is requested above its limit. */
export function checkResources(path: string, resources: ResourceRequirements, problems: Problems): void {
  for (const side of ["limits", "requests"] as const) {
    for (const [name, text] of Object.entries(resources[side] ?? {})) {
      const at = `${path}.${side}.${name}`;
      if (!isResourceName(name)) {
        const fix = "use cpu, memory, ephemeral-storage, hugepages-SIZE or a name such as example.com/gpu";
        problems.add(at, undefined, { message: "is not a resource of a container", fix });
      }
      const amount = tryParseQuantity(text);
      if (amount === undefined) {
        problems.add(at, text, { message: "is not a quantity", fix: "write it like 500m, 1.5 or 128Mi" });
      } else if (amount.nano < 0n) {
        problems.add(at, text, { message: "is negative", fix: "write 0 or more" });
      }
    }
  }
  for (const [name, text] of Object.entries(resources.requests ?? {}))
    checkPair(path, { name, text, resources }, problems);
}

function checkPair(
  path: string,
  { name, text, resources }: { name: string; text: string; resources: ResourceRequirements },
  problems: Problems,
): void {
  const isWhole = !NATIVE.includes(name);
  const limitText = ownValue(resources.limits, name);
  const request = tryParseQuantity(text);
  const at = `${path}.requests.${name}`;
  if (limitText === undefined) {
    if (isWhole) problems.add(at, text, { message: "needs a limit", fix: `set limits.${name} to the same amount` });
    return;
  }
  const limit = tryParseQuantity(limitText);
  if (request === undefined || limit === undefined) return;
  const order = compareAmounts(request, limit);
  if (order > 0) {
    problems.add(at, text, { message: `is more than the limit ${limitText}`, fix: "lower it, or raise the limit" });
  } else if (order < 0 && isWhole) {
    problems.add(at, text, {
      message: `must equal the limit ${limitText}`,
      fix: "this resource cannot be overcommitted",
    });
  }
}

function isResourceName(name: string): boolean {
  if (NATIVE.includes(name) || /^hugepages-\w+$/.test(name)) return true;
  return name.includes("/") && isQualifiedName(name);
}
