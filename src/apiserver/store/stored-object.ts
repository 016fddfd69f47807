/** A parsed object: nothing is known about it but that it is one. */
export type JsonObject = Record<string, unknown>;

/** Names one object of a collection; the namespace of cluster-scoped ones is empty. */
export interface ObjectPlace {
  readonly namespace: string;
  readonly name: string;
}

/** What selectors look at. */
export interface SelectableFacts {
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string>>;
}

/** Reads what selectors look at: one function for a kind. */
export type FactsReader = (tree: JsonObject) => SelectableFacts;

/**
 * One version of an object. It is kept as JSON text, which is a fraction of its parsed form, and parsed when somebody
 * needs to look inside.
 */
export class StoredObject {
  private selected: { readonly read: FactsReader; readonly facts: SelectableFacts } | undefined;
  private tree: WeakRef<JsonObject> | undefined;

  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string;

  constructor(
    { namespace, name }: ObjectPlace,
    readonly text: string,
    /** Its `metadata.resourceVersion`; of a deleted object the revision of the deletion. */
    readonly revision: number,
  ) {
    this.namespace = namespace;
    this.name = name;
  }

  /** A copy of its own for the caller, who may change it. */
  parse(): JsonObject {
    // Only objects are stored.
    return JSON.parse(this.text) as JsonObject;
  }

  /** One parsed form for all readers inside the process, without field ownership. Nobody may change it. */
  shared(): JsonObject {
    const known = this.tree?.deref();
    if (known !== undefined) return known;
    const tree = this.parse();
    if (typeof tree.metadata === "object" && tree.metadata !== null) {
      delete (tree.metadata as JsonObject).managedFields;
    }
    this.tree = new WeakRef(tree);
    return tree;
  }

  /** What selectors look at; computed once for a reader. Two kinds may select from one object by different names. */
  selectable(read: FactsReader): SelectableFacts {
    if (this.selected?.read !== read) this.selected = { read, facts: read(this.shared()) };
    return this.selected.facts;
  }
}
