import { AgentError, UnixClient } from "../adapters/net/unix-client.ts";
import type { Abortable } from "../lib/abort.ts";
import type { AgentInfo, Refusal } from "../localapi/index.ts";
import { CliError } from "./cli-error.ts";

/** Where an agent may listen: named by the user, else that of `kubelet up`, else that of a plain agent. */
export interface AgentPlace {
  readonly localApiSocket: string;
  readonly stateDir: string;
  readonly rootDir: string;
  /** True if the user named the state directory: then no other socket is tried. */
  readonly stateDirGiven: boolean;
}

/** The sockets to try, in order. */
export function socketCandidates(place: AgentPlace): string[] {
  if (place.localApiSocket !== "") return [place.localApiSocket];
  const ofUp = `${place.stateDir}/kubelet.sock`;
  return place.stateDirGiven ? [ofUp] : [ofUp, `${place.rootDir}/kubelet.sock`];
}

/** The first agent that answers. Rejects with a `CliError` that says what to do if none does. */
export async function findAgent(sockets: readonly string[], { signal }: Abortable): Promise<UnixClient> {
  let denied: string | undefined;
  for (const path of sockets) {
    const client = new UnixClient(path);
    try {
      await client.json<AgentInfo>("/v1/agent", { signal });
      return client;
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      if (error.code === "Denied") denied ??= path;
      else if (error.code !== "NoAgent") throw explained(error);
    }
  }
  if (denied !== undefined) throw new CliError(`${denied} is only open to its owner; run the command as root`);
  throw new CliError(
    `no agent is running here (tried ${sockets.join(" and ")}); ` +
      'start one with "kubelet up --pods DIR", or specify its socket with --local-api-socket',
  );
}

/** The path of a pod in the local API. Takes `namespace/name` and a bare name. */
export function podPath(kind: "pods" | "logs" | "exec" | "port-forward", pod: string): string {
  const parts = pod.split("/");
  if (parts.length > 2 || parts.some((part) => part === "" || part === ".." || part === ".")) {
    throw new CliError(`invalid pod "${pod}": expected NAME or NAMESPACE/NAME`);
  }
  return `/v1/${kind}/${parts.map(encodeURIComponent).join("/")}`;
}

/** The error of an agent, for the user. */
export function explained(error: unknown): unknown {
  if (!(error instanceof AgentError) || error.code === "NoAgent") return error;
  const refusal = readRefusal(error.details.body);
  if (refusal === undefined) return new CliError(error.message);
  const near = refusal.near.length === 0 ? "" : `; there is ${refusal.near.join(", ")}`;
  return new CliError(`${refusal.message}${near}`);
}

function readRefusal(body: string | undefined): Refusal | undefined {
  try {
    const value = JSON.parse(body ?? "") as Partial<Refusal>; // reason: checked below
    if (typeof value.message !== "string") return undefined;
    return { message: value.message, near: Array.isArray(value.near) ? value.near.map(String) : [] };
  } catch {
    return undefined;
  }
}
