import { CodedError } from "../../lib/errors.ts";
import { type GrpcCode, type GrpcStatus, grpcCode } from "../grpc/grpc-error.ts";

/** After these the driver may still be at work: the client left, the connection broke, or a call is pending. */
const UNCERTAIN: ReadonlySet<GrpcCode> = new Set([
  "Canceled",
  "DeadlineExceeded",
  "Unavailable",
  "ResourceExhausted",
  "Aborted",
]);

/** The same arguments can never succeed. */
const INFEASIBLE: ReadonlySet<GrpcCode> = new Set(["InvalidArgument", "OutOfRange", "NotFound"]);

/** A driver's answer to a call that failed, in the words in which Kubernetes reports it. */
export class CsiError extends CodedError<GrpcCode> {
  constructor(
    code: GrpcCode,
    /** The driver's own words. */
    readonly details: string,
  ) {
    super(code, `rpc error: code = ${code} desc = ${details}`);
  }

  /** True if nothing of the call is in progress any more, nor was done. */
  get isFinal(): boolean {
    return !UNCERTAIN.has(this.code);
  }

  /** True if a repetition with the same arguments is of no use. */
  get isInfeasible(): boolean {
    return INFEASIBLE.has(this.code);
  }
}

/** Returns the error of a failed call. */
export function csiError({ code, details }: GrpcStatus): CsiError {
  return new CsiError(grpcCode(code), details);
}
