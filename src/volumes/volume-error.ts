import { messageOf } from "../lib/errors.ts";

/** Kubernetes' words for a step that failed, and the reason of its event. */
export interface FailedStep {
  /** `MountVolume.SetUp failed`. */
  readonly step: string;
  readonly reason: "FailedMount" | "FailedMapVolume" | "FailedAttachVolume" | "VolumeResizeFailed";
  /** The PersistentVolume, if there is one. */
  readonly volume?: string;
}

const SET_UP: FailedStep = { step: "MountVolume.SetUp failed", reason: "FailedMount" };

/** A step of setting up a volume failed; the message is that of its cause. */
export class VolumeStepError extends Error {
  override readonly name = "VolumeStepError";

  constructor(
    readonly failed: FailedStep,
    cause: unknown,
  ) {
    super(messageOf(cause), { cause });
  }
}

/** What a volume waits for is on its way: not a failure, and no event. */
export class VolumePendingError extends Error {
  override readonly name: string = "VolumePendingError";
}

/** A volume cannot be attached: the node has as many as it can. */
export class AttachLimitError extends VolumePendingError {
  override readonly name = "AttachLimitError";
}

/** Runs a step; what it rejects with is reported as a failure of this step, unless it is one of a step already. */
export async function asStep<T>(failed: FailedStep, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isKnown = error instanceof VolumeStepError || error instanceof VolumePendingError;
    throw isKnown || signal.aborted ? error : new VolumeStepError(failed, error);
  }
}

/** Names the PersistentVolume that an error is about, as Kubernetes' events do. */
export function aboutVolume(volume: string, error: unknown): unknown {
  if (error instanceof VolumePendingError || !(error instanceof Error)) return error;
  const { failed, cause } = error instanceof VolumeStepError ? error : { failed: SET_UP, cause: error };
  return new VolumeStepError({ ...failed, volume }, cause);
}

/** True if a call certainly did nothing and is not in progress: whoever answered it said so. */
export function isFinal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ("isFinal" in error && error.isFinal === true) || isFinal(error.cause);
}

/** The event of a volume that could not be set up; undefined if there is nothing to report. Pure. */
export function setUpEvent(
  name: string,
  error: unknown,
): { readonly reason: FailedStep["reason"]; readonly message: string } | undefined {
  if (error instanceof VolumePendingError) return undefined;
  const { step, reason, volume = name } = error instanceof VolumeStepError ? error.failed : SET_UP;
  return { reason, message: `${step} for volume "${volume}" : ${messageOf(error)}` };
}
