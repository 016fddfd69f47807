import { ApiError, type KubeApi, type ObjectRef, type Resource } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";

/** Returns an object, or undefined if it does not exist; other failures reject. */
export async function getOrUndefined<T>(
  api: Pick<KubeApi, "get">,
  resource: Resource<T>,
  { at, signal }: Abortable & { readonly at: ObjectRef },
): Promise<T | undefined> {
  try {
    return await api.get(resource, at, { signal });
  } catch (error) {
    if (error instanceof ApiError && error.code === "NotFound") return undefined;
    throw error;
  }
}
