import { ApiError, CSI_NODES, type KubeApi } from "../adapters/kubeapi/index.ts";
import { isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { CSINode } from "../model/generated/types.ts";

/** In-tree volumes that scheduler and attach controller count by their CSI drivers. */
const MIGRATED = ["aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume"];
const MIGRATED_LIST = MIGRATED.map((plugin) => `kubernetes.io/${plugin}`).join(",");
const MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins";

export interface CsiNodeDeps {
  readonly api: Pick<KubeApi, "get" | "create" | "update" | "delete">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves to the UID of the registered node as soon as it differs from `not`. */
  nodeUid(options: { signal: AbortSignal; not: string | undefined }): Promise<string>;
  /** Called when the object exists; again for one that belongs to a new Node object, which has no drivers yet. */
  done(): void;
}

/** Ensures that the node has a CSINode that it owns; again when the Node object was recreated. */
export class CsiNodeKeeper {
  private failure: string | undefined;
  /** UID of the node whose CSINode exists. */
  private doneFor: string | undefined;

  constructor(
    private readonly deps: CsiNodeDeps,
    private readonly nodeName: string,
  ) {}

  /** The problem for the Ready condition; undefined once the CSINode exists. */
  get problem(): string | undefined {
    if (this.doneFor !== undefined) return undefined;
    return this.failure === undefined
      ? "CSINode is not yet initialized"
      : `failed to initialize CSINode: ${this.failure}`;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    const backoff = new Backoff({ initialMs: 50, maxMs: 10_000, jitter: 0.1 });
    while (!signal.aborted) {
      try {
        const uid = await this.deps.nodeUid({ signal, not: this.doneFor });
        await this.ensure(uid, signal);
        this.doneFor = uid;
        backoff.reset();
        this.deps.done();
      } catch (error) {
        if (isAborted(error, signal)) return;
        this.failure = messageOf(error);
        log.warn("Failed to create CSINode", { error: this.failure });
        await clock.sleep(backoff.next(clock.now()), { signal }).catch(() => undefined);
      }
    }
  }

  private async ensure(uid: string, signal: AbortSignal): Promise<void> {
    const { api } = this.deps;
    const name = this.nodeName;
    try {
      await api.create(CSI_NODES, { object: csiNodeOf(name, uid) }, { signal });
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
    }
    const found = await api.get(CSI_NODES, { name }, { signal });
    if (found.metadata.ownerReferences?.some((owner) => owner.uid === uid)) {
      const { annotations } = found.metadata;
      if (annotations?.[MIGRATED_ANNOTATION] === MIGRATED_LIST) return;
      // An older agent, for which fewer kinds were migrated, has created it.
      const metadata = { ...found.metadata, annotations: { ...annotations, [MIGRATED_ANNOTATION]: MIGRATED_LIST } };
      await api.update(CSI_NODES, { name, object: { ...found, metadata } }, { signal });
      return;
    }
    // It belongs to an earlier node of this name, whose drivers are not ours.
    const old = found.metadata.uid;
    await api.delete(CSI_NODES, { name, ...(old !== undefined && { uid: old }) }, { signal });
    await api.create(CSI_NODES, { object: csiNodeOf(name, uid) }, { signal });
  }
}

/** A CSINode without drivers, owned by the node with this UID. */
export function csiNodeOf(name: string, uid: string): CSINode {
  return {
    metadata: {
      name,
      annotations: { [MIGRATED_ANNOTATION]: MIGRATED_LIST },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }],
    },
    spec: { drivers: [] },
  };
}
