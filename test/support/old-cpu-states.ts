import { fnv1a32 } from "../../src/model/fnv.ts";

interface CpuFile {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly podEntries?: unknown;
  readonly checksum: number;
}

/** How releases of Kubernetes wrote the CPU state. */
export const CPU_FILE_FORMATS = ["same", "unchecked", "renamed", "containers"] as const;
export type CpuFileFormat = (typeof CPU_FILE_FORMATS)[number];

/**
 * Returns the state file as another release of Kubernetes would have written it: without a checksum, with the checksum of
 * another structure's name, or with containers by their ids, as before 1.18. Files with CPUs of whole pods have one
 * format only.
 */
export function asWrittenBy(format: CpuFileFormat, text: string, idOf: (uid: string, name: string) => string): string {
  const file = JSON.parse(text) as CpuFile;
  if (file.podEntries !== undefined || format === "same") return text;
  if (format === "unchecked") return JSON.stringify({ ...file, checksum: 0 });
  const { policyName, defaultCpuSet, entries = {} } = file;
  const pods = Object.entries(entries);
  const ids = pods.flatMap(([uid, of]) => Object.entries(of).map(([name, cpus]) => [idOf(uid, name), cpus] as const));
  const isFlat = format === "containers" && ids.length > 0;
  const map = (all: readonly (readonly [string, string])[]): string =>
    `map[${[...all]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => `${key}:${value}`)
      .join(" ")}]`;
  const dumped = isFlat
    ? `(map[string]string)${map(ids)}`
    : `(map[string]map[string]string)${map(pods.map(([uid, of]) => [uid, map(Object.entries(of))] as const))}`;
  const type = isFlat ? "CPUManagerCheckpoint" : "CPUManagerCheckpointV2";
  const fields = `PolicyName:(string)${policyName} DefaultCPUSet:(string)${defaultCpuSet} Entries:${dumped}`;
  const checksum = fnv1a32(new TextEncoder().encode(`(*state.${type}){${fields} Checksum:(checksum.Checksum)0}`));
  return JSON.stringify({ policyName, defaultCpuSet, entries: isFlat ? Object.fromEntries(ids) : entries, checksum });
}
