import { type AgentOptions, type OptionName, optionNames, optionOf } from "./agent-options.ts";
import type { DynamicReport } from "./dynamic/report.ts";
import type { LoadedConfiguration } from "./load.ts";
import type { Applies } from "./option.ts";
import { isGiven, type Origin, type Provenance, showOrigin } from "./origin.ts";

/** One setting as `config view` shows it; secrets are masked. */
export interface ReportedSetting {
  readonly field?: string;
  readonly flag?: string;
  readonly value: unknown;
  /** The value for people. */
  readonly shown: string;
  readonly origin: Origin | undefined;
  readonly keys?: Readonly<Record<string, Origin>>;
  /** Where it comes from, for people. */
  readonly places: readonly string[];
  readonly isGiven: boolean;
  readonly applies: Applies;
  readonly effect: "planned" | "none" | undefined;
  /** Set for a changed setting that is not in force: what it waits for, and its next value. */
  readonly waits?: { readonly for: "restart" | "reload"; readonly value: unknown; readonly shown: string };
}

/** What a running agent reports about its configuration. */
export interface ConfigReport {
  readonly settings: readonly ReportedSetting[];
  /** Why the newest change of the files is not in force. */
  readonly problems: readonly string[];
  readonly dynamic?: DynamicReport;
}

/** All settings with where they come from. `values` are those in force, where they differ from the loaded ones. */
export function reportSettings(
  loaded: LoadedConfiguration,
  inForce: AgentOptions = loaded.values,
  waiting: { readonly restart: readonly OptionName[]; readonly reload: readonly OptionName[] } = {
    restart: [],
    reload: [],
  },
): ReportedSetting[] {
  return optionNames
    .filter((name) => name !== "help")
    .map((name) => {
      const { field, flag, applies, effect } = optionOf(name);
      const found = loaded.provenance.get(name);
      const waitsFor = waiting.restart.includes(name)
        ? "restart"
        : waiting.reload.includes(name)
          ? "reload"
          : undefined;
      const next = { value: encodedValueOf(name, loaded.values), shown: shownValueOf(name, loaded.values) };
      return {
        ...(field === undefined ? {} : { field }),
        ...(flag === undefined ? {} : { flag }),
        value: encodedValueOf(name, inForce),
        shown: shownValueOf(name, inForce),
        origin: found?.origin,
        ...(found?.parts === undefined ? {} : { keys: Object.fromEntries(found.parts) }),
        places: placesOf(found),
        isGiven: found !== undefined && isSet(found),
        applies,
        effect,
        ...(waitsFor === undefined ? {} : { waits: { for: waitsFor, ...next } }),
      };
    });
}

/** A value as text for people; secrets are not shown. */
export function shownValueOf(option: OptionName, values: AgentOptions): string {
  const { kind, secret } = optionOf(option);
  const shown = kind.show(values[option]);
  return secret === true && shown !== "" ? "<masked>" : shown;
}

/** A value for JSON and YAML; secrets are not shown. */
export function encodedValueOf(option: OptionName, values: AgentOptions): unknown {
  const { kind, secret } = optionOf(option);
  const written = kind.encode(values[option]);
  return secret === true && written !== undefined ? "<masked>" : (written ?? null);
}

function isSet({ origin, parts }: Provenance): boolean {
  return isGiven(origin) || origin.from === "derived" || [...(parts?.values() ?? [])].some(isGiven);
}

function placesOf(found: Provenance | undefined): readonly string[] {
  if (found === undefined) return [];
  const places = new Set([...(found.parts?.values() ?? [])].map(showOrigin));
  return places.size === 0 ? [showOrigin(found.origin)] : [...places];
}
