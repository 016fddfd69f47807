import type { Probe } from "../../model/generated/types.ts";
import { exec } from "./exec.ts";
import { grpc } from "./grpc.ts";
import type { ProbeHandler } from "./handler.ts";
import { httpGet } from "./http-get.ts";
import { tcpSocket } from "./tcp-socket.ts";

/** Every way of probing. To add one, add a file and a word here. */
const handlers: readonly ProbeHandler[] = [exec, httpGet, tcpSocket, grpc];

/** The handler that a probe asks for. */
export function handlerOf(probe: Probe): ProbeHandler | undefined {
  return handlers.find(({ name }) => probe[name] !== undefined);
}
