import type { HttpAnswer, HttpRequest } from "../adapters/net/http-route.ts";
import type { Abortable } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { PodExplanation } from "../model/step.ts";
import { chooseContainer, refuse } from "./container-log.ts";

/** What the commands that go into pods need. */
export interface StreamDeps {
  readonly runtime: {
    exec(
      id: string,
      request: { command: readonly string[]; stdin: boolean; stdout: boolean; stderr: boolean; tty: boolean },
      options: Abortable,
    ): Promise<string>;
    portForward(sandboxId: string, ports: readonly number[], options: Abortable): Promise<string>;
  };
  observed(uid: string): ObservedPod | undefined;
}

/** Runs a command in a container; the client's SPDY connection is handed to the runtime. */
export async function execStream(
  deps: StreamDeps | undefined,
  pod: PodExplanation,
  { query, signal }: HttpRequest,
): Promise<HttpAnswer> {
  if (deps === undefined) return refuse(501, "this agent cannot go into containers");
  const command = query.getAll("command");
  if (command.length === 0) return refuse(400, "a command is needed");
  const chosen = chooseContainer(pod, query.get("container"));
  if ("status" in chosen) return chosen;
  const running = deps
    .observed(pod.uid)
    ?.containers.find(({ name, state }) => name === chosen.name && state === "running");
  if (running === undefined) return refuse(409, `container ${chosen.name} of pod ${pod.name} does not run`);
  const tty = query.get("tty") === "true";
  const streams = { stdin: query.get("stdin") === "true", stdout: true, stderr: !tty, tty };
  return handOver(() => deps.runtime.exec(running.id, { command, ...streams }, { signal }));
}

/** Connects with ports of a pod; the client's SPDY connection is handed to the runtime. */
export async function portForwardStream(
  deps: StreamDeps | undefined,
  pod: PodExplanation,
  { signal }: HttpRequest,
): Promise<HttpAnswer> {
  if (deps === undefined) return refuse(501, "this agent cannot go into pods");
  const sandbox = deps.observed(pod.uid)?.sandboxes.find(({ state }) => state === "ready");
  if (sandbox === undefined) return refuse(409, `pod ${pod.name} does not run`);
  return handOver(() => deps.runtime.portForward(sandbox.id, [], { signal }));
}

async function handOver(ask: () => Promise<string>): Promise<HttpAnswer> {
  try {
    return { status: 101, body: "", upgradeTo: await ask() };
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return refuse(error.code === "NotFound" ? 404 : 500, `the runtime refused: ${error.message}`);
  }
}
