import { COLLECTIONS } from "./shape.ts";

/** The table as the kernel has it, as far as it is compared. */
export interface Listing {
  /** Rules of each chain. */
  readonly chains: ReadonlyMap<string, number>;
  readonly sets: ReadonlySet<string>;
  /** `collection key value`, of the collections that are always there. */
  readonly elements: ReadonlySet<string>;
}

interface NftObject {
  readonly chain?: { readonly name: string };
  readonly rule?: { readonly chain: string };
  readonly set?: NftCollection;
  readonly map?: NftCollection;
}

interface NftCollection {
  readonly name: string;
  readonly elem?: readonly unknown[];
}

/** Reads the output of `nft -j list table`. Throws if it is no such output. */
export function parseListing(json: string): Listing {
  // What nft writes has this form; what is missing in it makes the table count as damaged.
  const { nftables } = JSON.parse(json) as { readonly nftables: readonly NftObject[] };
  const chains = new Map<string, number>();
  const sets = new Set<string>();
  const elements = new Set<string>();
  for (const { chain, rule, set, map } of nftables) {
    if (chain !== undefined) chains.set(chain.name, chains.get(chain.name) ?? 0);
    if (rule !== undefined) chains.set(rule.chain, (chains.get(rule.chain) ?? 0) + 1);
    const collection = set ?? map;
    if (collection === undefined) continue;
    sets.add(collection.name);
    // Elements of other sets come with clients and go by time.
    if (!Object.hasOwn(COLLECTIONS, collection.name)) continue;
    for (const element of collection.elem ?? []) elements.add(elementText(collection.name, element, map !== undefined));
  }
  return { chains, sets, elements };
}

function elementText(name: string, element: unknown, isMap: boolean): string {
  // An element of a map is a pair.
  const [key, value] = isMap ? (element as readonly [unknown, unknown]) : [element, undefined];
  const { concat = [] } = key as { readonly concat?: readonly unknown[] };
  const target = (value as { readonly goto?: { readonly target: string } } | undefined)?.goto?.target;
  return elementLine({
    collection: name,
    key: concat.join(" . "),
    value: target === undefined ? "" : `goto ${target}`,
  });
}

/** How an element is compared. */
export function elementLine(element: { readonly collection: string; readonly key: string; readonly value: string }) {
  return `${element.collection} ${element.key} ${element.value}`;
}

/** True if both are the same. */
export function isSameListing(a: Listing, b: Listing): boolean {
  return (
    a.chains.size === b.chains.size &&
    [...a.chains].every(([name, rules]) => b.chains.get(name) === rules) &&
    isSameSet(a.sets, b.sets) &&
    isSameSet(a.elements, b.elements)
  );
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((one) => b.has(one));
}
