import { setOwn } from "../patch/merge-patch.ts";
import { isTree } from "../schema/type-schema.ts";

/**
 * One step of a path as Kubernetes writes it: `f:name` (a field), `k:{"name":"web"}` (an element of a list with keys),
 * `v:"x"` (an element of a set).
 */
export type PathElement = string;

/** A set of field paths. Immutable: every operation returns another one. */
export class FieldSet {
  static readonly empty = new FieldSet(false, new Map());
  /** Only the place itself: one for all of them, since a long list has one for each element. */
  private static readonly leaf = new FieldSet(true, new Map());

  private constructor(
    /** True if the place itself belongs to the set. */
    readonly isMember: boolean,
    readonly children: ReadonlyMap<PathElement, FieldSet>,
  ) {}

  static of(isMember: boolean, children: ReadonlyMap<PathElement, FieldSet>): FieldSet {
    if (children.size > 0) return new FieldSet(isMember, children);
    return isMember ? FieldSet.leaf : FieldSet.empty;
  }

  /** Reads `fieldsV1`; what is not one is empty. */
  static decode(value: unknown): FieldSet {
    return isTree(value) ? decodeNode(value, false) : FieldSet.empty;
  }

  get isEmpty(): boolean {
    return !this.isMember && this.children.size === 0;
  }

  child(element: PathElement): FieldSet {
    return this.children.get(element) ?? FieldSet.empty;
  }

  union(other: FieldSet): FieldSet {
    if (this.isEmpty || this === other) return other;
    if (other.isEmpty) return this;
    const children = new Map(this.children);
    for (const [element, node] of other.children) children.set(element, this.child(element).union(node));
    return FieldSet.of(this.isMember || other.isMember, children);
  }

  /** Without the places that belong to the other set; what is below them stays. */
  difference(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    return this.map((element, node) => node.difference(other.child(element)), this.isMember && !other.isMember);
  }

  /** Without the places that belong to the other set and all that is below them. */
  without(other: FieldSet): FieldSet {
    if (other.isMember) return FieldSet.empty;
    if (other.isEmpty) return this;
    return this.map((element, node) => node.without(other.child(element)), this.isMember);
  }

  intersection(other: FieldSet): FieldSet {
    return this.map((element, node) => node.intersection(other.child(element)), this.isMember && other.isMember);
  }

  equals(other: FieldSet): boolean {
    if (this === other) return true;
    if (this.isMember !== other.isMember || this.children.size !== other.children.size) return false;
    return [...this.children].every(
      ([element, node]) => node.equals(other.child(element)) && other.children.has(element),
    );
  }

  /** The form of `fieldsV1`: a place that belongs to the set and has others below it is marked by a dot. */
  encode(): Record<string, unknown> {
    const encoded: Record<string, unknown> = {};
    if (this.isMember && this.children.size > 0) encoded["."] = {};
    for (const element of [...this.children.keys()].sort()) setOwn(encoded, element, this.child(element).encode());
    return encoded;
  }

  /** All paths of the set, each as a text such as `.spec.containers[name="web"].image`. */
  paths(prefix = ""): string[] {
    const own = this.isMember ? [prefix] : [];
    return [
      ...own,
      ...[...this.children.keys()]
        .sort()
        .flatMap((element) => this.child(element).paths(prefix + elementText(element))),
    ];
  }

  private map(change: (element: PathElement, node: FieldSet) => FieldSet, isMember: boolean): FieldSet {
    const children = new Map<PathElement, FieldSet>();
    for (const [element, node] of this.children) {
      const next = change(element, node);
      if (!next.isEmpty) children.set(element, next);
    }
    return FieldSet.of(isMember, children);
  }
}

/** Collects a set while a tree is walked. */
export class FieldSetBuilder {
  private isMember = false;
  /** Undefined until something is below, which is never so for most places. */
  private children: Map<PathElement, FieldSetBuilder> | undefined;

  /** Adds the place itself. */
  add(): void {
    this.isMember = true;
  }

  at(element: PathElement): FieldSetBuilder {
    this.children ??= new Map();
    const known = this.children.get(element);
    if (known !== undefined) return known;
    const made = new FieldSetBuilder();
    this.children.set(element, made);
    return made;
  }

  build(): FieldSet {
    if (this.children === undefined) return FieldSet.of(this.isMember, FieldSet.empty.children);
    const children = new Map<PathElement, FieldSet>();
    for (const [element, builder] of this.children) {
      const node = builder.build();
      if (!node.isEmpty) children.set(element, node);
    }
    return FieldSet.of(this.isMember, children);
  }
}

/** A set of whole subtrees, from paths of field names. */
export function subtrees(...paths: readonly (readonly string[])[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) path.reduce((at, name) => at.at(`f:${name}`), builder).add();
  return builder.build();
}

function decodeNode(tree: Record<string, unknown>, isMember: boolean): FieldSet {
  const children = new Map<PathElement, FieldSet>();
  let isMarked = false;
  for (const [element, inner] of Object.entries(tree)) {
    if (element === ".") isMarked = true;
    else if (isTree(inner)) children.set(element, decodeNode(inner, true));
  }
  // A leaf is a member; what has others below it only if it is marked.
  return FieldSet.of(isMarked || (isMember && children.size === 0), children);
}

function elementText(element: PathElement): string {
  const content = element.slice(2);
  if (element.startsWith("f:")) return `.${content}`;
  if (element.startsWith("v:")) return `[=${content}]`;
  if (!element.startsWith("k:")) return `[${content}]`;
  const keys: unknown = JSON.parse(content);
  const parts = isTree(keys) ? Object.entries(keys).map(([name, value]) => `${name}=${JSON.stringify(value)}`) : [];
  return `[${parts.join(",")}]`;
}
