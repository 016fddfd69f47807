import type { ApiObject, Kind } from "../kinds/kind.ts";
import { decodeTree, TypeMismatch } from "../schema/decode-tree.ts";
import { shownPath } from "../schema/duplicate-keys.ts";
import { isTree } from "../schema/type-schema.ts";
import { badRequest, StatusError } from "../status/status-error.ts";
import type { WriteRequest } from "./context.ts";

/** A parsed body, and the keys that were in it twice. */
export interface ParsedBody {
  readonly value: unknown;
  readonly duplicates: readonly string[];
}

const MOST_WARNINGS = 100;

/** A problem of the body in the words of Kubernetes. */
function unreadable({ resource }: Kind, message: string, given = resource.kind): StatusError {
  const { kind, version } = resource;
  return new UnreadableObject(`${given} in version "${version}" cannot be handled as a ${kind}: ${message}`, message);
}

/** What was sent is no object of the kind. */
export class UnreadableObject extends StatusError {
  constructor(
    message: string,
    /** Without the words about the kind. */
    readonly why: string,
  ) {
    super({ code: 400, reason: "BadRequest", message });
  }
}

/**
 * An object of a kind from a body, in stored form and with its defaults. Unknown and doubled fields are refused, warned
 * about or ignored as the request says. Throws `StatusError`.
 */
export function decodeObject(kind: Kind, body: ParsedBody, request: WriteRequest): ApiObject {
  checkType(kind, body.value);
  const { object, unknown } = decodeFields(kind, body.value);
  reportStrictly(kind, { unknown, duplicates: body.duplicates }, request);
  // Decoded by the schema of the kind.
  const decoded = { ...object, kind: kind.resource.kind, apiVersion: kind.apiVersion } as unknown as ApiObject;
  return kind.defaults?.(decoded) ?? decoded;
}

/** The fields of a kind. Throws `StatusError` if a value has the wrong type. */
export function decodeFields(kind: Kind, value: unknown): ReturnType<typeof decodeTree> {
  try {
    return decodeTree(kind.schemaType, value);
  } catch (error) {
    if (error instanceof TypeMismatch) throw unreadable(kind, error.message);
    throw error;
  }
}

/** A body of another kind or version is refused; one without may be of any. */
function checkType(kind: Kind, value: unknown): void {
  if (!isTree(value)) {
    const message = "json: cannot unmarshal into Go value of type map[string]interface {}";
    throw badRequest(`couldn't get version/kind; json parse error: ${message}`);
  }
  const { apiVersion, kind: name } = value;
  if (typeof name === "string" && name !== "" && name !== kind.resource.kind) {
    const package_ = kind.resource.group.split(".", 1)[0] || "core";
    throw unreadable(kind, `converting (v1.${name}) to (${package_}.${kind.resource.kind}): unknown conversion`, name);
  }
  if (typeof apiVersion === "string" && apiVersion !== "" && apiVersion !== kind.apiVersion) {
    const word = kind.resource.kind;
    const version = apiVersion.split("/").at(-1) ?? "";
    const why = `no kind "${word}" is registered for version "${apiVersion}" in scheme "pkg/runtime/scheme.go:111"`;
    throw badRequest(`${word} in version "${version}" cannot be handled as a ${word}: ${why}`);
  }
}

/** Refuses or warns about fields that the kind does not have. */
export function reportStrictly(
  kind: Kind,
  { unknown, duplicates }: { readonly unknown: readonly string[]; readonly duplicates: readonly string[] },
  request: WriteRequest,
): void {
  const { validation = "Warn" } = request;
  if (validation === "Ignore") return;
  const shown = (paths: readonly string[], word: string): readonly string[] =>
    paths.slice(0, MOST_WARNINGS).map((path) => `${word} field ${JSON.stringify(shownPath(path))}`);
  const problems = [...shown(unknown, "unknown"), ...shown(duplicates, "duplicate")].slice(0, MOST_WARNINGS);
  if (problems.length === 0) return;
  switch (validation) {
    case "Strict":
      throw unreadable(kind, `strict decoding error: ${problems.join(", ")}`);
    case "Warn":
      for (const problem of problems) request.warn?.(problem);
      return;
  }
}
