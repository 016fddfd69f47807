import { notAcceptable, unsupportedMediaType } from "../status/status-error.ts";

/** How an answer is written, and as what. */
export interface OutputFormat {
  readonly encoding: "json" | "yaml";
  readonly as: "object" | "table" | "metadata" | "discovery";
  /** The version of the form: `v1`, or `v1beta1` for old clients. */
  readonly version: string;
}

interface MediaRange {
  readonly type: string;
  readonly params: ReadonlyMap<string, string>;
}

const JSON_TYPE = "application/json";
const YAML_TYPE = "application/yaml";
/** Answers are never in protobuf: whoever speaks it reads JSON, too. */
const OFFERED = [JSON_TYPE, YAML_TYPE];
const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";

/** The form that a client prefers of those that are offered. Throws `StatusError` if there is none. */
export function negotiateOutput(accept: string | undefined): OutputFormat {
  const ranges = readRanges(accept ?? "");
  if (ranges.length === 0) return { encoding: "json", as: "object", version: "v1" };
  for (const range of ranges) {
    const encoding = encodingOf(range.type);
    const form = encoding && formOf(range.params);
    if (encoding !== undefined && form !== undefined) return { encoding, ...form };
  }
  throw notAcceptable(OFFERED);
}

function encodingOf(type: string): OutputFormat["encoding"] | undefined {
  if (type === JSON_TYPE || type === "*/*" || type === "application/*") return "json";
  return type === YAML_TYPE ? "yaml" : undefined;
}

function formOf(params: MediaRange["params"]): Omit<OutputFormat, "encoding"> | undefined {
  const version = params.get("v") ?? "v1";
  switch (params.get("as")) {
    case undefined:
      return { as: "object", version: "v1" };
    case "Table":
      return isMeta(params) ? { as: "table", version } : undefined;
    case "PartialObjectMetadata":
    case "PartialObjectMetadataList":
      return isMeta(params) ? { as: "metadata", version } : undefined;
    case "APIGroupDiscoveryList":
      return params.get("g") === "apidiscovery.k8s.io" && /^v2(beta1)?$/.test(version)
        ? { as: "discovery", version }
        : undefined;
    default:
      return undefined;
  }
}

function isMeta(params: MediaRange["params"]): boolean {
  return params.get("g") === "meta.k8s.io" && /^v1(beta1)?$/.test(params.get("v") ?? "");
}

/** The ranges of an Accept header, the preferred first. */
function readRanges(accept: string): readonly MediaRange[] {
  const ranges = accept
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .map((text) => {
      const [type = "", ...params] = text.split(";").map((part) => part.trim());
      const pairs = params.map((param): [string, string] => {
        const [name = "", value = ""] = param.split("=", 2);
        return [name.toLowerCase(), value.replaceAll('"', "")];
      });
      return { type: type.toLowerCase(), params: new Map(pairs) };
    });
  const weight = ({ params }: MediaRange): number => Number(params.get("q") ?? 1) || 0;
  return ranges.filter((range) => weight(range) > 0).sort((a, b) => weight(b) - weight(a));
}

/** How a body may be written. */
export type InputEncoding = "json" | "yaml" | "protobuf";

/** How a body is written. Throws `StatusError` for what is not read here. */
export function negotiateInput(contentType: string | undefined, { takesYaml = true } = {}): InputEncoding {
  const type = (contentType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type === "" || type === JSON_TYPE) return "json";
  if (type === YAML_TYPE && takesYaml) return "yaml";
  if (type === PROTOBUF_TYPE) return "protobuf";
  throw unsupportedMediaType([JSON_TYPE, ...(takesYaml ? [YAML_TYPE] : []), PROTOBUF_TYPE]);
}
