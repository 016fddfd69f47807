import { messageOf } from "../../lib/errors.ts";
import { sharesToWeight } from "../../model/cgroup-values.ts";
import type { CgroupValues } from "../../model/pod-cgroup-values.ts";

/** Runs `busctl` with these words; rejects with what it said when it fails. */
export type BusCall = (args: readonly string[]) => Promise<void>;

/** What it says of a unit that it has already, in the words of its releases. */
const IS_THERE = /UnitExists|already exists|already loaded/;

/**
 * Slices as systemd knows them. It has to own them: what is only written into the files is
 * undone at its next reload. Spoken to through `busctl`; the files are written as well, by the one who calls.
 */
export class SystemdSlices {
  constructor(
    private readonly call: BusCall,
    private readonly version: 1 | 2,
  ) {}

  /** Makes the slice; one that exists is success. */
  async start(path: string): Promise<void> {
    try {
      await this.call(startCall(path, this.version));
    } catch (error) {
      if (!IS_THERE.test(messageOf(error))) throw error;
    }
  }

  async set(path: string, values: CgroupValues): Promise<void> {
    const call = setCall(path, values, this.version);
    if (call !== undefined) await this.call(call);
    // Apart from the others: systemd before 244 does not know it, and leaves cpusets alone.
    if (values.cpus !== undefined && this.version === 2)
      await this.call(cpusCall(path, values.cpus)).catch(() => undefined);
  }

  /** Ends the slice; one that is not there is success. */
  async stop(path: string): Promise<void> {
    await this.call(managerCall("StopUnit", "ss", [unitOf(path), "replace"])).catch(() => undefined);
    await this.call(managerCall("ResetFailedUnit", "s", [unitOf(path)])).catch(() => undefined);
  }
}

/** `/kubepods.slice/kubepods-burstable.slice` is the unit `kubepods-burstable.slice`. */
function unitOf(path: string): string {
  return path.split("/").at(-1) ?? "";
}

function parentOf(path: string): string {
  return path.split("/").filter(Boolean).at(-2) ?? "-.slice";
}

function managerCall(method: string, signature: string, args: readonly string[]): string[] {
  const manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
  return ["--system", "call", ...manager, method, signature, "--", ...args];
}

type Property = readonly [name: string, ...typeAndValue: string[]];

/** The words for `busctl` that make a slice. */
export function startCall(path: string, version: 1 | 2): string[] {
  const properties: Property[] = [
    ["Description", "s", `cgroup of pods ${unitOf(path)}`],
    ["Wants", "as", "1", parentOf(path)],
    ["MemoryAccounting", "b", "true"],
    ["CPUAccounting", "b", "true"],
    [version === 2 ? "IOAccounting" : "BlockIOAccounting", "b", "true"],
    ["TasksAccounting", "b", "true"],
    ["DefaultDependencies", "b", "false"],
  ];
  const args = [unitOf(path), "replace", String(properties.length), ...properties.flat(), "0"];
  return managerCall("StartTransientUnit", "ssa(sv)a(sa(sv))", args);
}

/** The words for `busctl` that set a slice's limits until the next start; undefined when there are none. */
export function setCall(path: string, values: CgroupValues, version: 1 | 2): string[] | undefined {
  const properties = [...cpuProperties(values, version), ...otherProperties(values, version)];
  if (properties.length === 0) return undefined;
  const args = [unitOf(path), "true", String(properties.length), ...properties.flat()];
  return managerCall("SetUnitProperties", "sba(sv)", args);
}

/** The words for `busctl` that set the CPUs of a slice (`0-3,8`): a bit for each, the lowest first. */
export function cpusCall(path: string, cpus: string): string[] {
  const bytes: number[] = [];
  for (const range of cpus.split(",")) {
    const [first = Number.NaN, last = first] = range.split("-").map(Number);
    for (let cpu = first; cpu <= last; cpu++) {
      const at = Math.floor(cpu / 8);
      while (bytes.length <= at) bytes.push(0);
      bytes[at] = (bytes[at] ?? 0) | (1 << (cpu % 8));
    }
  }
  const property = ["AllowedCPUs", "ay", String(bytes.length), ...bytes.map(String)];
  return managerCall("SetUnitProperties", "sba(sv)", [unitOf(path), "true", "1", ...property]);
}

/** D-Bus' own "infinity". */
const INFINITY = "18446744073709551615";

function cpuProperties({ cpuShares, cpuQuota }: CgroupValues, version: 1 | 2): Property[] {
  const found: Property[] = [];
  if (cpuShares !== undefined) {
    const weight = version === 2 ? sharesToWeight(cpuShares) : cpuShares;
    found.push([version === 2 ? "CPUWeight" : "CPUShares", "t", String(weight)]);
  }
  if (cpuQuota !== undefined) {
    found.push(["CPUQuotaPerSecUSec", "t", quotaPerSecond(cpuQuota)]);
    found.push(["CPUQuotaPeriodUSec", "t", String(cpuQuota.period)]);
  }
  return found;
}

/** systemd counts in hundredths of a CPU: rounded up, so that a pod never gets less than it asked for. */
function quotaPerSecond({ quota, period }: { quota: number; period: number }): string {
  return quota < 0 ? INFINITY : String(Math.ceil((quota * 1_000_000) / period / 10_000) * 10_000);
}

function otherProperties({ memoryLimit, memoryMin, memoryLow, pids }: CgroupValues, version: 1 | 2): Property[] {
  const orInfinity = (value: number): string => (value < 0 ? INFINITY : String(value));
  const found: Property[] = [];
  if (memoryLimit !== undefined) {
    found.push([version === 2 ? "MemoryMax" : "MemoryLimit", "t", orInfinity(memoryLimit)]);
  }
  if (version === 2 && memoryMin !== undefined) found.push(["MemoryMin", "t", String(memoryMin)]);
  if (version === 2 && memoryLow !== undefined) found.push(["MemoryLow", "t", String(memoryLow)]);
  if (pids !== undefined) found.push(["TasksMax", "t", pids < 0 ? INFINITY : String(Math.max(1, pids))]);
  return found;
}
