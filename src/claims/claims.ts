import type { Abortable } from "../lib/abort.ts";
import { isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import type { ContainerClaim } from "../model/claim-device.ts";
import { ConfigError } from "../model/config-error.ts";
import type { Container, Pod, ResourceStatus } from "../model/generated/types.ts";
import type { ClaimPreparer, PreparerOptions } from "./claim-preparer.ts";
import { claimKey, devicesOf, isForRequest } from "./claim-record.ts";
import type { ClaimStore } from "./claim-store.ts";
import type { DeviceHealth } from "./device-health.ts";
import { claimNamed, containerRequests } from "./pod-claims.ts";
import { claimStatuses } from "./resource-status.ts";

export interface ClaimsDeps {
  readonly store: ClaimStore;
  readonly preparer: ClaimPreparer;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  healthOf(device: { readonly driver: string; readonly pool: string; readonly device: string }): DeviceHealth;
  /** The pods of the node; once the list is complete, claims of others are unprepared. */
  readonly pods: {
    readonly isComplete: boolean;
    isKnown(uid: string): boolean;
    /** Calls `fn` when the list becomes complete. */
    onComplete(fn: () => void, options: Abortable): void;
  };
}

export interface ClaimsOptions extends PreparerOptions {
  readonly hasHealth: boolean;
  readonly hasHealthMessage: boolean;
}

/** Between two looks for claims of pods that are gone, in milliseconds, as in Kubernetes. */
const RECONCILE_MS = 60_000;

/** The resource claims of pods, as the ring needs them: prepared before the sandbox, unprepared after the containers. */
export class Claims {
  /** As a contributor to containers: the CDI devices of exactly the claims and requests that they name. */
  readonly name = "resource claims";

  private readonly wakes: Wakes;

  constructor(
    private readonly deps: ClaimsDeps,
    private readonly options: () => ClaimsOptions,
  ) {
    this.wakes = new Wakes(deps.clock);
  }

  prepare(pod: Pod, options: Abortable): Promise<void> {
    return this.deps.preparer.prepare(pod, options);
  }

  unprepare(uid: string, options: Abortable): Promise<void> {
    return this.deps.preparer.unprepare(uid, options);
  }

  /** True while drivers may have something prepared for the pod. */
  holds(uid: string): boolean {
    return this.deps.store.isUsedBy(uid);
  }

  async contribute(creation: {
    readonly pod: Pod;
    readonly container: Container;
    readonly interrupt: AbortSignal;
  }): Promise<{ readonly cdiDevices?: readonly string[] }> {
    const { pod, container, interrupt } = creation;
    try {
      const wanted = containerRequests(pod, container, this.options());
      if (wanted.size === 0) return {};
      // Prepared before the sandbox; only if the checkpoint is lost it is not known.
      const isKnown = [...wanted.keys()].every((claim) => this.record(pod, claim) !== undefined);
      if (!isKnown) await this.prepare(pod, { signal: interrupt });
      const cdiDevices = [...wanted].flatMap(([claim, requests]) => {
        const record = this.record(pod, claim);
        if (record === undefined) throw new Error(`ResourceClaim ${claim} is not prepared`);
        const devices = devicesOf(record).filter((device) => requests.some((request) => isForRequest(device, request)));
        return devices.flatMap((device) => device.cdiDevices);
      });
      return { cdiDevices };
    } catch (error) {
      if (isAborted(error, interrupt)) throw error;
      throw new ConfigError(messageOf(error), { cause: error });
    }
  }

  /** The claims that a container uses and that are prepared, for the pod resources API. */
  claimsOf(pod: Pod, container: Container): readonly ContainerClaim[] {
    try {
      return [...containerRequests(pod, container, this.options()).keys()].flatMap((claim) => {
        const record = this.record(pod, claim);
        if (record === undefined) return [];
        const { name, namespace } = record;
        return [{ name, namespace, devices: devicesOf(record) }];
      });
    } catch {
      // The object of a template is not known yet: nothing is prepared.
      return [];
    }
  }

  /** The health of the container's devices, for `allocatedResourcesStatus`. */
  healthOf(pod: Pod, container: Container): readonly ResourceStatus[] {
    const { hasHealth, hasHealthMessage: hasMessage } = this.options();
    if (!hasHealth || (container.resources?.claims ?? []).length === 0) return [];
    const devices = (entry: string) => {
      try {
        const claim = claimNamed(pod, entry);
        const record = claim && this.record(pod, claim.name);
        return record && devicesOf(record);
      } catch {
        return undefined;
      }
    };
    return claimStatuses(container, { devices, healthOf: (device) => this.deps.healthOf(device), hasMessage });
  }

  /** A driver may be able by now to unprepare what it could not. */
  driverChanged(): void {
    this.wakes.wake();
  }

  /** Unprepares the claims of pods that are gone, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { pods } = this.deps;
    pods.onComplete(() => this.driverChanged(), { signal });
    while (!signal.aborted) {
      if (pods.isComplete) await this.reconcile(signal);
      await this.wakes.sleep(RECONCILE_MS, signal);
    }
  }

  private async reconcile(signal: AbortSignal): Promise<void> {
    const { store, preparer, pods, log } = this.deps;
    try {
      store.load();
    } catch {
      // Still unreadable, which is logged: pods that end meanwhile are found when it can be read.
    }
    const users = new Set(store.list().flatMap((claim) => [...claim.pods]));
    for (const podUID of users) {
      if (pods.isKnown(podUID)) continue;
      try {
        await preparer.unprepareRemoved(podUID, { signal });
      } catch (error) {
        if (isAborted(error, signal)) return;
        log.warn("Failed to unprepare claims of a removed pod", { podUID, error: messageOf(error) });
      }
    }
  }

  /** The claim, if it was checked that the pod may use it: the status that names it can change after that. */
  private record(pod: Pod, claim: string) {
    const { namespace = "", uid = "" } = pod.metadata;
    const record = this.deps.store.get(claimKey({ namespace, name: claim }));
    return record?.pods.has(uid) === true ? record : undefined;
  }
}
