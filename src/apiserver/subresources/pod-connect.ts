import { PODS } from "../../adapters/kubeapi/index.ts";
import type { RouteAnswer, RouteRequest } from "../../adapters/net/http-route.ts";
import type { Pod } from "../../model/generated/types.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { OperationDeps, Target } from "../operations/context.ts";
import { getObject } from "../operations/list.ts";
import type { ApiCall } from "../rest/api-call.ts";
import { readFlag } from "../rest/query.ts";
import type { Subresource } from "../rest/subresource.ts";
import { badRequest, methodNotAllowed, StatusError } from "../status/status-error.ts";

/** The endpoints of the node agent, as its own main port has them: an API server asks them the same way. */
export interface NodeEndpoints {
  /** Answers a request to a path such as `/exec/default/web/main?command=ls&output=1`. */
  ask(request: RouteRequest, target: string): Promise<RouteAnswer>;
}

const POD = { group: "", version: "v1", kind: "Pod" };
/** Protocols of WebSocket streams that runtimes speak; clients that want newer ones fall back to SPDY. */
const SPOKEN = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];
const LOG_OPTIONS = "follow previous sinceSeconds sinceTime timestamps tailLines limitBytes stream".split(" ");

/** `pods/log`, `exec`, `attach` and `portforward`. */
export function podConnections(deps: OperationDeps, node: NodeEndpoints): readonly Subresource[] {
  const connect = (name: string, answer: string, pathOf: (pod: Pod, call: ApiCall) => string): Subresource => ({
    collection: PODS.plural,
    name,
    verbs: ["connect"],
    answer: { ...POD, kind: answer },
    handle: async (target, call) => {
      if (call.request.method !== "GET" && call.request.method !== "POST") throw methodNotAllowed();
      const pod = await podOf(deps, target, call);
      const path = pathOf(pod, call);
      if (!pod.spec.nodeName) throw badRequest(`pod ${target.name} does not have a host assigned`);
      refuseNewProtocols(call.request);
      return asStatus(await node.ask(call.request, path));
    },
  });
  return [
    {
      collection: PODS.plural,
      name: "log",
      verbs: ["get"],
      answer: POD,
      handle: async (target, call) => {
        if (call.request.method !== "GET") throw methodNotAllowed();
        const pod = await podOf(deps, target, call);
        const path = logPath(pod, call.request.query);
        // A pod that is not on a node yet has written nothing.
        if (!pod.spec.nodeName) return { status: 200, body: "" };
        return asStatus(await node.ask(call.request, path));
      },
    },
    connect("exec", "PodExecOptions", (pod, { request }) => {
      const words = request.query.getAll("command").map((word): [string, string] => ["command", word]);
      if (words.length === 0) throw badRequest("you must specify at least one command for the container");
      return streamPath("exec", pod, { query: request.query, words });
    }),
    connect("attach", "PodAttachOptions", (pod, { request }) => streamPath("attach", pod, request)),
    connect("portforward", "PodPortForwardOptions", (pod, { request }) => {
      const ports = request.query.getAll("ports").flatMap((text) => text.split(","));
      const query = new URLSearchParams(ports.map((port): [string, string] => ["port", port]));
      return withQuery(`/portForward/${placeOf(pod)}`, query);
    }),
  ];
}

async function podOf(deps: OperationDeps, target: Target, { request }: ApiCall): Promise<Pod> {
  const stored = await getObject(deps, target, { signal: request.signal });
  // The collection has nothing but pods.
  return stored.shared() as unknown as Pod;
}

function placeOf({ metadata }: Pod): string {
  return [metadata.namespace ?? "", metadata.name ?? ""].map(encodeURIComponent).join("/");
}

function logPath(pod: Pod, query: URLSearchParams): string {
  const container = containerOf(pod, query.get("container") ?? "");
  const kept = LOG_OPTIONS.flatMap((name): [string, string][] => {
    const value = query.get(name);
    return value === null ? [] : [[name, value]];
  });
  return withQuery(`/containerLogs/${placeOf(pod)}/${encodeURIComponent(container)}`, new URLSearchParams(kept));
}

/** The path of a stream at the node, whose switches have other names. */
function streamPath(
  verb: "exec" | "attach",
  pod: Pod,
  { query, words = [] }: { readonly query: URLSearchParams; readonly words?: readonly [string, string][] },
): string {
  const container = containerOf(pod, query.get("container") ?? "");
  const isOn = (name: string): boolean => readFlag(query, name) === true;
  const switches: [string, string][] = [
    ["stdin", "input"],
    ["stdout", "output"],
    // A terminal has no error output of its own.
    ...(isOn("tty") ? [] : ([["stderr", "error"]] satisfies [string, string][])),
    ["tty", "tty"],
  ];
  const chosen = switches.filter(([name]) => isOn(name)).map(([, word]): [string, string] => [word, "1"]);
  if (!["stdin", "stdout", "stderr"].some(isOn)) {
    throw badRequest("you must specify at least 1 of stdin, stdout, stderr");
  }
  const path = `/${verb}/${placeOf(pod)}/${encodeURIComponent(container)}`;
  return withQuery(path, new URLSearchParams([...chosen, ...words]));
}

function withQuery(path: string, query: URLSearchParams): string {
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The container that is meant; one that is not named must be the only one. Throws `StatusError`. */
function containerOf(pod: Pod, name: string): string {
  const { spec, metadata } = pod;
  const podName = metadata.name ?? "";
  if (name !== "") {
    if (allContainers(pod).some((container) => container.name === name)) return name;
    throw badRequest(`container ${name} is not valid for pod ${podName}`);
  }
  const [only, ...others] = spec.containers;
  const more = [...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])];
  if (only !== undefined && others.length === 0 && more.length === 0) return only.name;
  const list = (containers: readonly { readonly name: string }[]): string =>
    `[${containers.map((container) => container.name).join(" ")}]`;
  const init = spec.initContainers ?? [];
  const ephemeral = spec.ephemeralContainers ?? [];
  const choices = [
    list(spec.containers),
    ...(init.length > 0 ? [`one of the init containers: ${list(init)}`] : []),
    ...(ephemeral.length > 0 ? [`one of the ephemeral containers: ${list(ephemeral)}`] : []),
  ];
  throw badRequest(`a container name must be specified for pod ${podName}, choose one of: ${choices.join(" or ")}`);
}

/** Runtimes end at version 4 of the streams: clients hear that at once, and take the other way. */
function refuseNewProtocols({ headers }: RouteRequest): void {
  if ((headers["upgrade"] ?? "").toLowerCase() !== "websocket") return;
  const asked = (headers["sec-websocket-protocol"] ?? "").split(",").map((word) => word.trim());
  if (asked.some((word) => word === "" || SPOKEN.includes(word))) return;
  throw badRequest(`unable to upgrade: none of the protocols ${asked.join(", ")} is supported; use SPDY`);
}

/** What the agent answers in plain text is a status for clients of an API. */
async function asStatus(answer: RouteAnswer): Promise<RouteAnswer> {
  if (answer.upgradeTo !== undefined || answer.status < 400 || typeof answer.body !== "string") return answer;
  const message = messageIn(answer.body.trim());
  const reasons: Readonly<Record<number, string>> = { 400: "BadRequest", 404: "NotFound", 422: "Invalid" };
  const { status } = new StatusError({
    code: answer.status,
    reason: reasons[answer.status] ?? "InternalError",
    message,
  });
  return { status: answer.status, type: "application/json", body: `${JSON.stringify(status)}\n` };
}

function messageIn(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "message" in value ? String(value.message) : text;
  } catch {
    return text;
  }
}
