import { ApiError, type KubeApi, RESOURCE_CLAIMS } from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import type { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { ClaimDevice } from "../model/claim-device.ts";
import type { Pod } from "../model/generated/types.ts";
import { usableClaim } from "./claim-object.ts";
import { type ClaimRecord, claimKey } from "./claim-record.ts";
import type { ClaimStore } from "./claim-store.ts";
import type { ClaimRef, DriverConnection } from "./drivers.ts";
import { type ClaimOptions, hasClaims, type PodClaim, podClaims } from "./pod-claims.ts";

export interface PreparerDeps {
  readonly store: ClaimStore;
  /** One at a time for each claim. */
  readonly locks: KeyedMutex;
  readonly drivers: { get(driver: string): DriverConnection };
  readonly api: Pick<KubeApi, "get">;
  /** Called with the duration of each operation. */
  measured(operation: "PrepareResources" | "UnprepareResources", tookMs: number, isError: boolean): void;
  now(): number;
}

export interface PreparerOptions extends ClaimOptions {
  /** Claims of a pod's group may be used by the pod (feature gate DRAWorkloadResourceClaims). */
  readonly acceptsGroups: boolean;
}

type Usable = Pick<ClaimRecord, "uid" | "name" | "namespace" | "drivers">;

/**
 * Has drivers prepare the claims of pods and undo that. A claim that several pods use is prepared once, and unprepared
 * when the last of them has ended. Which pod uses what is on disk before a driver is called.
 */
export class ClaimPreparer {
  constructor(
    private readonly deps: PreparerDeps,
    private readonly options: () => PreparerOptions,
  ) {}

  /** Prepares all claims of a pod; safe to repeat. */
  prepare(pod: Pod, options: Abortable): Promise<void> {
    if (!hasClaims(pod, this.options())) return Promise.resolve();
    return this.measure("PrepareResources", async () => {
      try {
        const usable = await this.usableClaims(pod, options);
        await this.locked(usable.map(claimKey), () => this.prepareLocked(pod, usable, options), options);
      } catch (error) {
        options.signal.throwIfAborted();
        throw new Error(`prepare dynamic resources: ${messageOf(error)}`, { cause: error });
      }
    });
  }

  /** Unprepares what only this pod uses; safe to repeat. Needs neither the pod nor the claims' objects. */
  unprepare(uid: string, options: Abortable): Promise<void> {
    if (!this.deps.store.isUsedBy(uid)) return Promise.resolve();
    return this.measure("UnprepareResources", () => this.unprepareRemoved(uid, options));
  }

  /** The same for a pod that is gone; not measured, as in Kubernetes, because no pod waits for it. */
  async unprepareRemoved(uid: string, options: Abortable): Promise<void> {
    const keys = this.deps.store.ofPod(uid).map(claimKey);
    try {
      await this.locked(keys, () => this.unprepareLocked(uid, options), options);
    } catch (error) {
      options.signal.throwIfAborted();
      throw new Error(`unprepare dynamic resources: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Checks everything before anything is noted: a pod that fails here can be deleted without its drivers. */
  private async usableClaims(pod: Pod, options: Abortable): Promise<readonly Usable[]> {
    const found = new Map<string, Usable>();
    const asked = new Set<string>();
    for (const claim of podClaims(pod, this.options())) {
      // Two entries of a pod may name one claim: a driver that is told of it twice answers once.
      const key = `${claim.name} ${claim.isGenerated}`;
      if (asked.has(key)) continue;
      asked.add(key);
      const usable = await this.usable(pod, claim, options);
      for (const driver of usable.drivers.keys()) this.deps.drivers.get(driver);
      found.set(usable.name, usable);
    }
    return [...found.values()];
  }

  private async usable(pod: Pod, claim: PodClaim, options: Abortable): Promise<Usable> {
    const at = { namespace: pod.metadata.namespace ?? "", name: claim.name };
    try {
      const object = await this.deps.api.get(RESOURCE_CLAIMS, at, options);
      return usableClaim(pod, object, { ...claim, acceptsGroups: this.options().acceptsGroups });
    } catch (error) {
      if (options.signal.aborted || !(error instanceof ApiError)) throw error;
      const known = this.deps.store.get(claimKey(at));
      // While the server is unavailable: it was checked when the pod first used it.
      if (error.isRetryable && known?.pods.has(pod.metadata.uid ?? "")) return known;
      throw new Error(`fetch ResourceClaim ${claim.name}: ${error.message}`, { cause: error });
    }
  }

  private async prepareLocked(pod: Pod, usable: readonly Usable[], options: Abortable): Promise<void> {
    const { store } = this.deps;
    // Before the names are compared: what an earlier run prepared counts, also if it could not be read until now.
    store.load();
    for (const claim of usable) {
      const known = store.get(claimKey(claim));
      if (known !== undefined && known.uid !== claim.uid) {
        throw new Error(
          `old ResourceClaim with same name ${claim.name} and different UID ${known.uid} still exists (previous pod force-deleted?!)`,
        );
      }
    }
    const used = usable.map((claim) => store.use(claim, pod.metadata.uid ?? ""));
    await store.save();
    const wanted = used.filter(({ isPrepared }) => !isPrepared);
    const results = new Map<string, Map<string, readonly ClaimDevice[]>>();
    for (const [driver, claims] of byDriver(wanted)) {
      const answers = await this.callPrepare(driver, claims, options);
      for (const [uid, devices] of answers) results.set(uid, new Map([...(results.get(uid) ?? []), [driver, devices]]));
    }
    for (const claim of wanted) store.prepared(claimKey(claim), results.get(claim.uid) ?? new Map());
    await store.save();
  }

  private async callPrepare(
    driver: string,
    claims: readonly ClaimRef[],
    options: Abortable,
  ): Promise<ReadonlyMap<string, readonly ClaimDevice[]>> {
    const connection = this.deps.drivers.get(driver);
    const answers = await connection.prepare(claims.map(refOf), options).catch((error: unknown) => {
      options.signal.throwIfAborted();
      throw new Error(`NodePrepareResources: ${messageOf(error)}`, { cause: error });
    });
    const errors = new Map([...answers].map(([uid, { error }]) => [uid, error]));
    check("NodePrepareResources", claims, errors);
    return new Map([...answers].map(([uid, { devices }]) => [uid, devices]));
  }

  private async unprepareLocked(uid: string, options: Abortable): Promise<void> {
    const { store } = this.deps;
    const held = store.ofPod(uid);
    const last = held.filter(({ pods }) => pods.size === 1);
    for (const claim of held) if (claim.pods.size !== 1) store.leave(claimKey(claim), uid);
    const failed = new Set<string>();
    let failure: { readonly error: unknown } | undefined;
    for (const [driver, claims] of byDriver(last)) {
      try {
        await this.callUnprepare(driver, claims, options);
      } catch (error) {
        if (options.signal.aborted) throw error;
        failure ??= { error };
        for (const claim of claims) failed.add(claim.uid);
      }
    }
    for (const claim of last) if (!failed.has(claim.uid)) store.delete(claimKey(claim));
    await store.save();
    if (failure !== undefined) throw failure.error;
  }

  private async callUnprepare(driver: string, claims: readonly ClaimRef[], options: Abortable): Promise<void> {
    const connection = this.deps.drivers.get(driver);
    const answers = await connection.unprepare(claims.map(refOf), options).catch((error: unknown) => {
      options.signal.throwIfAborted();
      throw new Error(`NodeUnprepareResources: ${messageOf(error)}`, { cause: error });
    });
    check("NodeUnprepareResources", claims, answers);
  }

  /** Takes the locks in one order for all pods: no two wait for each other. */
  private locked(keys: readonly string[], work: () => Promise<void>, options: Abortable): Promise<void> {
    const inOrder = [...new Set(keys)].sort();
    const take = async (at: number): Promise<void> => {
      const key = inOrder[at];
      if (key === undefined) return work();
      // Nested calls would overflow the stack: a pod may have thousands of claims.
      await Promise.resolve();
      return this.deps.locks.run(key, () => take(at + 1), options);
    };
    return take(0);
  }

  private async measure(
    operation: "PrepareResources" | "UnprepareResources",
    work: () => Promise<void>,
  ): Promise<void> {
    const began = this.deps.now();
    let isError = true;
    try {
      await work();
      isError = false;
    } finally {
      this.deps.measured(operation, this.deps.now() - began, isError);
    }
  }
}

function refOf({ uid, name, namespace }: ClaimRef): ClaimRef {
  return { uid, name, namespace };
}

function byDriver(claims: readonly ClaimRecord[]): ReadonlyMap<string, readonly ClaimRecord[]> {
  const found = new Map<string, ClaimRecord[]>();
  for (const claim of claims) {
    for (const driver of claim.drivers.keys()) {
      const own = found.get(driver);
      if (own === undefined) found.set(driver, [claim]);
      else own.push(claim);
    }
  }
  return found;
}

/** Every claim must have its answer, and no other. */
function check(call: string, claims: readonly ClaimRef[], errors: ReadonlyMap<string, string>): void {
  const byUid = new Map(claims.map((claim) => [claim.uid, claim]));
  for (const [uid, error] of errors) {
    const claim = byUid.get(uid);
    if (claim === undefined) throw new Error(`${call} returned result for unknown claim UID ${uid.slice(0, 64)}`);
    if (error !== "") throw new Error(`${call} failed for ResourceClaim ${claim.name}: ${error}`);
  }
  const missing = claims.length - errors.size;
  if (missing > 0) throw new Error(`${call} skipped ${missing} ResourceClaims`);
}
