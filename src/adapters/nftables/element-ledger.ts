import type { Element } from "./shape.ts";

/** A change of one element in the kernel: its old value goes, its new one comes. */
export interface ElementChange {
  readonly collection: string;
  readonly key: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Who wants which element. Two may want the same one: the first has it, and the next when that one leaves. */
export class ElementLedger {
  private readonly wanted = new Map<string, Map<string, Element>>();

  /** Replaces what an owner wants; returns what changes in the kernel. */
  change(owner: string, before: readonly Element[], after: readonly Element[]): ElementChange[] {
    const touched = new Map([...before, ...after].map((element) => [idOf(element), element]));
    const next = new Map(after.map((element) => [idOf(element), element]));
    return [...touched].flatMap(([id, { collection, key }]) => {
      const owners = this.wanted.get(id) ?? new Map<string, Element>();
      const was = first(owners);
      const element = next.get(id);
      if (element === undefined) owners.delete(owner);
      else owners.set(owner, element);
      if (owners.size === 0) this.wanted.delete(id);
      else this.wanted.set(id, owners);
      const is = first(owners);
      return was === is ? [] : [{ collection, key, before: was, after: is }];
    });
  }

  /** Every element that the kernel has. */
  get all(): Element[] {
    return [...this.wanted.values()].flatMap((owners) => [...owners.values()].slice(0, 1));
  }
}

function first(owners: ReadonlyMap<string, Element>): string | undefined {
  for (const { value } of owners.values()) return value;
  return undefined;
}

function idOf({ collection, key }: Element): string {
  return `${collection} ${key}`;
}
