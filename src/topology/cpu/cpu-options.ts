import { ConfigurationError } from "../../config/index.ts";

/** The options of the static CPU policy. */
export interface CpuOptions {
  /** Containers get whole cores or nothing. */
  readonly fullCoresOnly: boolean;
  readonly distributesAcrossNuma: boolean;
  readonly alignsBySocket: boolean;
  readonly distributesAcrossCores: boolean;
  /** Reserved CPUs are not for containers that share either. */
  readonly reservesStrictly: boolean;
  readonly alignsByUncore: boolean;
}

const NAMES: readonly (readonly [string, keyof CpuOptions])[] = [
  ["full-pcpus-only", "fullCoresOnly"],
  ["distribute-cpus-across-numa", "distributesAcrossNuma"],
  ["align-by-socket", "alignsBySocket"],
  ["distribute-cpus-across-cores", "distributesAcrossCores"],
  ["strict-cpu-reservation", "reservesStrictly"],
  ["prefer-align-cpus-by-uncorecache", "alignsByUncore"],
];

/** Pairs that exclude each other. */
const EXCLUSIVE: readonly (readonly [string, string])[] = [
  ["full-pcpus-only", "distribute-cpus-across-cores"],
  ["distribute-cpus-across-numa", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"],
];

/**
 * Reads the options, whose names, values and gates were checked before. Throws a ConfigurationError for two that exclude
 * each other.
 */
export function cpuOptionsOf(given: Readonly<Record<string, string>>): CpuOptions {
  const isOn = (name: string): boolean => /^(1|t|true)$/i.test(given[name] ?? "");
  for (const [a, b] of EXCLUSIVE) {
    if (isOn(a) && isOn(b))
      throw new ConfigurationError(
        "Impossible",
        `static policy options ${a} and ${b} can not be used at the same time`,
      );
  }
  const values = NAMES.map(([name, key]) => [key, isOn(name)]);
  return Object.fromEntries(values) as unknown as CpuOptions; // reason: each key is in the list
}
