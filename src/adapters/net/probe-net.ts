import type { Abortable } from "../../lib/abort.ts";
import type { HttpRequest } from "../../model/http-action.ts";
import type { HttpAnswer } from "./http-answer.ts";
import { type GrpcHealthAnswer, type GrpcHealthRequest, grpcHealth } from "./probe-grpc.ts";
import { httpGet } from "./probe-http.ts";
import type { TcpAddress } from "./probe-link.ts";
import { probeTcp } from "./probe-tcp.ts";

/** The connections that probes make. All reject with `ProbeNetError` or the signal's reason. */
export interface ProbeNet {
  http(request: HttpRequest, options: Abortable): Promise<HttpAnswer>;
  tcp(address: TcpAddress, options: Abortable): Promise<void>;
  grpc(request: GrpcHealthRequest, options: Abortable): Promise<GrpcHealthAnswer>;
}

/** The real network. */
export const probeNet: ProbeNet = { http: httpGet, tcp: probeTcp, grpc: grpcHealth };
