import { messageOf } from "../../lib/errors.ts";
import { type CpuSet, formatCpuSet, parseCpuSet } from "../../model/cpu-set.ts";
import { checksumOf, dumpMap, dumpStruct } from "../go-dump.ts";
import { OtherPolicyError } from "../other-policy-error.ts";
import { CpuState } from "./cpu-state.ts";

/** The name of the file in the agent's directory, as in Kubernetes. */
export const CPU_STATE_FILE = "cpu_manager_state";

export interface CpuCheckpoint {
  readonly policy: string;
  readonly state: CpuState;
  /** Write the format of the gate PodLevelResourceManagers also if no pod has CPUs as a whole. */
  readonly hasPods?: boolean;
}

/** Finds the pod and the name of a container, which the oldest format lists by its id. */
export type FindContainer = (id: string) => { readonly uid: string; readonly name: string } | undefined;

type Entries = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * Returns the file of Kubernetes 1.18 and later, containers by their pod's UID and their name, or the one of 1.36 with
 * the gate PodLevelResourceManagers, which has CPUs of whole pods as well.
 */
export function encodeCpuState({ policy, state, hasPods = false }: CpuCheckpoint): string {
  const defaultCpuSet = formatCpuSet(state.shared);
  const pods = sorted(state.entries).map(([uid, containers]) => {
    const of = sorted(containers).map(([name, cpus]) => [name, formatCpuSet(cpus)] as const);
    return [uid, Object.fromEntries(of)] as const;
  });
  const entries = Object.fromEntries(pods);
  const podEntries = Object.fromEntries(sorted(state.podEntries).map(([uid, cpus]) => [uid, formatCpuSet(cpus)]));
  const isWithPods = hasPods || state.podEntries.size > 0;
  const checksum = checksumOf(
    dumpOf({ policyName: policy, defaultCpuSet, entries }, isWithPods ? podEntries : undefined),
  );
  return JSON.stringify({
    policyName: policy,
    defaultCpuSet,
    ...(state.entries.size > 0 && { entries }),
    ...(state.podEntries.size > 0 && {
      podEntries: Object.fromEntries(Object.entries(podEntries).map(([uid, cpuSet]) => [uid, { cpuSet }])),
    }),
    checksum,
  });
}

/**
 * Parses a state file of any Kubernetes release. Throws an Error, in Kubernetes' words, if it is damaged or of another
 * policy.
 */
export function decodeCpuState(text: string, policy: string, find: FindContainer = () => undefined): CpuState {
  const file = documentOf(text);
  const hasPods = !isFlat(file.entries) && file.checksum === checksumOf(dumpOf(file, file.podEntries));
  if (file.checksum !== 0 && !hasPods && !checksumsOf(file).includes(file.checksum)) {
    throw new Error("checkpoint is corrupted");
  }
  const { policyName, defaultCpuSet } = file;
  const entries = withPods(file.entries, find);
  if (policyName !== policy) {
    throw new OtherPolicyError(`configured policy "${policy}" differs from state checkpoint policy "${policyName}"`);
  }
  const shared = parsed(defaultCpuSet, (why) => `could not parse default cpu set "${defaultCpuSet}": ${why}`);
  const containers = Object.entries(entries).map(([uid, names]) => {
    const of = Object.entries(names).map(([name, cpus]): [string, CpuSet] => {
      const problem = (why: string) =>
        `could not parse cpuset "${cpus}" for container "${name}" in pod "${uid}": ${why}`;
      return [name, parsed(cpus, problem)];
    });
    return [uid, new Map(of)] as const;
  });
  // Only the checksum of the newest format covers them.
  const pods = Object.entries(hasPods ? file.podEntries : {}).map(([uid, cpus]) => [uid, parseCpuSet(cpus)] as const);
  return new CpuState(shared, { entries: containers, pods });
}

interface Document {
  readonly policyName: string;
  readonly defaultCpuSet: string;
  readonly entries: Entries | Readonly<Record<string, string>>;
  readonly podEntries: Readonly<Record<string, string>>;
  readonly checksum: number;
}

