import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import type { Abortable } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import type { Pod } from "../model/generated/types.ts";
import type { PodExplanation } from "../model/step.ts";
import { chooseContainer, refuse } from "./container-log.ts";

/** Connects clients with pods; resolves to the URL of the runtime's streaming server. */
export interface StreamDeps {
  exec(
    pod: Pod,
    request: {
      readonly container: string;
      readonly command: readonly string[];
      readonly stdin: boolean;
      readonly stdout: boolean;
      readonly stderr: boolean;
      readonly tty: boolean;
    },
    options: Abortable,
  ): Promise<string>;
  portForward(pod: Pod, ports: readonly number[], options: Abortable): Promise<string>;
  /** The pod of a UID. */
  podOf(uid: string): Pod | undefined;
}

/** Runs a command in a container over the client's SPDY connection. */
export async function execStream(
  deps: StreamDeps | undefined,
  pod: PodExplanation,
  { query, signal }: RouteRequest,
): Promise<RouteAnswer> {
  const found = deps?.podOf(pod.uid);
  if (deps === undefined || found === undefined) return refuse(501, "this agent cannot run commands in containers");
  const command = query.getAll("command");
  if (command.length === 0) return refuse(400, "a command is required");
  const chosen = chooseContainer(pod, query.get("container"));
  if ("status" in chosen) return chosen;
  const { name: container, state } = chosen;
  if (state !== "running") return refuse(409, `container ${container} of pod ${pod.name} is not running`);
  const tty = query.get("tty") === "true";
  const streams = { stdin: query.get("stdin") === "true", stdout: true, stderr: !tty, tty };
  return upgrade(() => deps.exec(found, { container, command, ...streams }, { signal }));
}

/** Connects with ports of a pod over the client's SPDY connection. */
export async function portForwardStream(
  deps: StreamDeps | undefined,
  pod: PodExplanation,
  { signal }: RouteRequest,
): Promise<RouteAnswer> {
  const found = deps?.podOf(pod.uid);
  if (deps === undefined || found === undefined) return refuse(501, "this agent cannot connect with pods");
  return upgrade(() => deps.portForward(found, [], { signal }));
}

async function upgrade(url: () => Promise<string>): Promise<RouteAnswer> {
  try {
    return { status: 101, body: "", upgradeTo: await url() };
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    const status = { NotFound: 404, NoContainer: 409, NoSandbox: 409 }[String(error.code)] ?? 500;
    return refuse(status, error.message);
  }
}
