import { ownValue } from "../lib/own-value.ts";

/** The attributes of a request for the API server's authorization. */
export interface Access {
  /** Empty for methods without a verb (HEAD, OPTIONS). */
  readonly verb: string;
  /** Subresources of the node; access to one of them suffices. */
  readonly subresources: readonly string[];
}

const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** Subresources by the first part of the path. All other paths need `proxy`. */
const FINE: Readonly<Record<string, readonly string[]>> = {
  pods: ["pods", "proxy"],
  runningpods: ["pods", "proxy"],
  healthz: ["healthz", "proxy"],
  configz: ["configz", "proxy"],
  stats: ["stats"],
  metrics: ["metrics"],
  spec: ["spec"],
  // Of the cAdvisor port, where it is not on loopback.
  api: ["stats"],
  validate: ["stats"],
  logs: ["log"],
  checkpoint: ["checkpoint"],
  statusz: ["statusz"],
  flagz: ["configz"],
};

/** These act inside containers: a GET (WebSocket) needs the same access as a POST. Kubernetes requires only `get` then. */
const ACTING = new Set(["exec", "attach", "portForward", "run"]);

/** The access that a request needs, by whole parts of the path: `/podsx` is not `/pods`. Pure. */
export function accessOf(method: string, path: string): Access {
  const [, first = ""] = path.split("/");
  const verb = ACTING.has(first) ? "create" : (ownValue(VERBS, method) ?? "");
  return { verb, subresources: ownValue(FINE, first) ?? ["proxy"] };
}
