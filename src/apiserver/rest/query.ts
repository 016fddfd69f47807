import type { DeleteOptions } from "../../model/generated/types.ts";
import type { FieldValidation } from "../operations/context.ts";
import { decodeTree, TypeMismatch } from "../schema/decode-tree.ts";
import { invalid, notSupported } from "../status/field-error.ts";
import { badRequest, invalidObject } from "../status/status-error.ts";

const VALIDATIONS: readonly FieldValidation[] = ["Ignore", "Strict", "Warn"];
const LONGEST_MANAGER = 128;

/** What the query of a write says. */
export interface WriteQuery {
  readonly isDryRun: boolean;
  /** Empty if the client names none. */
  readonly fieldManager: string;
  readonly validation: FieldValidation;
}

/** Reads the options of a write. Throws `StatusError`; `kind` names them in messages. */
export function readWriteQuery(query: URLSearchParams, kind: string): WriteQuery {
  const options = { group: "meta.k8s.io", kind };
  const dryRun = query.getAll("dryRun");
  if (dryRun.some((word) => word !== "All")) {
    throw invalidObject(options, "", [notSupported("dryRun", dryRun, ["All"])]);
  }
  const fieldManager = query.get("fieldManager") ?? "";
  if (fieldManager.length > LONGEST_MANAGER) {
    throw invalidObject(options, "", [
      {
        type: "FieldValueTooLong",
        field: "fieldManager",
        body: `Too long: may not be more than ${LONGEST_MANAGER} bytes`,
      },
    ]);
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(fieldManager)) {
    throw invalidObject(options, "", [
      invalid("fieldManager", fieldManager, "should only contain printable characters"),
    ]);
  }
  const word = query.get("fieldValidation") || "Warn";
  const validation = VALIDATIONS.find((known) => known === word);
  if (validation === undefined) {
    throw invalidObject(options, "", [notSupported("fieldValidation", word, ["", ...VALIDATIONS])]);
  }
  return { isDryRun: dryRun.length > 0, fieldManager, validation };
}

/** The name that a client owns fields by: the one it gives, else the program of its user agent. */
export function managerOf(fieldManager: string, userAgent: string | undefined): string {
  if (fieldManager !== "") return fieldManager;
  return ((userAgent ?? "").split("/", 1)[0] ?? "").replaceAll(/[^\x20-\x7e]/g, "").slice(0, LONGEST_MANAGER);
}

/** A number of the query. Throws `StatusError`. */
export function readNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  if (/^-?\d+$/.test(text)) return Number(text);
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
}

/** A switch of the query, with the words that Go takes for it. */
export function readFlag(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  return !["false", "0", "f", "F", "FALSE", "False"].includes(text);
}

/** What objects the query selects. */
export function readSelectors(query: URLSearchParams): { labelSelector: string; fieldSelector: string } {
  return { labelSelector: query.get("labelSelector") ?? "", fieldSelector: query.get("fieldSelector") ?? "" };
}

/** The options of a deletion: of the body if there is one, else of the query. Throws `StatusError`. */
export function readDeleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  if (body !== undefined) {
    try {
      return decodeTree("DeleteOptions", body).object as DeleteOptions; // reason: decoded by its schema
    } catch (error) {
      if (error instanceof TypeMismatch) throw badRequest(error.message);
      throw error;
    }
  }
  const seconds = readNumber(query, "gracePeriodSeconds");
  const policy = query.get("propagationPolicy");
  const orphan = readFlag(query, "orphanDependents");
  const dryRun = query.getAll("dryRun");
  return {
    ...(seconds !== undefined && { gracePeriodSeconds: seconds }),
    ...(policy !== null && { propagationPolicy: policy }),
    ...(orphan !== undefined && { orphanDependents: orphan }),
    ...(dryRun.length > 0 && { dryRun }),
  };
}
