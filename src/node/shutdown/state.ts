/** When the last graceful shutdown began and ended, in wall-clock milliseconds; without an end it was not finished. */
export interface ShutdownState {
  /** The boot that it belongs to; undefined if another kubelet wrote it. */
  readonly bootId?: string | undefined;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
}

/** Go's zero time, which Kubernetes writes for an end that is not known. */
const ZERO = "0001-01-01T00:00:00Z";

/** The document in `graceful_node_shutdown_state`, in the format of Kubernetes, and the boot, which is ours. */
export interface ShutdownDocument {
  readonly bootID?: string;
  readonly startTime: string;
  readonly endTime: string;
}

/** Pure. */
export function encodeShutdownState({ bootId, startedAt, endedAt }: ShutdownState): ShutdownDocument {
  const text = (ms: number | undefined): string => (ms === undefined ? ZERO : new Date(ms).toISOString());
  return { ...(bootId !== undefined && { bootID: bootId }), startTime: text(startedAt), endTime: text(endedAt) };
}

/** Undefined for a document of another shape, or without a start. Pure. */
export function decodeShutdownState(document: unknown): ShutdownState | undefined {
  if (typeof document !== "object" || document === null) return undefined;
  const { startTime, endTime, bootID } = document as Partial<Record<keyof ShutdownDocument, unknown>>; // reason: checked below
  const startedAt = instantOf(startTime);
  if (startedAt === undefined) return undefined;
  const endedAt = instantOf(endTime);
  return {
    startedAt,
    ...(endedAt !== undefined && { endedAt }),
    ...(typeof bootID === "string" && { bootId: bootID }),
  };
}

function instantOf(text: unknown): number | undefined {
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
