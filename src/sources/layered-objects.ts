import type { Abortable } from "../lib/abort.ts";
import type { ObjectKind, ObjectKinds, ObjectRef, ObjectSource } from "../model/object-source.ts";

/** Objects of several sources; the first that has one wins. For manifests beside an API. */
export class LayeredObjects implements ObjectSource {
  constructor(private readonly layers: readonly ObjectSource[]) {}

  async get<K extends ObjectKind>(ref: ObjectRef<K>, options: Abortable): Promise<ObjectKinds[K] | undefined> {
    for (const layer of this.layers) {
      const found = await layer.get(ref, options);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  onChange(ref: ObjectRef, fn: () => void, options: Abortable): void {
    for (const layer of this.layers) layer.onChange(ref, fn, options);
  }
}
