/**
 * Why a volume could not be grown. `unsupported`: its driver never grows on nodes; `inUse`: not while a pod uses it;
 * `infeasible`: never to this size; `final`: nothing is in progress; `uncertain`: something may be.
 */
export type ExpandFate = "unsupported" | "inUse" | "infeasible" | "final" | "uncertain";

/** A volume could not be grown. */
export class ExpandError extends Error {
  override readonly name = "ExpandError";

  constructor(
    readonly fate: ExpandFate,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }

  /** True if the attempt is over. */
  get isFinished(): boolean {
    return this.fate !== "uncertain";
  }
}
