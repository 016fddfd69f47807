import { PODS } from "../../adapters/kubeapi/index.ts";
import { jsonAnswer, type RouteAnswer, textAnswer } from "../../adapters/net/http-route.ts";
import { type ParsedDocument, parseDocuments } from "../../lib/yaml.ts";
import type { Pod, Status } from "../../model/generated/types.ts";
import type { Kind } from "../kinds/kind.ts";
import { summarize } from "../kinds/pod/pod-table.ts";
import type { OperationDeps, Target, WriteRequest } from "../operations/context.ts";
import { deleteObject } from "../operations/delete.ts";
import { patchObject } from "../operations/patch.ts";
import type { ApiCall } from "../rest/api-call.ts";
import { readBytes, yamlStatus } from "../rest/read-body.ts";
import { MOST_VALUES } from "../schema/json-depth.ts";
import { isTree } from "../schema/type-schema.ts";
import { badRequest, methodNotAllowed, notFound, StatusError } from "../status/status-error.ts";
import type { JsonObject } from "../store/index.ts";

/** The manager of fields that came this way. */
const MANAGER = "manifests";
const PATH = "/manifests";

/** What became of one object of a manifest. */
interface Outcome {
  /** `pod/web`. */
  readonly object: string;
  readonly namespace: string;
  /** `created`, `configured`, `unchanged`, `deleted` or `refused`. */
  readonly outcome: string;
  /** Where it begins in the text, from 1. */
  readonly line: number;
  /** What is wrong with it, each with its field. */
  readonly problems?: readonly string[];
}

/**
 * The oldest way to give pods to a kubelet: `POST /manifests` takes YAML or JSON, one object or many, `GET` lists the pods,
 * `DELETE` removes what a manifest names, or one pod by its path. Undefined for other paths.
 */
export function handleManifests(deps: OperationDeps, call: ApiCall): Promise<RouteAnswer> | undefined {
  const { path, method } = call.request;
  if (path !== PATH && !path.startsWith(`${PATH}/`)) return undefined;
  switch (method) {
    case "GET":
      return Promise.resolve(listPods(deps, call));
    case "POST":
    case "PUT":
      return applyAll(deps, call);
    case "DELETE":
      return path === PATH ? deleteAll(deps, call) : deletePod(deps, call);
    default:
      throw methodNotAllowed();
  }
}

function listPods({ store }: OperationDeps, call: ApiCall): RouteAnswer {
  const pods = store.list(PODS.plural);
  if (wantsJson(call))
    return jsonAnswer(200, { kind: "PodList", apiVersion: "v1", items: pods.map((pod) => pod.parse()) });
  const lines = pods.map((stored) => {
    const pod = stored.shared() as unknown as Pod; // reason: the collection has nothing but pods
    const { ready, total, reason } = summarize(pod);
    return `${stored.namespace}/${stored.name} ${reason} ${ready}/${total}\n`;
  });
  return textAnswer(200, lines.join(""));
}

async function applyAll(deps: OperationDeps, call: ApiCall): Promise<RouteAnswer> {
  const outcomes: Outcome[] = [];
  for (const { value, line } of await objectsOf(deps, call)) {
    outcomes.push(await outcomeOf(deps, { value, line }, (target, object) => applyOne(deps, call, { target, object })));
  }
  return report(call, outcomes);
}

async function deleteAll(deps: OperationDeps, call: ApiCall): Promise<RouteAnswer> {
  const outcomes: Outcome[] = [];
  for (const { value, line } of await objectsOf(deps, call)) {
    outcomes.push(await outcomeOf(deps, { value, line }, (target) => deleteOne(deps, call, target)));
  }
  return report(call, outcomes);
}

async function deletePod(deps: OperationDeps, call: ApiCall): Promise<RouteAnswer> {
  const parts = call.request.path.slice(PATH.length + 1).split("/");
  const [namespace = "", name = ""] = parts.length === 1 ? ["default", ...parts] : parts;
  const target = { kind: deps.kinds.of(PODS), namespace, name };
  const outcome = await deleteOne(deps, call, target);
  return report(call, [{ object: `pod/${name}`, namespace, outcome, line: 1 }]);
}

interface ManifestObject {
  readonly value: unknown;
  readonly line: number;
}

