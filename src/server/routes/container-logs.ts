import { type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import { CodedError } from "../../lib/errors.ts";
import type { ContainerStatus, Pod } from "../../model/generated/types.ts";
import type { ApiDeps, LogReadRequest } from "../api-deps.ts";
import { type ApiRoute, DEBUGGING, nothingBelow } from "../api-route.ts";
import { containerNames, containerStatus, isAnswer } from "./find-container.ts";
import { type LogOptions, readLogOptions } from "./log-options.ts";

/** Logs of containers. */
export const containerLogRoutes: readonly ApiRoute[] = [
  {
    path: "/containerLogs/:namespace/:pod/:container",
    methods: ["GET"],
    gate: DEBUGGING,
    query: "follow, previous, sinceSeconds, sinceTime, timestamps, tailLines, limitBytes, stream",
    summary: "The log of a container.",
    handle: containerLogs,
  },
  {
    path: "/containerLogs/:namespace/:pod",
    methods: ["GET"],
    gate: DEBUGGING,
    handle: () => textAnswer(400, '{"message": "Missing container name."}\n'),
  },
  {
    path: "/containerLogs/:namespace",
    methods: ["GET"],
    gate: DEBUGGING,
    handle: () => textAnswer(400, '{"message": "Missing podID."}\n'),
  },
  nothingBelow("/containerLogs", DEBUGGING),
];

/** Everything is checked before the first byte: the body of a 200 is the log. */
async function containerLogs(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const { namespace = "", pod: podName = "", container = "" } = request.params;
  const options = readLogOptions(request.query);
  if (isAnswer(options)) return options;
  const pod = deps.pods.find(namespace, podName);
  if (pod === undefined) return textAnswer(404, `pod "${podName}" does not exist\n`);
  if (!containerNames(pod).includes(container)) {
    return textAnswer(404, `container "${container}" not found in pod "${podName}"\n`);
  }
  if (options.stream !== "All" && !deps.switches.current.isGateOn("PodLogsQuerySplitStreams")) {
    return textAnswer(400, '{"message": "unable to return a single stream: PodLogsQuerySplitStreams is off"}\n');
  }
  const chosen = chooseInstance(pod, container, options.previous);
  if ("refused" in chosen) return textAnswer(400, `${chosen.refused}\n`);
  const uid = pod.metadata.uid ?? "";
  const path = await logPathOf(deps, { uid, id: chosen.id }, request.signal);
  if (path === undefined) return textAnswer(400, `${unavailable(container, podName)}\n`);
  const wish = toWish(options, path, deps.now());
  const follow = followOf(deps, { uid, id: chosen.id });
  const body = deps.logs.read(options.follow ? { ...wish, follow } : wish, request);
  return { status: 200, body: withoutLateErrors(body) };
}

/** The instance of the container whose log is requested. Pure. */
export function chooseInstance(
  pod: Pod,
  name: string,
  isPrevious: boolean,
): { readonly id: string } | { readonly refused: string } {
  const status = containerStatus(pod, name);
  const podName = pod.metadata.name ?? "";
  if (status === undefined) return { refused: unavailable(name, podName) };
  const last = idOf(status.lastState?.terminated?.containerID);
  if (isPrevious) {
    const missing = `previous terminated container "${name}" in pod "${podName}" not found`;
    return last === "" ? { refused: missing } : { id: last };
  }
  if (status.state?.running !== undefined) return { id: idOf(status.containerID) };
  const terminated = status.state?.terminated;
  if (terminated !== undefined || status.lastState?.terminated !== undefined) {
    const id = idOf(terminated?.containerID) || last;
    return id === "" ? { refused: `container "${name}" in pod "${podName}" is terminated` } : { id };
  }
  return { refused: `container "${name}" in pod "${podName}" is waiting to start${why(status)}` };
}

/** The wording of Kubernetes. */
function why({ state }: ContainerStatus): string {
  const waiting = state?.waiting;
  if (waiting === undefined) return " - no logs yet";
  switch (waiting.reason) {
    case "ErrImagePull":
      return ": image can't be pulled";
    case "ImagePullBackOff":
      return ": trying and failing to pull image";
    default:
      return `: ${waiting.reason ?? ""}`;
  }
}

function unavailable(container: string, pod: string): string {
  return `container "${container}" in pod "${pod}" is not available`;
}

/** `containerd://abc` → `abc`. */
function idOf(containerId: string | undefined): string {
  return containerId?.replace(/^[^:]*:\/\//, "") ?? "";
}

interface Instance {
  readonly uid: string;
  readonly id: string;
}

async function logPathOf(deps: ApiDeps, { uid, id }: Instance, signal: AbortSignal): Promise<string | undefined> {
  const known = deps.pods.observed(uid)?.containers.find((one) => one.id === id)?.logPath;
  if (known !== undefined && known !== "") return known;
  try {
    return (await deps.runtime.containerStatus(id, { signal })).logPath || undefined;
  } catch (error) {
    if (error instanceof CodedError) return undefined;
    throw error;
  }
}

function followOf({ pods }: ApiDeps, { uid, id }: Instance): NonNullable<LogReadRequest["follow"]> {
  return {
    ended: () => pods.observed(uid)?.containers.find((one) => one.id === id)?.state !== "running",
    onChange: (fn, options) => pods.onChange(fn, options),
  };
}

function toWish(options: LogOptions, path: string, now: number): LogReadRequest {
  const { tail, limitBytes, timestamps, sinceSeconds } = options;
  const sinceMs = sinceSeconds === undefined ? options.sinceMs : now - sinceSeconds * 1000;
  return {
    path,
    timestamps,
    ...(tail === undefined ? {} : { tail }),
    ...(limitBytes === undefined ? {} : { limitBytes }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(options.stream === "All"
      ? {}
      : { stream: options.stream === "Stdout" ? ("stdout" as const) : ("stderr" as const) }),
  };
}

/** After the first byte the status is sent: an error is appended to the body. */
async function* withoutLateErrors(body: AsyncIterable<Uint8Array>): AsyncGenerator<string | Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    yield `${error.message}\n`;
  }
}
