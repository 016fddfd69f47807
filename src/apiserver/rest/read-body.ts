import { BodyTooLarge, type RouteRequest } from "../../adapters/net/http-route.ts";
import type { Clock } from "../../lib/clock.ts";
import { parseDocuments, YamlError } from "../../lib/yaml.ts";
import type { ParsedBody } from "../operations/decode-object.ts";
import { duplicateKeys } from "../schema/duplicate-keys.ts";
import { DEEPEST, MOST_VALUES, measureJson } from "../schema/json-depth.ts";
import { badRequest, StatusError, tooLargeBody } from "../status/status-error.ts";
import { type InputEncoding, negotiateInput } from "./negotiate.ts";

/** The largest body, in bytes; as in Kubernetes. */
const MOST_BODY_BYTES = 3 * 1024 * 1024;
/** That of a small body, in bytes. */
const MOST_SMALL_BYTES = 16 * 1024;

/** Reads and parses the body of a request, by its content type unless one is given. Rejects with `StatusError`. */
export async function readParsedBody(
  request: RouteRequest,
  { clock, encoding }: { readonly clock: Clock; readonly encoding?: InputEncoding },
): Promise<ParsedBody> {
  const chosen = encoding ?? negotiateInput(request.headers["content-type"]);
  return parseBody(await readBytes(request), chosen, { clock, signal: request.signal });
}

/**
 * The same for users who may do little, such as every pod with a token: a small body, and no YAML, whose large or deep texts
 * take a thread each.
 */
export async function readSmallBody(request: RouteRequest, { clock }: { readonly clock: Clock }): Promise<ParsedBody> {
  const encoding = negotiateInput(request.headers["content-type"], { takesYaml: false });
  return parseBody(await readBytes(request, MOST_SMALL_BYTES), encoding, { clock, signal: request.signal });
}

/** The same for a body that may be missing: undefined if it is empty. */
export async function readOptionalBody(request: RouteRequest, clock: Clock): Promise<ParsedBody | undefined> {
  const bytes = await readBytes(request);
  if (bytes.length === 0) return undefined;
  const encoding = negotiateInput(request.headers["content-type"]);
  return parseBody(bytes, encoding, { clock, signal: request.signal });
}

/** The body as it came. Rejects with `StatusError`. */
export async function readBytes(request: RouteRequest, most = MOST_BODY_BYTES): Promise<Buffer> {
  try {
    return await request.readBody(most);
  } catch (error) {
    if (error instanceof BodyTooLarge) throw tooLargeBody(most);
    throw error;
  }
}

async function parseBody(
  bytes: Buffer,
  encoding: InputEncoding,
  options: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<ParsedBody> {
  if (encoding === "protobuf") {
    // Loaded when the first client speaks it: kubectl and curl never do for what they read from files.
    const { decodeProtobuf } = await import("../protobuf/decode-protobuf.ts");
    return { value: decodeProtobuf(bytes), duplicates: [] };
  }
  const text = bytes.toString("utf8");
  if (encoding === "json") return parseJson(text);
  try {
    const { documents, warnings } = await parseDocuments(text, { ...options, mostValues: MOST_VALUES });
    const [document] = documents;
    const keys = warnings.flatMap((warning) => /key "([^"]+)" is set twice/.exec(warning)?.[1] ?? []);
    return { value: document?.value, duplicates: keys };
  } catch (error) {
    throw yamlStatus(error, "error converting YAML to JSON: yaml");
  }
}

/** The answer to YAML that was not parsed; `attempt` begins its message. Returns any other error as it is. */
export function yamlStatus(error: unknown, attempt: string): unknown {
  if (!(error instanceof YamlError)) return error;
  return error.code === "TooLarge" ? tooManyValues() : badRequest(`${attempt}: ${error.message}`);
}

function tooManyValues(): StatusError {
  const message = `Request entity too large: limit is ${MOST_VALUES} fields and elements`;
  return new StatusError({ code: 413, reason: "RequestEntityTooLarge", message });
}

function parseJson(text: string): ParsedBody {
  const { depth, values } = measureJson(text);
  if (depth > DEEPEST)
    throw badRequest(`couldn't get version/kind; json parse error: nested deeper than ${DEEPEST} levels`);
  if (values > MOST_VALUES) throw tooManyValues();
  try {
    return { value: JSON.parse(text), duplicates: duplicateKeys(text) };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw badRequest(`couldn't get version/kind; json parse error: ${message}`);
  }
}
