import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/log.ts";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../model/generated/types.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { tryParseQuantity, wholeValue } from "../../model/quantity.ts";
import type { ClaimIdentity, PodIdentity } from "../../model/step.ts";
import type { OperationMeter } from "../metrics.ts";
import { type FailedStep, VolumeStepError } from "../volume-error.ts";
import { type ClaimPatch, failedPatch, finishedPatch, inProgressPatch } from "./claim-status.ts";
import { ExpandError } from "./expand-error.ts";
import type { ExpandRequest } from "./expand-request.ts";
import { type ExpansionPlan, type ExpansionState, planExpansion } from "./plan-expansion.ts";

/** Writes the status of claims. */
export interface ClaimWriter {
  /** Resolves to the claim as it is then. Rejects if it has changed since the version that the patch names. */
  patchStatus(
    claim: { readonly namespace: string; readonly name: string },
    patch: ClaimPatch,
    options: Abortable,
  ): Promise<PersistentVolumeClaim>;
}

export interface ClaimExpanderDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly objects: ObjectSource;
  readonly meter: OperationMeter;
  /** Undefined without an API server: then no claim ever grows. */
  readonly claims?: ClaimWriter | undefined;
  event(pod: PodIdentity, event: ExpansionEvent): void;
}

export interface ExpansionEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Set if the event is about the claim. */
  readonly claim?: ClaimIdentity;
}

/** A claim's volume that a pod uses, and how to grow it. */
export interface ClaimedVolume {
  readonly pod: Pod;
  readonly claim: PersistentVolumeClaim;
  readonly volume: PersistentVolume;
  readonly readonly: boolean;
  /** For metrics. */
  readonly plugin: string;
  /** Grows it to at least so many bytes, and its filesystem; rejects with an `ExpandError`. */
  expand(request: ExpandRequest, options: Abortable): Promise<void>;
}

type Expansion = ExpansionPlan & { readonly kind: "expand" };

const WHILE_MOUNTING: FailedStep = {
  step: "MountVolume.Setup failed while expanding volume",
  reason: "FailedMount",
};
const IN_USE: FailedStep = { step: "NodeExpandVolume.NodeExpandVolume failed", reason: "VolumeResizeFailed" };

/**
 * Grows the volumes of claims on this node, when they are set up and while pods use them, and keeps the claims' status.
 *
 *     NodeResizePending ─► NodeResizeInProgress ─► (grown: capacity is the new size, no resize status any more)
 *                                   ├─► failed for certain: the condition NodeResizeError, tried again
 *                                   └─► never to this size: NodeResizeInfeasible, until the controller decides anew
 */
export class ClaimExpander {
  /** By the name of the PersistentVolume. */
  private readonly states = new Map<string, ExpansionState>();
  /** The pods that use them. */
  private readonly users = new Map<string, Set<string>>();
  /** One at a time for a volume. */
  private readonly mutex = new KeyedMutex();

  constructor(private readonly deps: ClaimExpanderDeps) {}

  /** Grows a volume that is just set up, if it has to; the pod does not start with one that could not be grown. */
  async whileMounting(of: ClaimedVolume, options: Abortable): Promise<void> {
    const name = this.begin(of);
    const work = (): Promise<void> => this.carryOut(of, this.plan(of, true), options);
    await this.mutex.run(name, () => asFailure({ ...WHILE_MOUNTING, volume: name }, work, options), options);
  }

  /** Grows a volume that pods use, if it has to. */
  async whileUsed(of: ClaimedVolume, options: Abortable): Promise<void> {
    const name = this.begin(of);
    const work = async (): Promise<void> => {
      const plan = this.plan(of, false);
      if (plan.kind === "nothing" || plan.kind === "wait") return;
      const operation = { plugin: of.plugin, operation: "volume_fs_resize" } as const;
      await this.deps.meter.measure(operation, () => this.carryOut(of, plan, options));
    };
    await this.mutex.run(name, () => asFailure({ ...IN_USE, volume: name }, work, options), options);
  }

  /** The pod uses no volume any more. What was known of one that no pod uses is forgotten. */
  released(uid: string): void {
    for (const [name, pods] of this.users) {
      if (!pods.delete(uid) || pods.size > 0) continue;
      this.users.delete(name);
      this.states.delete(name);
    }
  }

  private begin(of: ClaimedVolume): string {
    const name = nameOf(of);
    this.users.set(name, (this.users.get(name) ?? new Set()).add(podIdentity(of.pod).uid));
    const size = of.claim.status?.capacity?.["storage"];
    if (this.states.get(name)?.size === undefined && size !== undefined) this.note(name, { size });
    return name;
  }

