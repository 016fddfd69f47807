import { ApiError, type KubeApi, type KubeObject, type Resource } from "../../adapters/kubeapi/index.ts";
import type { Abortable } from "../../lib/abort.ts";

export interface FinalizerOf<T> {
  readonly resource: Resource<T>;
  readonly object: T;
  readonly name: string;
}

/** Removes a finalizer from exactly this object; one that is gone needs nothing. */
export async function removeFinalizer<T extends KubeObject>(
  api: Pick<KubeApi, "patch">,
  { resource, object, name: finalizer }: FinalizerOf<T>,
  options: Abortable,
): Promise<void> {
  const { namespace, name = "", uid } = object.metadata;
  const body = { metadata: { uid, "$deleteFromPrimitiveList/finalizers": [finalizer] } };
  try {
    await api.patch(resource, { name, ...(namespace && { namespace }), type: "strategic", body }, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
  }
}
