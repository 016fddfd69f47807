import { ApiError, type KubeApi, NODES } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Logger } from "../lib/log.ts";
import type { Node } from "../model/generated/types.ts";
import { reconcileMetadata } from "./node-object.ts";

/** The dependencies of `registerNode`. */
export interface RegistrarDeps {
  readonly api: Pick<KubeApi, "get" | "create" | "patch">;
  readonly log: Logger;
}

/**
 * Creates the Node object, or reconciles the existing one and leaves its taints and the labels of others alone. Returns
 * the stored object, and whether it was created (then it has the wanted status). May be repeated; rejects with the
 * server's `ApiError`.
 */
export async function registerNode(
  { api, log }: RegistrarDeps,
  wanted: Node,
  { signal }: Abortable,
): Promise<{ readonly node: Node; readonly isNew: boolean }> {
  const name = wanted.metadata.name ?? "";
  try {
    const made = await api.create(NODES, { object: wanted }, { signal });
    log.info("Registered node", { node: name, uid: made.metadata.uid ?? "" });
    return { node: made, isNew: true };
  } catch (error) {
    // Forbidden: an existing node may be used although it may not be created.
    if (!(error instanceof ApiError) || (error.code !== "AlreadyExists" && error.code !== "Forbidden")) throw error;
    const node = await reconcile({ api, log }, wanted, { signal }).catch((inner: unknown) => {
      throw inner instanceof ApiError && inner.code === "NotFound" ? error : inner;
    });
    return { node, isNew: false };
  }
}

async function reconcile({ api, log }: RegistrarDeps, wanted: Node, { signal }: Abortable): Promise<Node> {
  const name = wanted.metadata.name ?? "";
  const existing = await api.get(NODES, { name }, { signal });
  const body = reconcileMetadata(existing, wanted);
  if (body === undefined) return existing;
  log.info("Reconciled node that was registered before", { node: name });
  return api.patch(NODES, { name, type: "strategic", subresource: "status", body }, { signal });
}