  private plan(of: ClaimedVolume, isMounting: boolean): ExpansionPlan {
    const { claim, volume, readonly } = of;
    return planExpansion({ claim, volume, readonly, isMounting, state: this.states.get(nameOf(of)) ?? {} });
  }

  private async carryOut(of: ClaimedVolume, plan: ExpansionPlan, options: Abortable): Promise<void> {
    if (plan.kind === "done") this.note(nameOf(of), { size: plan.size });
    if (plan.kind === "readOnly") {
      const message = "requested read-only file system";
      this.report(of, { type: "Warning", reason: "FileSystemResizeFailed", words: "failed", message });
    }
    if (plan.kind === "expand") await this.expand(of, plan, options);
  }

  private async expand(of: ClaimedVolume, plan: Expansion, options: Abortable): Promise<void> {
    const { size, hasSteps, isReported } = plan;
    const name = nameOf(of);
    let { claim } = of;
    if (hasSteps && !isReported) claim = await this.patch(claim, inProgressPatch(claim), options);
    try {
      const before = tryParseQuantity(claim.status?.capacity?.["storage"] ?? "");
      const fromBytes = before === undefined ? {} : { fromBytes: wholeValue(before) };
      await of.expand({ bytes: plan.bytes, ...fromBytes }, options);
    } catch (error) {
      options.signal.throwIfAborted();
      if (await this.isForgiven(error, { of: { ...of, claim }, plan }, options)) return;
      throw error;
    }
    const message = of.pod.spec.nodeName ?? "";
    this.report(of, { type: "Normal", reason: "FileSystemResizeSuccessful", words: "succeeded", message });
    if (!isReported) await this.patch(claim, finishedPatch(claim, { size, hasSteps }), options);
    this.states.set(name, { size });
  }

  /** Records a failure; true if the pod may use the volume as it is. */
  private async isForgiven(
    error: unknown,
    { of, plan }: { readonly of: ClaimedVolume; readonly plan: Expansion },
    options: Abortable,
  ): Promise<boolean> {
    if (!(error instanceof ExpandError)) return false;
    const name = nameOf(of);
    const { size, hasSteps, isReported } = plan;
    if (error.fate === "unsupported" && (isReported || !hasSteps)) {
      this.note(name, { size });
      return true;
    }
    if (hasSteps && error.isFinished) {
      this.note(name, { hasFailed: true });
      const isInfeasible = error.fate === "infeasible" || plan.isInfeasibleOnFailure;
      const about = { message: error.message, at: this.deps.clock.now().wall, isInfeasible };
      await this.patch(of.claim, failedPatch(of.claim, about), options).catch((failure: unknown) => {
        options.signal.throwIfAborted();
        this.deps.log.warn("Failed to report that a volume could not be expanded", {
          volume: name,
          error: messageOf(failure),
        });
      });
    }
    if (error.fate !== "inUse") return false;
    this.note(name, { isRefused: true });
    this.deps.log.warn("Failed to expand volume in use", { volume: name, error: error.message });
    return true;
  }

  private note(name: string, known: ExpansionState): void {
    this.states.set(name, { ...this.states.get(name), ...known });
  }

  private patch(claim: PersistentVolumeClaim, patch: ClaimPatch, options: Abortable): Promise<PersistentVolumeClaim> {
    const { claims } = this.deps;
    const { namespace = "", name = "" } = claim.metadata;
    if (claims === undefined) throw new Error("a claim's status needs an API server");
    return claims.patchStatus({ namespace, name }, patch, options);
  }

  /** To the pod and to the claim, in Kubernetes' words. */
  private report(
    of: ClaimedVolume,
    { type, reason, words, message }: Pick<ExpansionEvent, "type" | "reason" | "message"> & { readonly words: string },
  ): void {
    const { namespace = "", name = "", uid = "" } = of.claim.metadata;
    const text = `MountVolume.NodeExpandVolume ${words} for volume "${nameOf(of)}" ${message}`;
    const pod = podIdentity(of.pod);
    this.deps.event(pod, { type, reason, message: text });
    this.deps.event(pod, { type, reason, message: text, claim: { namespace, name, uid } });
  }
}

async function asFailure(failed: FailedStep, work: () => Promise<void>, { signal }: Abortable): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw signal.aborted ? error : new VolumeStepError(failed, error);
  }
}

function nameOf({ volume }: Pick<ClaimedVolume, "volume">): string {
  return volume.metadata.name ?? "";
}
