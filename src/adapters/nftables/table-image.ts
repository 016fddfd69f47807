import { type ElementChange, ElementLedger } from "./element-ledger.ts";
import { elementLine, type Listing } from "./listing.ts";
import type { Forwarding, ForwardingChange } from "./port.ts";
import { baseChains, COLLECTIONS, type ForwardingParts, NO_PARTS, partsOf, type TableOptions } from "./shape.ts";

/** What the table is to hold, and the scripts of `nft` that bring it there. It touches nothing. */
export class TableImage {
  private readonly parts = new Map<string, ForwardingParts>();
  private readonly ledger = new ElementLedger();

  constructor(private readonly options: TableOptions) {}

  /** Takes a change over; returns the script that makes it. Empty if nothing changes in the kernel. */
  change({ set, remove }: ForwardingChange): string {
    const next = new Map<string, ForwardingParts>();
    for (const key of remove) next.set(key, NO_PARTS);
    for (const forwarding of set) next.set(forwarding.key, partsOf(forwarding));
    const script = new Script(this.options.name);
    const elements: ElementChange[] = [];
    for (const [key, after] of next) {
      const before = this.parts.get(key) ?? NO_PARTS;
      if (after === NO_PARTS) this.parts.delete(key);
      else this.parts.set(key, after);
      elements.push(...this.ledger.change(key, before.elements, after.elements));
      script.parts(before, after);
    }
    script.elements(elements);
    return script.text;
  }

  /** The script that makes everything anew beside what is there; elements of clients stay. */
  whole(there: Listing | undefined): string {
    const script = new Script(this.options.name);
    const base = baseChains(this.options);
    for (const [name, definition] of Object.entries(COLLECTIONS)) script.collection(name, definition);
    for (const [name, { hook, rules }] of Object.entries(base)) script.chain(name, rules, hook);
    for (const parts of this.parts.values()) script.parts(NO_PARTS, parts);
    const expected = this.listing;
    const chains = [...(there?.chains.keys() ?? [])].filter((name) => !expected.chains.has(name));
    const sets = [...(there?.sets ?? [])].filter((name) => !expected.sets.has(name));
    script.removal(chains, sets);
    script.elements(this.ledger.all.map(({ value, ...one }) => ({ ...one, before: undefined, after: value })));
    return script.text;
  }

  /** What the kernel lists if it holds the image. */
  get listing(): Listing {
    const chains = new Map<string, number>();
    for (const [name, { rules }] of Object.entries(baseChains(this.options))) chains.set(name, rules.length);
    const sets = new Set(Object.keys(COLLECTIONS));
    for (const parts of this.parts.values()) {
      for (const [name, rules] of parts.chains) chains.set(name, rules.length);
      for (const name of parts.sets.keys()) sets.add(name);
    }
    return { chains, sets, elements: new Set(this.ledger.all.map(elementLine)) };
  }

  /** An image of these forwardings. */
  static of(options: TableOptions, forwardings: readonly Forwarding[]): TableImage {
    const image = new TableImage(options);
    image.change({ set: forwardings, remove: [] });
    return image;
  }
}

/** A transaction in phases: what refers to something comes after it is made, and is gone before it is removed. */
class Script {
  private readonly phases: [gone: string[], made: string[], filled: string[], removed: string[], reached: string[]] = [
    [],
    [],
    [],
    [],
    [],
  ];

  constructor(private readonly table: string) {}

  get text(): string {
    const lines = this.phases.flat();
    return lines.length === 0 ? "" : `${[`add table ip ${this.table}`, ...lines].join("\n")}\n`;
  }

  collection(name: string, definition: string): void {
    const kind = definition.split(" ", 1)[0] ?? "";
    this.phases[1].push(`add ${definition.replace("{N}", `ip ${this.table} ${name}`)}`);
    this.phases[1].push(`flush ${kind} ip ${this.table} ${name}`);
  }

  chain(name: string, rules: readonly string[], hook?: string): void {
    const chain = `ip ${this.table} ${name}`;
    this.phases[1].push(`add chain ${chain}${hook === undefined ? "" : ` { ${hook}; }`}`, `flush chain ${chain}`);
    this.phases[2].push(...rules.map((rule) => `add rule ${chain} ${rule}`));
  }

  parts(before: ForwardingParts, after: ForwardingParts): void {
    for (const [name, seconds] of after.sets) {
      if (before.sets.has(name)) continue;
      const set = `ip ${this.table} ${name}`;
      this.phases[1].push(`add set ${set} { type ipv4_addr; flags dynamic, timeout; timeout ${seconds}s; }`);
    }
    for (const [name, rules] of after.chains) {
      if (String(before.chains.get(name)) !== String(rules)) this.chain(name, rules);
    }
    this.removal(
      [...before.chains.keys()].filter((name) => !after.chains.has(name)),
      [...before.sets.keys()].filter((name) => !after.sets.has(name)),
    );
  }

  removal(chains: readonly string[], sets: readonly string[]): void {
    this.phases[1].push(...chains.map((name) => `flush chain ip ${this.table} ${name}`));
    this.phases[3].push(...chains.map((name) => `delete chain ip ${this.table} ${name}`));
    this.phases[3].push(...sets.map((name) => `delete set ip ${this.table} ${name}`));
  }

  elements(changes: readonly ElementChange[]): void {
    for (const { collection, key, before, after } of changes) {
      const place = `element ip ${this.table} ${collection}`;
      if (before !== undefined) this.phases[0].push(`delete ${place} { ${key} }`);
      if (after !== undefined) this.phases[4].push(`add ${place} { ${key}${after === "" ? "" : ` : ${after}`} }`);
    }
  }
}
