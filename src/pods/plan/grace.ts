import { ownValue } from "../../lib/own-value.ts";
import type { Pod, Probe } from "../../model/generated/types.ts";
import { POD_DELETION_GRACE_PERIOD_ANNOTATION, POD_TERMINATION_GRACE_PERIOD_ANNOTATION } from "../../model/labels.ts";
import type { ObservedContainer } from "../../model/observed.ts";

/** The default of the API, in seconds. */
const DEFAULT_GRACE_SECONDS = 30;

/** What else than the pod decides about a grace period. */
export interface GraceFacts {
  /** The probe whose failure is the reason of the kill. */
  readonly probe?: Probe | undefined;
  /** The container to kill: an orphaned pod has no spec, but its containers carry the grace period as an annotation. */
  readonly container?: Pick<ObservedContainer, "annotations"> | undefined;
}

/**
 * The grace period of a kill in seconds: the one of the deletion, else the probe's, else the pod's, else the one that
 * was recorded on the container when it was created. Pure; nothing else computes one.
 */
export function graceFor({ metadata, spec }: Pod, { probe, container }: GraceFacts = {}): number {
  return (
    metadata.deletionGracePeriodSeconds ??
    probe?.terminationGracePeriodSeconds ??
    spec.terminationGracePeriodSeconds ??
    recorded(container, POD_DELETION_GRACE_PERIOD_ANNOTATION) ??
    recorded(container, POD_TERMINATION_GRACE_PERIOD_ANNOTATION) ??
    DEFAULT_GRACE_SECONDS
  );
}

function recorded(container: GraceFacts["container"], annotation: string): number | undefined {
  const text = ownValue(container?.annotations, annotation) ?? "";
  return /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}