/** The objects of all documents; lists are taken apart. Throws `StatusError` if the text is no YAML, or too large. */
async function objectsOf({ clock }: OperationDeps, { request }: ApiCall): Promise<readonly ManifestObject[]> {
  const text = (await readBytes(request)).toString("utf8");
  let documents: readonly ParsedDocument[];
  try {
    ({ documents } = await parseDocuments(text, { clock, signal: request.signal, mostValues: MOST_VALUES }));
  } catch (error) {
    throw yamlStatus(error, "read manifest");
  }
  if (documents.length === 0)
    throw badRequest("read manifest: it has no object; send a Pod, a list or several documents");
  return documents.flatMap(({ value, line }) => {
    const isList = isTree(value) && typeof value.kind === "string" && value.kind.endsWith("List");
    return isList && Array.isArray(value.items)
      ? value.items.map((item: unknown) => ({ value: item, line }))
      : [{ value, line }];
  });
}

/** Runs a change for an object; what is wrong with it becomes part of the answer. */
async function outcomeOf(
  deps: OperationDeps,
  { value, line }: ManifestObject,
  change: (target: Target, object: JsonObject) => Promise<string>,
): Promise<Outcome> {
  const metadata = isTree(value) && isTree(value.metadata) ? value.metadata : {};
  const name = typeof metadata.name === "string" ? metadata.name : "";
  const given = typeof metadata.namespace === "string" ? metadata.namespace : "default";
  const word = isTree(value) && typeof value.kind === "string" ? value.kind.toLowerCase() : "object";
  const shown = { object: `${word}/${name}`, namespace: given, line };
  try {
    const kind = kindOf(deps, value);
    const namespace = kind.resource.isNamespaced ? given : "";
    if (name === "") throw badRequest("metadata.name: Required value: name the object");
    return { ...shown, namespace, outcome: await change({ kind, namespace, name }, value as JsonObject) }; // reason: it has a kind
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { ...shown, outcome: "refused", problems: problemsOf(error.status) };
  }
}

function kindOf({ kinds }: OperationDeps, value: unknown): Kind {
  const { apiVersion, kind } = isTree(value) ? value : { apiVersion: undefined, kind: undefined };
  const found = kinds.all.find((one) => one.apiVersion === apiVersion && one.resource.kind === kind);
  if (found !== undefined) return found;
  throw badRequest(
    `apiVersion, kind: ${JSON.stringify(apiVersion ?? "")} ${JSON.stringify(kind ?? "")} is not served here`,
  );
}

function problemsOf({ message = "", details }: Status): readonly string[] {
  const causes = (details?.causes ?? []).filter(({ field }) => field);
  return causes.length === 0 ? [message] : causes.map((cause) => `${cause.field}: ${cause.message}`);
}

async function applyOne(
  deps: OperationDeps,
  call: ApiCall,
  { target, object }: { readonly target: Target; readonly object: JsonObject },
): Promise<string> {
  const { kind, namespace, name } = target;
  const before = deps.store.get(kind.collection, { namespace, name });
  const metadata = isTree(object.metadata) ? object.metadata : {};
  const placed = { ...object, metadata: { ...metadata, ...(namespace !== "" && { namespace }) } };
  const path = { name: "", subresource: undefined };
  const body = { value: placed, duplicates: [] };
  const patch = { type: "apply", body, request: writeOf(call), isForced: true } as const;
  const { object: after, isCreated } = await patchObject(deps, { ...target, path }, patch);
  if (isCreated) return "created";
  return after === before ? "unchanged" : "configured";
}

async function deleteOne(deps: OperationDeps, call: ApiCall, target: Target): Promise<string> {
  const { kind, namespace, name } = target;
  if (deps.store.get(kind.collection, { namespace, name }) === undefined) throw notFound(kind.resource, name);
  await deleteObject(deps, target, { options: {}, request: writeOf(call) });
  return "deleted";
}

function writeOf({ user, warn }: ApiCall): WriteRequest {
  return { user, manager: MANAGER, validation: "Strict", warn };
}

/** 200 if everything was accepted, 422 if something was not; both say what. */
function report(call: ApiCall, outcomes: readonly Outcome[]): RouteAnswer {
  const status = outcomes.some(({ outcome }) => outcome === "refused") ? 422 : 200;
  if (wantsJson(call)) return jsonAnswer(status, { objects: outcomes });
  const lines = outcomes.flatMap(({ object, outcome, line, problems = [] }) => [
    `${object} ${outcome}${outcome === "refused" ? ` (line ${line})` : ""}`,
    ...problems.map((problem) => `  ${problem}`),
  ]);
  return textAnswer(status, `${lines.join("\n")}\n`);
}

function wantsJson({ request }: ApiCall): boolean {
  return (request.headers.accept ?? "").includes("json");
}
