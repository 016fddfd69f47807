import { type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ApiDeps, StreamChoice } from "../api-deps.ts";
import { type ApiRoute, DEBUGGING, nothingBelow } from "../api-route.ts";
import { isAnswer, podOf, runtimeRefusal } from "./find-container.ts";

const METHODS = ["GET", "POST"];
const STREAMS = "input, output, error, tty";

/** Streams into containers: the upgraded connection is proxied to the runtime's streaming server, byte for byte. */
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
    methods: METHODS,
    gate: DEBUGGING,
    query: `command, ${STREAMS}`,
    handle: exec,
    summary: "The same, for a pod of this UID only.",
  },
  {
    path: "/attach/:namespace/:pod/:container",
    methods: METHODS,
    gate: DEBUGGING,
    query: STREAMS,
    handle: attach,
    summary: "Connects with the main process of a container (SPDY or WebSocket).",
  },
  {
    path: "/attach/:namespace/:pod/:uid/:container",
    methods: METHODS,
    gate: DEBUGGING,
    query: STREAMS,
    handle: attach,
    summary: "The same, for a pod of this UID only.",
  },
  {
    path: "/portForward/:namespace/:pod",
    methods: METHODS,
    gate: DEBUGGING,
    query: "port (WebSocket)",
    handle: portForward,
    summary: "Connects with ports of a pod (SPDY or WebSocket).",
  },
  {
    path: "/portForward/:namespace/:pod/:uid",
    methods: METHODS,
    gate: DEBUGGING,
    query: "port (WebSocket)",
    handle: portForward,
    summary: "The same, for a pod of this UID only.",
  },
  ...["/exec", "/attach", "/portForward"].map((path) => nothingBelow(path, DEBUGGING)),
];

/** The streams that the query selects; undefined for none. Only `1` is true; a terminal has no stderr. Pure. */
export function readStreams(query: URLSearchParams): StreamChoice | undefined {
  const isOn = (name: string): boolean => query.get(name) === "1";
  const tty = isOn("tty");
  const choice = { tty, stdin: isOn("input"), stdout: isOn("output"), stderr: isOn("error") && !tty };
  return choice.stdin || choice.stdout || choice.stderr ? choice : undefined;
}

/** The ports of the query: repeated or separated by commas. Undefined if one is invalid. Pure. */
export function readPorts(query: URLSearchParams): number[] | undefined {
  const words = query.getAll("port").flatMap((value) => value.split(","));
  const ports = words.map((word) => (/^\d{1,5}$/.test(word.trim()) ? Number(word) : 0));
  return ports.every((port) => port > 0 && port < 65_536) ? ports : undefined;
}

async function exec(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const streams = readStreams(request.query);
  if (streams === undefined) return noStreams();
  const pod = podWithUid(deps, request, containerNotFound(request));
  if (isAnswer(pod)) return pod;
  const { container = "" } = request.params;
  const command = request.query.getAll("command");
  const url = (): Promise<string> => deps.streams.exec(pod, { ...streams, container, command }, request);
  return upgrade(deps, request, { subresource: "exec", url });
}

async function attach(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const choice = readStreams(request.query);
  if (choice === undefined) return noStreams();
  const pod = podWithUid(deps, request, containerNotFound(request));
  if (isAnswer(pod)) return pod;
  const { container = "" } = request.params;
  // The terminal is decided by the container's spec, not by the client.
  const { tty: _tty, ...streams } = choice;
  const url = (): Promise<string> => deps.streams.attach(pod, { ...streams, container }, request);
  return upgrade(deps, request, { subresource: "attach", url });
}

async function portForward(deps: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  const isWebSocket = asksForWebSocket(request);
  const ports = isWebSocket ? readPorts(request.query) : [];
  if (ports === undefined) return textAnswer(400, "port: must be numbers from 1 to 65535\n");
  if (isWebSocket && ports.length === 0) return textAnswer(400, 'query parameter "port" is required\n');
  const pod = podWithUid(deps, request, textAnswer(404, "pod does not exist\n"));
  if (isAnswer(pod)) return pod;
  const url = (): Promise<string> => deps.streams.portForward(pod, ports, request);
  return upgrade(deps, request, { subresource: "portforward", url });
}

function noStreams(): RouteAnswer {
  return textAnswer(400, "you must specify at least 1 of stdin, stdout, stderr\n");
}

function containerNotFound({ params }: RouteRequest): RouteAnswer {
  return textAnswer(500, `container not found ("${params["container"] ?? ""}" in pod "${params["pod"] ?? ""}")\n`);
}

/** The pod of the path; `other` if the path names the UID of another one. */
function podWithUid(deps: ApiDeps, request: RouteRequest, other: RouteAnswer): Pod | RouteAnswer {
  const pod = podOf(deps, request);
  const { uid } = request.params;
  return isAnswer(pod) || uid === undefined || uid === pod.metadata.uid ? pod : other;
}

function asksForWebSocket({ headers }: RouteRequest): boolean {
  return (headers["upgrade"] ?? "").toLowerCase() === "websocket";
}

interface StreamRequest {
  readonly subresource: "exec" | "attach" | "portforward";
  url(): Promise<string>;
}

/** Proxies the client's upgraded connection to the runtime's streaming server. */
async function upgrade(
  deps: ApiDeps,
  request: RouteRequest,
  { subresource, url }: StreamRequest,
): Promise<RouteAnswer> {
  if (asksForWebSocket(request)) deps.streamed?.(subresource);
  request.expectUpgrade?.();
  try {
    return { status: 101, body: "", upgradeTo: await url() };
  } catch (error) {
    return runtimeRefusal(error);
  }
}
