import { jsonAnswer } from "../../adapters/net/http-route.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { ALWAYS, type ApiRoute, DEBUGGING, nothingBelow, toSlash } from "../api-route.ts";

const pods: Omit<ApiRoute, "path"> = {
  methods: ["GET"],
  gate: ALWAYS,
  handle: (deps) => ({ status: 200, type: "application/json", body: encodeList(deps.pods.all()) }),
};

/** Desired and running pods. */
export const podRoutes: readonly ApiRoute[] = [
  { path: "/pods", ...pods, summary: "The wanted pods of all sources, with their status (v1 PodList)." },
  { path: "/pods/", ...pods },
  nothingBelow("/pods", ALWAYS),
  {
    path: "/runningpods/",
    methods: ["GET"],
    gate: DEBUGGING,
    summary: "The pods that the runtime has: names, UIDs and images only (v1 PodList).",
    handle: (deps) => jsonAnswer(200, podList(deps.pods.running().map(toPod))),
  },
  toSlash("/runningpods", DEBUGGING),
  nothingBelow("/runningpods", DEBUGGING),
];

/** The JSON of a pod, cached while its parts are the same objects: they are never changed in place. */
const sent = new WeakMap<object, { readonly spec: unknown; readonly status: unknown; readonly bytes: Buffer }>();
const HEAD = Buffer.from('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[');
const TAIL = Buffer.from("]}\n");
const COMMA = Buffer.from(",");

/** A v1 PodList as JSON; only changed pods are serialized again. */
export function encodeList(pods: readonly Pod[]): Buffer {
  const parts = pods.flatMap((pod, index) => (index === 0 ? [encode(pod)] : [COMMA, encode(pod)]));
  return Buffer.concat([HEAD, ...parts, TAIL]);
}

function encode(pod: Pod): Buffer {
  const { metadata, spec, status } = pod;
  const known = sent.get(metadata);
  if (known !== undefined && known.spec === spec && known.status === status) return known.bytes;
  const bytes = Buffer.from(JSON.stringify(pod));
  sent.set(metadata, { spec, status, bytes });
  return bytes;
}

function podList(items: readonly Pod[]): object {
  return { kind: "PodList", apiVersion: "v1", metadata: {}, items };
}

function toPod({ uid, name, namespace, containers }: ObservedPod): Pod {
  const running = containers.filter(({ state }) => state === "running");
  return {
    metadata: { name, namespace, uid },
    spec: { containers: running.map((one) => ({ name: one.name, image: one.image, resources: {} })) },
    status: {},
  };
}
