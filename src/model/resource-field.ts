import { ownValue } from "../lib/own-value.ts";
import { ConfigError } from "./config-error.ts";
import type { Container, Pod, ResourceFieldSelector } from "./generated/types.ts";
import { declaredContainers } from "./pod-facts.ts";
import { type Amount, isZero, parseQuantity, ZERO } from "./quantity.ts";

const ONE = parseQuantity("1");

/** The value of a `resourceFieldRef`: ceil(amount / divisor); without a limit, that of the pod, else the node's allocatable. */
export function resourceFieldValue(
  pod: Pod,
  ref: ResourceFieldSelector,
  facts: { container?: Container; allocatable: Readonly<Record<string, string>> },
): string {
  const container = ref.containerName ? containerNamed(pod, ref.containerName) : facts.container;
  if (container === undefined) throw new ConfigError("resourceFieldRef.containerName is missing");
  const match = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.exec(ref.resource);
  const side = match?.[1];
  const resource = match?.[2];
  if ((side !== "limits" && side !== "requests") || resource === undefined) {
    const example = "limits.cpu, requests.memory, limits.ephemeral-storage or requests.hugepages-2Mi";
    throw new ConfigError(`resourceFieldRef.resource "${ref.resource}" is not known; use one like ${example}`);
  }
  const own = amountOf(ownValue(container.resources?.[side], resource));
  const isMissing = side === "limits" && isZero(own);
  const fallback = ownValue(pod.spec.resources?.limits, resource) ?? ownValue(facts.allocatable, resource);
  const divisor = amountOf(ref.divisor);
  return String(ceilRatio(isMissing ? amountOf(fallback) : own, isZero(divisor) ? ONE : divisor));
}

function amountOf(text: string | undefined): Amount {
  return text === undefined ? ZERO : parseQuantity(text);
}

function containerNamed(pod: Pod, name: string): Container {
  const found = declaredContainers(pod).find((container) => container.name === name);
  if (found === undefined)
    throw new ConfigError(`resourceFieldRef.containerName "${name}" names no container of the pod`);
  return found;
}

function ceilRatio(amount: Amount, divisor: Amount): bigint {
  if (divisor.nano <= 0n) throw new ConfigError("resourceFieldRef.divisor must be above 0");
  return (amount.nano + divisor.nano - 1n) / divisor.nano;
}
