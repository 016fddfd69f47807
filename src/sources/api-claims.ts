import { type KubeApi, PERSISTENT_VOLUME_CLAIMS } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { PersistentVolumeClaim } from "../model/generated/types.ts";

/** Writes the status of claims of pods on this node. */
export class ApiClaims {
  constructor(private readonly api: Pick<KubeApi, "patch">) {}

  /** Resolves to the claim as it is then; rejects if it is not of the version that the patch names. */
  patchStatus(
    { namespace, name }: { readonly namespace: string; readonly name: string },
    body: object,
    { signal }: Abortable,
  ): Promise<PersistentVolumeClaim> {
    const change = { namespace, name, type: "strategic", subresource: "status", body } as const;
    return this.api.patch(PERSISTENT_VOLUME_CLAIMS, change, { signal });
  }
}
