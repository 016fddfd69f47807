import type { ObjectMeta } from "../../../model/generated/types.ts";

/** Metadata with a finalizer that keeps an object as long as it is used; a controller removes it. */
export function withFinalizer(metadata: ObjectMeta, name: string): ObjectMeta {
  const { finalizers = [] } = metadata;
  return finalizers.includes(name) ? metadata : { ...metadata, finalizers: [...finalizers, name] };
}
