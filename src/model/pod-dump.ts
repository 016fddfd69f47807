import { POD_LAYOUT } from "./generated/pod-layout.ts";
import type { Container, Pod, ResourceRequirements } from "./generated/types.ts";
import { DECIMAL_EXPONENTS } from "./quantity.ts";

/** Thrown for what cannot be printed exactly as Go would. */
class UnknownDumpError extends Error {}

/** What of a value is printed: its fields as the API has them. */
type Fields = Readonly<Record<string, unknown>>;

const ZERO_TIME = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";

/**
 * Returns a defaulted pod printed as Kubernetes prints its own object to hash it; undefined if it has something that
 * cannot be printed the same, such as a time. `raw` is the pod before its quantities were rounded: they are printed
 * with the text that they were parsed from.
 */
export function dumpPod(pod: Pod, raw: Pod): string | undefined {
  if (pod.spec.resources !== undefined) return undefined;
  const { status: _status, ...rest } = pod;
  try {
    return dumpValue("*struct core.Pod", { ...rest, spec: internalSpec(pod, raw) });
  } catch (error) {
    if (error instanceof UnknownDumpError) return undefined;
    throw error;
  }
}

/** The spec as the internal type has it: what concerns the host's namespaces is part of the security context there. */
function internalSpec({ spec }: Pod, raw: Pod): Fields {
  const { hostNetwork = false, hostPID = false, hostIPC = false, shareProcessNamespace, hostUsers } = spec;
  const resourcesIn = (containers: readonly Container[] | undefined, before: readonly Container[] | undefined) =>
    containers?.map((container, at) => ({ ...container, resources: rawResources(before?.[at]?.resources) }));
  return {
    ...spec,
    serviceAccountName: spec.serviceAccountName || spec.serviceAccount,
    containers: resourcesIn(spec.containers, raw.spec.containers),
    initContainers: resourcesIn(spec.initContainers, raw.spec.initContainers),
    overhead: raw.spec.overhead,
    securityContext: {
      ...spec.securityContext,
      HostNetwork: hostNetwork,
      HostPID: hostPID,
      HostIPC: hostIPC,
      ShareProcessNamespace: shareProcessNamespace,
      HostUsers: hostUsers,
    },
  };
}

/** A limit without a request is a request too. */
function rawResources(resources: ResourceRequirements | undefined): ResourceRequirements {
  if (resources?.limits === undefined) return resources ?? {};
  return { ...resources, requests: { ...resources.limits, ...resources.requests } };
}

/** Prints a value with its type: `(string)web`. */
function dumpValue(type: string, value: unknown): string {
  return `(${typeName(type)})${dumpContent(type, value)}`;
}

/** Prints a value as it stands in a list, whose type is printed once. */
function dumpContent(type: string, value: unknown): string {
  if (type.startsWith("*")) return isMissing(value) ? "<nil>" : dumpContent(type.slice(1), value);
  if (type.startsWith("[]")) {
    if (isMissing(value)) return "<nil>";
    return `[${list(value)
      .map((one) => dumpContent(type.slice(2), one))
      .join(" ")}]`;
  }
  const [kind = "", name = "", ...rest] = type.split(" ");
  switch (kind) {
    case "map":
      return isMissing(value) ? "<nil>" : dumpMap(rest.join(" "), fields(value));
    case "struct":
      return dumpStruct(name, isMissing(value) ? {} : value);
    case "bool":
      return String(value ?? false);
    case "int32":
    case "int64":
      return String(value ?? 0);
    case "string":
      return String(value ?? "");
    default:
      throw new UnknownDumpError(type);
  }
}

function dumpMap(type: string, value: Fields): string {
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return `map[${entries.map(([key, one]) => `${key}:${dumpContent(type, one)}`).join(" ")}]`;
}

function dumpStruct(name: string, value: unknown): string {
  switch (name) {
    case "v1.TypeMeta":
      // The decoder clears it.
      return "{Kind:(string) APIVersion:(string)}";
    case "v1.Time":
      if (typeof value === "string") throw new UnknownDumpError(name);
      return ZERO_TIME;
    case "intstr.IntOrString":
      return dumpIntOrString(value);
    case "resource.Quantity":
      return dumpQuantity(String(value));
  }
  const layout = POD_LAYOUT[name];
  if (layout === undefined) throw new UnknownDumpError(name);
  const own = fields(value);
  const parts = layout.map(([field, key, type]) => {
    const of = key === "" ? own : own[key === "?" ? field : key];
    return `${field}:${dumpValue(type, of)}`;
  });
  return `{${parts.join(" ")}}`;
}

function dumpIntOrString(value: unknown): string {
  const isText = typeof value === "string";
  const [number, text] = isText ? [0, value] : [typeof value === "number" ? value : 0, ""];
  return `{Type:(intstr.Type)${isText ? 1 : 0} IntVal:(int32)${number} StrVal:(string)${text}}`;
}

const BINARY = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/** Digits that surely fit into 63 bits. */
const SAFE_DIGITS = 18;

/** Prints a quantity as Go parses it; its text is kept there if it is canonical already. */
function dumpQuantity(text: string): string {
  const [, sign = "", whole = "", fraction = "", suffix = ""] =
    /^([+-]?)(\d+)(?:\.(\d*))?([A-Za-z]*)$/.exec(text) ?? [];
  const power = BINARY.indexOf(suffix) + 1;
  const exponent = power > 0 ? 10 * power : DECIMAL_EXPONENTS[suffix];
  if (text === "0") return quantity(0n, 0, { text, format: "DecimalSI" });
  const digits = whole.replace(/^0+(?=\d)/, "") + fraction;
  // Written otherwise, or too small or too long for the simple case: Go has an arbitrary number there.
  if (whole === "" || sign !== "" || whole !== whole.replace(/^0+(?=\d)/, "") || exponent === undefined)
    throw new UnknownDumpError(text);
  if (power > 0) {
    const room = 15 - whole.length - Math.floor((exponent * 3) / 10) - 1;
    if (fraction !== "" || room < 0) throw new UnknownDumpError(text);
    const value = BigInt(whole);
    const isCanonical = (value & 7n) !== 0n;
    return quantity(value << BigInt(exponent), 0, { text: isCanonical ? text : "", format: "BinarySI" });
  }
  const scale = exponent - fraction.length;
  if (digits.length > SAFE_DIGITS || scale < -3) throw new UnknownDumpError(text);
  const isCanonical = scale % 3 === 0 && !digits.endsWith("000") && !digits.startsWith("0");
  return quantity(BigInt(digits), scale, { text: isCanonical ? text : "", format: "DecimalSI" });
}

function quantity(value: bigint, scale: number, { text, format }: { text: string; format: string }): string {
  const amount = `i:(resource.int64Amount){value:(int64)${value} scale:(resource.Scale)${scale}}`;
  const rest = `d:(resource.infDecAmount){Dec:(*inf.Dec)<nil>} s:(string)${text} Format:(resource.Format)${format}`;
  return `{${amount} ${rest}}`;
}

/** The name of a type in Go, from how the layout describes it. */
function typeName(type: string): string {
  const [, prefix = "", described = ""] = /^((?:\*|\[\])*)(.*)$/.exec(type) ?? [];
  return `${prefix}${described.split(" ")[1] ?? ""}`;
}

function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function fields(value: unknown): Fields {
  if (typeof value !== "object" || value === null) throw new UnknownDumpError("object");
  // An object that `checkObject` has passed: each key has a value of its type.
  return value as Fields;
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new UnknownDumpError("list");
  return value;
}
