import type { Probe } from "../../model/generated/types.ts";
import { exec } from "./exec.ts";
import { grpc } from "./grpc.ts";
import type { ProbeHandler } from "./handler.ts";
import { httpGet } from "./http-get.ts";
import { tcpSocket } from "./tcp-socket.ts";

/** All probe actions. To add one, add a file and an entry here. */
const handlers: readonly ProbeHandler[] = [exec, httpGet, tcpSocket, grpc];

/** Returns the handler for the action of a probe. */
export function handlerOf(probe: Probe): ProbeHandler | undefined {
  return handlers.find(({ name }) => probe[name] !== undefined);
}
