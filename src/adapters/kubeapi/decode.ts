import type { Status } from "../../model/generated/types.ts";
import { errorOfStatus } from "./api-error.ts";
import { ApiError, type ObjectList, type WatchEvent } from "./port.ts";
import { apiVersionOf, type Resource } from "./resources.ts";

/** JSON as it came: nothing about it is known but that it parsed. */
type Json = Record<string, unknown>;

/** Decodes an object of the kind, without the fields that the agent never reads. Throws `Garbage`. */
export function decodeObject<T>(resource: Resource<T>, text: string): T {
  return trimmed(resource, parseJson(text, resource.kind));
}

export function decodeList<T>(resource: Resource<T>, text: string): ObjectList<T> {
  const list = parseJson(text, `${resource.kind}List`);
  const metadata = isObject(list.metadata) ? list.metadata : {};
  const items = list.items ?? [];
  if (!Array.isArray(items)) throw new ApiError("Garbage", `${resource.kind}List: items is not a list`);
  return {
    items: items.map((item) => trimmed(resource, item)),
    resourceVersion: textOf(metadata.resourceVersion),
    continueToken: textOf(metadata.continue),
  };
}

/** Decodes one line of a watch. Throws the error of an ERROR event, and `Garbage` for an invalid line. */
export function decodeEvent<T>(resource: Resource<T>, line: string): WatchEvent<T> {
  const event = parseJson(line, "watch event");
  const { type, object } = event;
  if (!isObject(object)) throw new ApiError("Garbage", "watch event: object is missing");
  // The server's own error; its fields are read with care.
  if (type === "ERROR") throw errorOfStatus(object as Status);
  const metadata = isObject(object.metadata) ? object.metadata : {};
  const resourceVersion = textOf(metadata.resourceVersion);
  if (resourceVersion === "") throw new ApiError("Garbage", "watch event: resourceVersion is missing");
  switch (type) {
    case "BOOKMARK":
      return { type, resourceVersion };
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object: trimmed(resource, object), resourceVersion };
    default:
      throw new ApiError("Garbage", `watch event: unknown type ${JSON.stringify(type)}`);
  }
}

/**
 * Removes the fields that the agent never reads (a third of a pod is managedFields) and adds what list items lack.
 * Modifies the parsed object in place.
 */
function trimmed<T>(resource: Resource<T>, value: unknown): T {
  if (!isObject(value)) throw new ApiError("Garbage", `${resource.kind}: not an object`);
  const metadata = value.metadata;
  if (isObject(metadata)) delete metadata.managedFields;
  else if (metadata !== undefined && metadata !== null) {
    throw new ApiError("Garbage", `${resource.kind}: metadata is not an object`);
  } else value.metadata = {};
  value.apiVersion ??= apiVersionOf(resource);
  value.kind ??= resource.kind;
  // The rest is trusted: the server validates every object that it stores.
  return value as T;
}

function parseJson(text: string, what: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ApiError("Garbage", `${what}: response is not valid JSON`, { cause: error });
  }
  if (isObject(value)) return value;
  throw new ApiError("Garbage", `${what}: response is not an object`);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
