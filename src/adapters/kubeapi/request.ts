import type { Deletion, ListQuery, Patch, Selection, WatchQuery } from "./port.ts";
import { pathOf, type Resource } from "./resources.ts";

export const PATCH_TYPES = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  // The server reads YAML here, and JSON is YAML.
  apply: "application/apply-patch+yaml",
} as const satisfies Record<Patch["type"], string>;

/** Path and query of a list. A version other than "0" means: not older than that. */
export function listPath(resource: Resource<unknown>, query: ListQuery): string {
  const { resourceVersion = "", continueToken = "" } = query;
  return withQuery(pathOf(resource, { namespace: query.namespace }), {
    ...selectors(query),
    limit: query.limit === undefined ? "" : String(query.limit),
    continue: continueToken,
    // A page that continues carries its version in the token.
    ...(continueToken === "" && {
      resourceVersion,
      resourceVersionMatch: resourceVersion === "" || resourceVersion === "0" ? "" : "NotOlderThan",
    }),
  });
}

export function watchPath(resource: Resource<unknown>, query: WatchQuery): string {
  return withQuery(pathOf(resource, { namespace: query.namespace }), {
    ...selectors(query),
    watch: "true",
    allowWatchBookmarks: "true",
    resourceVersion: query.resourceVersion,
    timeoutSeconds: String(query.timeoutSeconds),
  });
}

export function patchPath(resource: Resource<unknown>, change: Patch): string {
  return withQuery(pathOf(resource, change), {
    fieldManager: change.fieldManager ?? "",
    force: change.force === true ? "true" : "",
  });
}

export function deleteBody({ uid, resourceVersion, graceSeconds, propagation }: Deletion): string {
  const preconditions = {
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(Object.keys(preconditions).length > 0 && { preconditions }),
    ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
    ...(propagation !== undefined && { propagationPolicy: propagation }),
  });
}

function selectors({ fieldSelector = "", labelSelector = "" }: Selection): Record<string, string> {
  return { fieldSelector, labelSelector };
}

function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  const parts = Object.entries(query).filter(([, value]) => value !== "");
  if (parts.length === 0) return path;
  return `${path}?${parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`;
}
