import { type HttpAnswer, type HttpRequest, textAnswer } from "../../adapters/net/http-route.ts";
import type { ApiDeps, StreamChoice } from "../api-deps.ts";
import { type ApiRoute, DEBUGGING, nothingBelow } from "../api-route.ts";
import { instanceOf, isAnswer, podOf, runtimeRefusal } from "./find-container.ts";

const METHODS = ["GET", "POST"];
const STREAMS = "input, output, error, tty";

/** Into containers: the upgraded connection goes to the runtime's streaming server, byte for byte. */
export const streamRoutes: readonly ApiRoute[] = [
  {
    path: "/exec/:namespace/:pod/:container",
    methods: METHODS,
    gate: DEBUGGING,
    query: `command, ${STREAMS}`,
    summary: "Runs a command in a container (SPDY or WebSocket).",
    handle: exec,
  },
  {
    path: "/exec/:namespace/:pod/:uid/:container",
    ...{ methods: METHODS, gate: DEBUGGING, query: `command, ${STREAMS}`, handle: exec },
    summary: "The same, for a pod of this UID only.",
  },
  {
    path: "/attach/:namespace/:pod/:container",
    ...{ methods: METHODS, gate: DEBUGGING, query: STREAMS, handle: attach },
    summary: "Connects with the main process of a container (SPDY or WebSocket).",
  },
  {
    path: "/attach/:namespace/:pod/:uid/:container",
    ...{ methods: METHODS, gate: DEBUGGING, query: STREAMS, handle: attach },
    summary: "The same, for a pod of this UID only.",
  },
  {
    path: "/portForward/:namespace/:pod",
    ...{ methods: METHODS, gate: DEBUGGING, query: "port (WebSocket)", handle: portForward },
    summary: "Connects with ports of a pod (SPDY or WebSocket).",
  },
  {
    path: "/portForward/:namespace/:pod/:uid",
    ...{ methods: METHODS, gate: DEBUGGING, query: "port (WebSocket)", handle: portForward },
    summary: "The same, for a pod of this UID only.",
  },
  ...["/exec", "/attach", "/portForward"].map((path) => nothingBelow(path, DEBUGGING)),
];

/** Which streams the query asks for; undefined for none. Only `1` is yes; a terminal has no stderr of its own. Pure. */
export function readStreams(query: URLSearchParams): StreamChoice | undefined {
  const isOn = (name: string): boolean => query.get(name) === "1";
  const tty = isOn("tty");
  const choice = { tty, stdin: isOn("input"), stdout: isOn("output"), stderr: isOn("error") && !tty };
  return choice.stdin || choice.stdout || choice.stderr ? choice : undefined;
}

/** The ports of the query: repeated or with commas between them. Undefined when one is no port. Pure. */
export function readPorts(query: URLSearchParams): number[] | undefined {
  const words = query.getAll("port").flatMap((value) => value.split(","));
  const ports = words.map((word) => (/^\d{1,5}$/.test(word.trim()) ? Number(word) : 0));
  return ports.every((port) => port > 0 && port < 65_536) ? ports : undefined;
}

async function exec(deps: ApiDeps, request: HttpRequest): Promise<HttpAnswer> {
  const streams = readStreams(request.query);
  if (streams === undefined) return noStreams();
  const id = containerId(deps, request);
  if (typeof id !== "string") return id;
  const command = request.query.getAll("command");
  return handOver(request, stream(deps, request, "exec"), () =>
    deps.runtime.exec(id, { ...streams, command }, request),
  );
}

async function attach(deps: ApiDeps, request: HttpRequest): Promise<HttpAnswer> {
  const streams = readStreams(request.query);
  if (streams === undefined) return noStreams();
  const id = containerId(deps, request);
  if (typeof id !== "string") return id;
  // What the container has, not what the client thinks it has.
  const pod = podOf(deps, request);
  const { spec } = isAnswer(pod) ? { spec: undefined } : pod;
  const all = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const tty = all.find(({ name }) => name === request.params["container"])?.tty ?? false;
  const wish = { ...streams, tty, stderr: streams.stderr && !tty };
  return handOver(request, stream(deps, request, "attach"), () => deps.runtime.attach(id, wish, request));
}

async function portForward(deps: ApiDeps, request: HttpRequest): Promise<HttpAnswer> {
  const isWebSocket = asksForWebSocket(request);
  const ports = isWebSocket ? readPorts(request.query) : [];
  if (ports === undefined) return textAnswer(400, "port: must be numbers from 1 to 65535\n");
  if (isWebSocket && ports.length === 0) return textAnswer(400, 'query parameter "port" is required\n');
  const pod = podOf(deps, request);
  if (isAnswer(pod)) return pod;
  const { uid = "" } = pod.metadata;
  const wanted = request.params["uid"];
  if (wanted !== undefined && wanted !== uid) return textAnswer(404, "pod does not exist\n");
  const sandbox = deps.pods.observed(uid)?.sandboxes.find(({ state }) => state === "ready");
  if (sandbox === undefined) return textAnswer(500, "the pod has no network yet: its sandbox does not run\n");
  return handOver(request, stream(deps, request, "portforward"), () =>
    deps.runtime.portForward(sandbox.id, ports, request),
  );
}

function noStreams(): HttpAnswer {
  return textAnswer(400, "you must specify at least 1 of stdin, stdout, stderr\n");
}

/** The instance that runs. Another UID means another pod, whose container is not here. */
function containerId(deps: ApiDeps, request: HttpRequest): string | HttpAnswer {
  const pod = podOf(deps, request);
  if (isAnswer(pod)) return pod;
  const { uid = "", name = "" } = pod.metadata;
  const { container = "" } = request.params;
  const wanted = request.params["uid"];
  const found = wanted === undefined || wanted === uid ? instanceOf(deps, uid, container) : undefined;
  return found?.id ?? textAnswer(500, `container not found ("${container}" in pod "${name}")\n`);
}

function asksForWebSocket({ headers }: HttpRequest): boolean {
  return (headers["upgrade"] ?? "").toLowerCase() === "websocket";
}

/** What is to be counted once the runtime is asked. */
function stream(deps: ApiDeps, request: HttpRequest, name: "exec" | "attach" | "portforward"): () => void {
  return () => {
    if (asksForWebSocket(request)) deps.streamed?.(name);
  };
}

async function handOver(request: HttpRequest, counted: () => void, ask: () => Promise<string>): Promise<HttpAnswer> {
  counted();
  request.expectUpgrade?.();
  try {
    return { status: 101, body: "", upgradeTo: await ask() };
  } catch (error) {
    return runtimeRefusal(error);
  }
}
