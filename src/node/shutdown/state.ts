/** When the last graceful shutdown began and ended, in wall-clock milliseconds; without an end it was not finished. */
export interface ShutdownState {
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
}

/** Go's zero time, which Kubernetes writes for an end that is not known. */
const ZERO = "0001-01-01T00:00:00Z";

/** The document in `graceful_node_shutdown_state`, in the format of Kubernetes. */
export interface ShutdownDocument {
  readonly startTime: string;
  readonly endTime: string;
}

/** Pure. */
export function encodeShutdownState({ startedAt, endedAt }: ShutdownState): ShutdownDocument {
  const text = (ms: number | undefined): string => (ms === undefined ? ZERO : new Date(ms).toISOString());
  return { startTime: text(startedAt), endTime: text(endedAt) };
}

/** Undefined for a document of another shape, or without a start. Pure. */
export function decodeShutdownState(document: unknown): ShutdownState | undefined {
  if (typeof document !== "object" || document === null) return undefined;
  const { startTime, endTime } = document as Partial<Record<keyof ShutdownDocument, unknown>>; // reason: checked below
  const startedAt = instantOf(startTime);
  if (startedAt === undefined) return undefined;
  const endedAt = instantOf(endTime);
  return { startedAt, ...(endedAt !== undefined && { endedAt }) };
}

function instantOf(text: unknown): number | undefined {
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
