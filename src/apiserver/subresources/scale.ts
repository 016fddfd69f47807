import type { RouteAnswer } from "../../adapters/net/http-route.ts";
import type { Scale } from "../../model/generated/types.ts";
import type { ApiObject, Kind } from "../kinds/kind.ts";
import { kindForm, type OperationDeps, type Target, type WriteRequest } from "../operations/context.ts";
import { runWrite } from "../operations/create.ts";
import { getObject } from "../operations/list.ts";
import { type PatchType } from "../operations/patch.ts";
import { changeObject } from "../operations/update.ts";
import { jsonPatch } from "../patch/json-patch.ts";
import { mergePatch } from "../patch/merge-patch.ts";
import type { ApiCall } from "../rest/api-call.ts";
import { managerOf, readWriteQuery } from "../rest/query.ts";
import { readParsedBody } from "../rest/read-body.ts";
import type { Subresource } from "../rest/subresource.ts";
import { decodeTree, TypeMismatch } from "../schema/decode-tree.ts";
import { invalid } from "../status/field-error.ts";
import {
  badRequest,
  conflict,
  invalidObject,
  methodNotAllowed,
  notFound,
  unsupportedMediaType,
} from "../status/status-error.ts";
import type { StoredObject } from "../store/index.ts";

const SCALE = { group: "autoscaling", version: "v1", kind: "Scale" };
const PATCHES: Readonly<Record<string, PatchType>> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "merge",
};

/** `scale`: the number of copies of a workload, in one form for all kinds that have it. */
export function scaleSubresources(deps: OperationDeps): readonly Subresource[] {
  return deps.kinds.all
    .filter(({ scale }) => scale !== undefined)
    .map((kind) => ({
      collection: kind.collection,
      name: "scale",
      verbs: ["get", "patch", "update"],
      answer: SCALE,
      handle: (target, call) => handleScale(deps, target, call),
    }));
}

async function handleScale(deps: OperationDeps, target: Target, call: ApiCall): Promise<RouteAnswer> {
  const { method, signal } = call.request;
  switch (method) {
    case "GET":
      return answerOf(target.kind, await getObject(deps, target, { signal }));
    case "PUT":
      return change(deps, target, { call, next: async () => (await readParsedBody(call.request, deps)).value });
    case "PATCH": {
      const type = PATCHES[(call.request.headers["content-type"] ?? "").split(";", 1)[0]?.trim() ?? ""];
      if (type === undefined) throw unsupportedMediaType(Object.keys(PATCHES));
      const { value: patch } = await readParsedBody(call.request, { ...deps, encoding: "json" });
      const next = (scale: Scale): unknown => (type === "json" ? jsonPatch(scale, patch) : mergePatch(scale, patch));
      return change(deps, target, { call, next: (scale) => Promise.resolve(next(scale)) });
    }
    default:
      throw methodNotAllowed();
  }
}

interface ScaleChange {
  readonly call: ApiCall;
  next(scale: Scale): Promise<unknown>;
}

async function change(deps: OperationDeps, target: Target, { call, next }: ScaleChange): Promise<RouteAnswer> {
  const { kind, namespace, name } = target;
  const { fieldManager, isDryRun } = readWriteQuery(call.request.query, "UpdateOptions");
  const manager = managerOf(fieldManager, call.request.headers["user-agent"]);
  const request: WriteRequest = { user: call.user, manager, isDryRun, warn: (text) => call.warn(text) };
  const before = deps.store.get(kind.collection, { namespace, name });
  if (before === undefined) throw notFound(kind.resource, name);
  const wanted = decodeScale(await next(scaleOf(kind, before)));
  // Without this an empty body would stop all copies.
  const given = wanted.metadata.name ?? "";
  if (given === "") throw badRequest("name must be provided");
  if (given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
  const stored = await runWrite(deps, request, (transaction) => {
    const existing = transaction.get(kind.collection, { namespace, name });
    if (existing === undefined) throw notFound(kind.resource, name);
    const version = wanted.metadata.resourceVersion ?? "";
    if (version !== "" && version !== String(existing.revision)) throw conflict(kind.resource, name);
    const object = kindForm(kind, existing.parse());
    const scaled = withReplicas(kind, object, wanted.spec?.replicas ?? 0);
    const path = { name: "scale", subresource: undefined, isTimed: false };
    return changeObject(deps, { ...target, path, transaction, existing }, { next: scaled, request });
  });
  return answerOf(kind, stored);
}

function withReplicas(kind: Kind, object: ApiObject, replicas: number): ApiObject {
  if (replicas < 0) {
    const error = invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    throw invalidObject(SCALE, object.metadata.name ?? "", [error]);
  }
  return kind.scale?.withReplicas(object, replicas) ?? object;
}

function decodeScale(value: unknown): Scale {
  try {
    return decodeTree("Scale", value).object as unknown as Scale; // reason: decoded by its schema
  } catch (error) {
    if (error instanceof TypeMismatch) throw badRequest(error.message);
    throw error;
  }
}

function scaleOf(kind: Kind, stored: StoredObject): Scale {
  const object = kindForm(kind, stored.parse());
  const { name = "", namespace = "", uid = "", resourceVersion = "", creationTimestamp } = object.metadata;
  const { wanted = 0, current = 0, selector = "" } = kind.scale?.read(object) ?? {};
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, ...(creationTimestamp && { creationTimestamp }) },
    spec: wanted === 0 ? {} : { replicas: wanted },
    status: { replicas: current, ...(selector !== "" && { selector }) },
  };
}

function answerOf(kind: Kind, stored: StoredObject): RouteAnswer {
  return { status: 200, type: "application/json", body: `${JSON.stringify(scaleOf(kind, stored))}\n` };
}
