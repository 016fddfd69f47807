import { jsonAnswer, type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import { CodedError, messageOf } from "../../lib/errors.ts";
import type { ApiDeps } from "../api-deps.ts";
import { type ApiRoute, DEBUGGING, hidden, nothingBelow, toSlash } from "../api-route.ts";
import { containerNames, isAnswer, podOf, runtimeRefusal } from "./find-container.ts";

const CHECKPOINT = hidden("ContainerCheckpoint");

/** Commands run to completion, and checkpoints of containers. */
export const runRoutes: readonly ApiRoute[] = [
  {
    path: "/run/:namespace/:pod/:container",
    methods: ["POST"],
    gate: DEBUGGING,
    query: "cmd",
    summary: "Runs a command to its end and answers with its output.",
    handle: run,
  },
  {
    path: "/run/:namespace/:pod/:uid/:container",
    methods: ["POST"],
    gate: DEBUGGING,
    query: "cmd",
    handle: run,
    summary: "The same, for a pod of this UID only.",
  },
  nothingBelow("/run", DEBUGGING),
  {
    path: "/checkpoint/:namespace/:pod/:container",
    methods: ["POST"],
    gate: CHECKPOINT,
    query: "timeout",
    summary: "Writes the state of a running container to a file.",
    handle: checkpoint,
  },
  toSlash("/checkpoint", CHECKPOINT),
  nothingBelow("/checkpoint", CHECKPOINT),
];

async function run(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const pod = podOf(deps, request);
  if (isAnswer(pod)) return pod;
  const { uid = "", name = "" } = pod.metadata;
  const { container = "", uid: wanted = uid } = request.params;
  if (wanted !== uid) return textAnswer(500, `container not found ("${container}" in pod "${name}")\n`);
  // Split at single spaces, without quotes, as in Kubernetes.
  const command = (request.query.get("cmd") ?? "").split(" ");
  try {
    const { id } = await deps.streams.instance(pod, container, request);
    const { exitCode, stdout, stderr } = await deps.runtime.execSync(id, { command, timeoutSeconds: 0 }, request);
    const output = Buffer.concat([stdout, stderr]);
    if (exitCode !== 0) {
      return textAnswer(500, `command '${command.join(" ")}' exited with ${exitCode}: ${output.toString("utf8")}\n`);
    }
    return { status: 200, type: "application/json", body: output };
  } catch (error) {
    return runtimeRefusal(error);
  }
}

async function checkpoint(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const pod = podOf(deps, request);
  if (isAnswer(pod)) return pod;
  const { name = "", namespace = "" } = pod.metadata;
  const { container = "" } = request.params;
  const missing = textAnswer(404, `container ${container} does not exist\n`);
  if (!containerNames(pod).includes(container)) return missing;
  const timeout = request.query.getAll("timeout").at(-1) ?? "0";
  if (!/^\d{1,9}$/.test(timeout)) return textAnswer(404, `cannot parse value of timeout parameter: "${timeout}"\n`);
  const time = `${new Date(deps.now()).toISOString().slice(0, 19)}Z`;
  const folder = `${deps.rootDir}/checkpoints`;
  const location = `${folder}/checkpoint-${name}_${namespace}-${container}-${time}.tar`;
  try {
    const { id } = await deps.streams.instance(pod, container, request);
    await deps.makeDir(folder, 0o700);
    await deps.runtime.checkpointContainer(id, { location, timeoutSeconds: Number(timeout) }, request);
    return jsonAnswer(200, { items: [location] });
  } catch (error) {
    if (error instanceof CodedError && error.code === "NoContainer") return missing;
    const { status } = runtimeRefusal(error);
    const words = `checkpointing of ${namespace}/${name}/${container} failed (${grpcWords(error)})\n`;
    return textAnswer(status === 404 ? 404 : 500, words);
  }
}

/** The format of gRPC in Go: clients distinguish by it a runtime without checkpoints from one that failed. */
function grpcWords(error: unknown): string {
  if (!(error instanceof RuntimeError)) return messageOf(error);
  return `rpc error: code = ${error.code === "Timeout" ? "DeadlineExceeded" : error.code} desc = ${error.message}`;
}
