import { ownValue } from "../lib/own-value.ts";

/** What a request wants to do, in the words of the API server's authorization. */
export interface Access {
  /** Empty for methods that have none (HEAD, OPTIONS). */
  readonly verb: string;
  /** Sub-resources of the node; a yes for one of them is enough. */
  readonly subresources: readonly string[];
}

const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** First part of the path, or a longer one, and what it needs. All others need `proxy`. */
const FINE: Readonly<Record<string, readonly string[]>> = {
  pods: ["pods", "proxy"],
  runningpods: ["pods", "proxy"],
  healthz: ["healthz", "proxy"],
  configz: ["configz", "proxy"],
  stats: ["stats"],
  metrics: ["metrics"],
  logs: ["log"],
  checkpoint: ["checkpoint"],
  statusz: ["statusz"],
  flagz: ["configz"],
};

/** These act inside containers: a GET (WebSocket) is no smaller thing than a POST. The original asks for `get` then. */
const ACTING = new Set(["exec", "attach", "portForward", "run"]);

/** The access that a request needs. Pure; by whole parts of the path, so that `/podsx` is not `/pods`. */
export function accessOf(method: string, path: string): Access {
  const [, first = ""] = path.split("/");
  const verb = ACTING.has(first) ? "create" : (ownValue(VERBS, method) ?? "");
  return { verb, subresources: ownValue(FINE, first) ?? ["proxy"] };
}
