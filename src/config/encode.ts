import { type AgentOptions, type OptionName, optionNames, optionOf } from "./agent-options.ts";
import { API_VERSION, KIND } from "./document.ts";
import { shownValueOf } from "./report.ts";

/** The settings as a KubeletConfiguration; only the options of `only` when it is given. Secrets are masked. */
export function encodeConfiguration(
  values: AgentOptions,
  { only, masks = false }: { readonly only?: (option: OptionName) => boolean; readonly masks?: boolean } = {},
): Record<string, unknown> {
  const document: Record<string, unknown> = { apiVersion: API_VERSION, kind: KIND };
  for (const name of optionNames) {
    const { field, kind, secret } = optionOf(name);
    if (field === undefined || only?.(name) === false) continue;
    const value = kind.encode(values[name]);
    if (value === undefined || value === null) continue;
    put(document, field.split("."), secret === true && masks ? masked(value) : value);
  }
  return document;
}

/** Masks every text and keeps the shape, so that a typed client can still decode the configuration. */
function masked(value: unknown): unknown {
  if (Array.isArray(value)) return ["<masked>"];
  if (typeof value !== "object" || value === null) return "<masked>";
  return Object.fromEntries(Object.entries(value).map(([key, below]) => [key, masked(below)]));
}

function put(into: Record<string, unknown>, [step = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    into[step] = value;
    return;
  }
  const below = into[step];
  const next = typeof below === "object" && below !== null ? (below as Record<string, unknown>) : {}; // reason: made here
  into[step] = next;
  put(next, rest, value);
}

/** Every flag with its value, as the log shows them; secrets are masked. */
export function allFlags(values: AgentOptions): string[] {
  return optionNames.flatMap((name) => {
    const { flag } = optionOf(name);
    return flag === undefined || name === "help" ? [] : [`--${flag}="${shownValueOf(name, values)}"`];
  });
}

/** Flags that have no field and were given: what a file cannot hold. */
export function encodeFlags(values: AgentOptions, isGiven: (option: OptionName) => boolean): string[] {
  return optionNames.flatMap((name) => {
    const { field, flag, kind, secret } = optionOf(name);
    if (field !== undefined || flag === undefined || !isGiven(name)) return [];
    return [`--${flag}=${secret === true ? "<masked>" : kind.show(values[name])}`];
  });
}
