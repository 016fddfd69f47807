import type { Container, Pod } from "../model/generated/types.ts";
import { tryParseQuantity, wholeValue } from "../model/quantity.ts";
import { containerTotals } from "../model/resources.ts";

/** Amounts by resource, without those of 0. */
export type Demand = ReadonlyMap<string, number>;

/** Which resources are devices of plugins, for this container. */
type IsDevice = (resource: string, container: string | undefined) => boolean;

/** Returns how many devices a container asks for. Limits count: requests of extended resources equal them. Pure. */
export function containerDemand({ name, resources }: Container, isDevice: IsDevice): Demand {
  const amounts = Object.entries(resources?.limits ?? {}).map(([resource, text]) => {
    const amount = tryParseQuantity(text);
    return [resource, amount === undefined ? 0 : wholeValue(amount)] as const;
  });
  return new Map(amounts.filter(([resource, amount]) => amount > 0 && isDevice(resource, name)));
}

/** Returns how many devices the pod needs at its worst moment. Pure. */
export function podDemand(pod: Pod, isDevice: IsDevice): Demand {
  const amounts = Object.entries(containerTotals(pod, "limits")).map(
    ([resource, amount]) => [resource, wholeValue(amount)] as const,
  );
  return new Map(amounts.filter(([resource, amount]) => amount > 0 && isDevice(resource, undefined)));
}
