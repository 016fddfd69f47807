import { ApiError, type KubeApi, LEASES } from "../adapters/kubeapi/index.ts";
import { isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Lease } from "../model/generated/types.ts";

const NAMESPACE = "kube-node-lease";
/** Distinguishes our renewals from those of another agent with the same node name. */
export const INSTANCE_ANNOTATION = "kubelet-ts/instance";
/** The lease is renewed at this share of its duration, spread a little, as in Kubernetes. */
const RENEW_SHARE = 0.25;
const JITTER = 0.04;
/** Back-off after a failure, in milliseconds. */
const RETRY = { firstMs: 100, mostMs: 7000 };
/** Number of immediate retries after a conflict: another client may have written in between. */
const CONFLICTS = 5;

export interface LeaseDeps {
  readonly api: Pick<KubeApi, "get" | "create" | "update">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  /** The node's UID; undefined while there is no Node object: then the lease is not created. */
  nodeUid(): string | undefined;
  /** Another agent renews the lease of this node. */
  rival(message: string): void;
  renewed?(): void;
}

export interface LeaseOptions {
  readonly nodeName: string;
  /** Unique for each start of an agent. */
  readonly instance: string;
  readonly durationSeconds: Live<number>;
}

/** Renews the node's lease, independently of everything else. */
export class LeaseKeeper {
  private lease: Lease | undefined;
  private failures = 0;

  constructor(
    private readonly deps: LeaseDeps,
    private readonly options: LeaseOptions,
  ) {}

  /** Runs until the signal aborts. Failures are logged and retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, random } = this.deps;
    while (!signal.aborted) {
      let waitMs: number;
      try {
        const isRenewed = await this.renew(signal);
        const renewMs = this.options.durationSeconds.current * 1000 * RENEW_SHARE;
        waitMs = isRenewed ? renewMs * (1 + JITTER * random()) : RETRY.firstMs;
        this.failures = 0;
      } catch (error) {
        if (isAborted(error, signal)) return;
        waitMs = Math.min(RETRY.mostMs, RETRY.firstMs * 2 ** this.failures++) * (1 + JITTER * random());
        log.warn("Failed to renew node lease", { error: messageOf(error), failures: this.failures });
      }
      await clock.sleep(waitMs, { signal }).catch(() => undefined);
    }
  }

  /** One renewal; false while there is no Node object. */
  async renew(signal: AbortSignal): Promise<boolean> {
    const uid = this.deps.nodeUid();
    if (uid === undefined) return false;
    for (let conflicts = 0; ; conflicts++) {
      try {
        this.lease =
          this.lease === undefined ? await this.take(uid, signal) : await this.write(this.lease, uid, signal);
        this.deps.renewed?.();
        return true;
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        if (error.code !== "Conflict" && error.code !== "AlreadyExists" && error.code !== "NotFound") throw error;
        if (conflicts >= CONFLICTS) throw error;
        await this.look(signal);
      }
    }
  }

  /** The lease was written or deleted by another client: finds out by whom. */
  private async look(signal: AbortSignal): Promise<void> {
    const mine = this.lease;
    this.lease = undefined;
    const found = await this.find(signal);
    if (mine === undefined || found === undefined) return;
    const isOurs = found.metadata.annotations?.[INSTANCE_ANNOTATION] === this.options.instance;
    // After a lost response the lease has our own renewal; an edit leaves the time unchanged.
    if (isOurs || found.spec.renewTime === mine.spec.renewTime) return;
    const { nodeName } = this.options;
    this.deps.rival(
      `another agent runs as node ${JSON.stringify(nodeName)}: it renewed the lease at ${found.spec.renewTime}`,
    );
  }

  private async find(signal: AbortSignal): Promise<Lease | undefined> {
    try {
      return await this.deps.api.get(LEASES, { namespace: NAMESPACE, name: this.options.nodeName }, { signal });
    } catch (error) {
      if (error instanceof ApiError && error.code === "NotFound") return undefined;
      throw error;
    }
  }

  private async take(uid: string, signal: AbortSignal): Promise<Lease> {
    const found = await this.find(signal);
    if (found !== undefined) return this.write(found, uid, signal);
    const object = this.filled({ metadata: { name: this.options.nodeName, namespace: NAMESPACE }, spec: {} }, uid);
    return this.deps.api.create(LEASES, { namespace: NAMESPACE, object }, { signal });
  }

  private write(lease: Lease, uid: string, signal: AbortSignal): Promise<Lease> {
    const object = this.filled(lease, uid);
    return this.deps.api.update(LEASES, { namespace: NAMESPACE, name: this.options.nodeName, object }, { signal });
  }

  private filled(lease: Lease, uid: string): Lease {
    const { nodeName, instance, durationSeconds } = this.options;
    const owner = { apiVersion: "v1", kind: "Node", name: nodeName, uid };
    return {
      ...lease,
      metadata: {
        ...lease.metadata,
        annotations: { ...lease.metadata.annotations, [INSTANCE_ANNOTATION]: instance },
        ownerReferences: [owner],
      },
      spec: {
        ...lease.spec,
        holderIdentity: nodeName,
        leaseDurationSeconds: durationSeconds.current,
        renewTime: microTime(this.deps.clock.now().wall),
      },
    };
  }
}

/** RFC 3339 with exactly six digits of a second: the server rejects three. */
export function microTime(wall: number): string {
  return new Date(wall).toISOString().replace("Z", "000Z");
}
