import { jsonAnswer, type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import type { ApiDeps } from "../api-deps.ts";
import { type ApiRoute, hidden } from "../api-route.ts";

const CONFIG_GROUP = "config.k8s.io";
/** The paths that statusz lists. */
const PATHS = ["configz", "flagz", "healthz", "metrics", "statusz"];

/** Pages about the agent itself. */
export const aboutRoutes: readonly ApiRoute[] = [
  {
    path: "/configz",
    methods: "any",
    gate: hidden(),
    summary: "The whole configuration in force (JSON).",
    handle: ({ about }) => ({
      ...jsonAnswer(200, { kubeletconfig: about.configuration() }),
      headers: { "X-Content-Type-Options": "nosniff" },
    }),
  },
  {
    path: "/flagz",
    methods: "any",
    gate: hidden("ComponentFlagz"),
    summary: "All flags with their values (text, or JSON by the Accept header).",
    handle: ({ about }, request) =>
      page(request, "Flagz", {
        object: () => ({ flags: about.flags() }),
        lines: () => Object.entries(about.flags()),
      }),
  },
  {
    path: "/statusz",
    methods: "any",
    gate: hidden("ComponentStatusz"),
    summary: "Version and running time (text, or JSON by the Accept header).",
    handle: (deps, request) =>
      page(request, "Statusz", {
        object: () => status(deps),
        lines: () => Object.entries(status(deps)).map(([name, value]) => [name, String(value)] as const),
      }),
  },
];

function status({ about, now }: ApiDeps): object {
  return {
    startTime: `${new Date(about.startedMs).toISOString().slice(0, 19)}Z`,
    uptimeSeconds: Math.floor((now() - about.startedMs) / 1000),
    goVersion: `node ${process.version}`,
    binaryVersion: about.version,
    emulationVersion: about.version,
    paths: PATHS.map((path) => `/${path}`),
  };
}

interface Page {
  object(): object;
  lines(): readonly (readonly [string, string])[];
}

/** Text, or JSON if the Accept header names the kind. */
function page({ headers }: RouteRequest, kind: "Flagz" | "Statusz", { object, lines }: Page): RouteAnswer {
  const accept = headers["accept"] ?? "";
  const wanted = accept.split(",").map((one) => one.trim().split(/\s*;\s*/));
  const structured = wanted.find(
    ([type, ...rest]) =>
      type === "application/json" && rest.includes(`as=${kind}`) && rest.includes(`g=${CONFIG_GROUP}`),
  );
  const version = structured?.find((part) => /^v=v1(alpha1|beta1)$/.test(part))?.slice(2);
  if (version !== undefined) {
    const apiVersion = `${CONFIG_GROUP}/${version}`;
    const answer = jsonAnswer(200, { kind, apiVersion, metadata: { name: "kubelet" }, ...object() });
    const warning = `299 - "${apiVersion} is deprecated, use ${CONFIG_GROUP}/v1beta1"`;
    return version === "v1alpha1" ? { ...answer, headers: { Warning: warning } } : answer;
  }
  const takesText = accept === "" || wanted.some(([type = ""]) => /^(\*\/\*|text\/(plain|html|\*))$/.test(type));
  if (!takesText) return textAnswer(406, `the server can only give text/plain or application/json;as=${kind}\n`);
  const about = `kubelet ${kind.toLowerCase()}\nWarning: This endpoint is not meant to be machine parseable.\n\n`;
  return textAnswer(
    200,
    `${about}${lines()
      .map(([name, value]) => `${name}=${value}\n`)
      .join("")}`,
  );
}
