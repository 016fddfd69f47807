import { ProbeNetError } from "../../adapters/net/probe-error.ts";
import type { GrpcHealthAnswer } from "../../adapters/net/probe-grpc.ts";
import { TimeLimitError } from "../../lib/abort.ts";
import { gitVersion } from "../../lib/version.ts";
import { formatDuration } from "../../model/duration.ts";
import { hostAndPort } from "../../model/http-action.ts";
import { failed, type ProbeHandler, probeUserAgent, SUCCESS, type Verdict } from "./handler.ts";

const userAgent = probeUserAgent(gitVersion);
const DEADLINE_EXCEEDED = 4;
const UNIMPLEMENTED = 12;

/** Calls the gRPC health service; SERVING is a success. */
export const grpc: ProbeHandler = {
  name: "grpc",
  async run({ net }, probe, { target, signal, timeoutMs }): Promise<Verdict> {
    if (probe.grpc === undefined) throw new Error("grpc probe: action is not set");
    const { port, service = "" } = probe.grpc;
    const address = hostAndPort(target.podIp, port);
    const limit = formatDuration(timeoutMs);
    try {
      return judge(await net.grpc({ host: target.podIp, port, service, userAgent }, { signal }), limit);
    } catch (error) {
      // Kubernetes retries the connection until the timeout, so a refused connection is reported as a timeout too.
      if (error instanceof ProbeNetError) {
        return failed(`timeout: failed to connect service "${address}" within ${limit}: ${error.message}`);
      }
      if (error instanceof TimeLimitError) return failed(`timeout: health rpc did not complete within ${limit}`);
      throw error;
    }
  },
};

function judge({ code, message, status }: GrpcHealthAnswer, limit: string): Verdict {
  if (code === DEADLINE_EXCEEDED) return failed(`timeout: health rpc did not complete within ${limit}`);
  if (code === UNIMPLEMENTED) {
    return failed(`error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${message}`);
  }
  if (code !== 0)
    return failed(`error: health rpc probe failed: rpc error: code = ${codeName(code)} desc = ${message}`);
  return status === "SERVING" ? SUCCESS : failed(`service unhealthy (responded with "${status ?? "UNKNOWN"}")`);
}

const CODE_NAMES = [
  ...["OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"],
  ...["PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"],
  ...["Internal", "Unavailable", "DataLoss", "Unauthenticated"],
];

function codeName(code: number): string {
  return CODE_NAMES[code] ?? `Code(${code})`;
}
