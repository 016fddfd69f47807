import { jsonAnswer } from "../../adapters/net/http-route.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { ALWAYS, type ApiRoute, DEBUGGING, nothingBelow, toSlash } from "../api-route.ts";

const pods: Omit<ApiRoute, "path"> = {
  methods: ["GET"],
  gate: ALWAYS,
  handle: (deps) => jsonAnswer(200, podList(deps.pods.all())),
};

/** Which pods should run, and which do. */
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