function documentOf(text: string): Document {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new Error("checkpoint is corrupted");
  const {
    policyName = "",
    defaultCpuSet = "",
    entries = {},
    podEntries = {},
    checksum = 0,
  } = value as Partial<Record<keyof Document, unknown>>; // reason: each part is checked below
  const isText = (part: unknown): part is string => typeof part === "string";
  const isMap = (part: unknown): part is Record<string, unknown> =>
    typeof part === "object" && part !== null && !Array.isArray(part);
  if (!isText(policyName) || !isText(defaultCpuSet) || !isMap(entries) || !isMap(podEntries)) {
    throw new Error("checkpoint is corrupted");
  }
  const values = Object.values(entries);
  const isFlat = values.every(isText);
  if (!isFlat && !values.every((each) => isMap(each) && Object.values(each).every(isText))) {
    throw new Error("checkpoint is corrupted");
  }
  if (typeof checksum !== "number") throw new Error("checkpoint is corrupted");
  const pods = Object.entries(podEntries).map(([uid, entry]) => {
    const cpus: unknown = isMap(entry) ? entry["cpuSet"] : undefined;
    return [uid, isText(cpus) ? cpus : ""] as const;
  });
  // reason: both shapes were checked
  return {
    policyName,
    defaultCpuSet,
    checksum,
    entries: entries as Document["entries"],
    podEntries: Object.fromEntries(pods),
  };
}

function isFlat(entries: Document["entries"]): entries is Readonly<Record<string, string>> {
  const values = Object.values(entries);
  return values.length > 0 && values.every((each) => typeof each === "string");
}

/** The checksums that releases wrote for containers alone: they differ in the structure's name. */
function checksumsOf(file: Document): readonly number[] {
  const dump = dumpOf(file);
  const renamed = dump.replace("CPUManagerCheckpoint", "CPUManagerCheckpointV2");
  return [dump, renamed].map(checksumOf);
}

function dumpOf(
  { policyName, defaultCpuSet, entries }: Pick<Document, "policyName" | "defaultCpuSet" | "entries">,
  podEntries?: Readonly<Record<string, string>>,
): string {
  const fields: [string, string][] = [
    ["PolicyName", `(string)${policyName}`],
    ["DefaultCPUSet", `(string)${defaultCpuSet}`],
    ["Entries", dumpEntries(entries)],
  ];
  if (podEntries !== undefined) fields.push(["PodEntries", dumpPods(podEntries)]);
  return `(*state.CPUManagerCheckpoint)${dumpStruct([...fields, ["Checksum", "(checksum.Checksum)0"]])}`;
}

function dumpEntries(entries: Document["entries"]): string {
  if (isFlat(entries)) return `(map[string]string)${dumpMap(Object.entries(entries))}`;
  const pods = Object.entries(entries).map(([uid, of]) => [uid, dumpMap(Object.entries(of))] as const);
  return `(map[string]map[string]string)${dumpMap(pods)}`;
}

function dumpPods(pods: Readonly<Record<string, string>>): string {
  const dumped = Object.entries(pods).map(([uid, text]) => {
    const cpus = dumpMap([...parseCpuSet(text)].map((cpu) => [cpu, "{}"] as const));
    return [uid, `{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})${cpus}}}`] as const;
  });
  return `(state.PodCPUAssignments)${dumpMap(dumped)}`;
}

/** The oldest format lists containers by their id. */
function withPods(entries: Document["entries"], find: FindContainer): Entries {
  if (!isFlat(entries)) return entries as Entries; // reason: the other shape
  const pods = new Map<string, Record<string, string>>();
  for (const [id, cpus] of Object.entries(entries)) {
    const found = find(id);
    if (found === undefined) {
      const why = `containerID '${id}' not found in initial containers list`;
      throw new Error(`failed to migrate checkpoint from v1 to v2: ${why}`);
    }
    pods.set(found.uid, { ...pods.get(found.uid), [found.name]: cpus });
  }
  return Object.fromEntries(pods);
}

function parsed(text: string, problem: (why: string) => string): CpuSet {
  try {
    return parseCpuSet(text);
  } catch (error) {
    throw new Error(problem(messageOf(error)));
  }
}

function sorted<V>(map: ReadonlyMap<string, V>): readonly (readonly [string, V])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}
