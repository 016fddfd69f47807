import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import { sharesToWeight } from "../../model/cgroup-values.ts";
import type { CgroupValues } from "../../model/pod-cgroup-values.ts";
import type { Hierarchies } from "./hierarchy.ts";
import { readText } from "./hierarchy.ts";

/** One file to write, with the text that it gets. */
interface Setting {
  /** The controller that has the file. */
  readonly controller: string;
  readonly file: string;
  readonly text: string;
  /** The kernel may not have it, and nothing is lost then. */
  readonly optional?: boolean;
}

/** Writes the values into a cgroup that exists; answers what the kernel refused, one line each. */
export function writeValues(hierarchies: Hierarchies, path: string, values: CgroupValues): string[] {
  const settings = hierarchies.version === 1 ? settingsV1(values) : settingsV2(values);
  const problems: string[] = [];
  // In their order: a quota is refused or not depending on the period that is there.
  let postponed: Setting | undefined;
  for (const setting of settings) {
    const directory = directoryOf(hierarchies, setting.controller, path);
    if (directory === undefined) {
      if (setting.optional !== true) problems.push(`${setting.file}: there is no ${setting.controller} controller`);
      continue;
    }
    const error = write(join(directory, setting.file), setting);
    if (error === undefined) continue;
    if (setting.file === "cpu.cfs_period_us" && errnoOf(error) === "EINVAL") postponed = setting;
    else problems.push(`${setting.file}: ${messageOf(error)}`);
  }
  const directory = postponed && directoryOf(hierarchies, postponed.controller, path);
  if (postponed !== undefined && directory !== undefined) {
    const error = write(join(directory, postponed.file), postponed);
    if (error !== undefined) problems.push(`${postponed.file}: ${messageOf(error)}`);
  }
  return problems;
}

function write(file: string, { text, optional }: Setting): unknown {
  if (optional === true && !existsSync(file)) return undefined;
  try {
    writeFileSync(file, text);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Where a controller's files of this cgroup are; undefined when nobody has the controller. */
export function directoryOf(hierarchies: Hierarchies, controller: string, path: string): string | undefined {
  if (hierarchies.version === 2) return join(hierarchies.root, path);
  const mount = hierarchies.mounts.find(({ controllers }) => controllers.includes(controller));
  return mount && join(mount.mountpoint, path);
}

function settingsV1(values: CgroupValues): Setting[] {
  const { cpuShares, cpuQuota, memoryLimit, pids } = values;
  return [
    ...(cpuShares === undefined ? [] : [{ controller: "cpu", file: "cpu.shares", text: String(cpuShares) }]),
    ...(cpuQuota === undefined
      ? []
      : [
          { controller: "cpu", file: "cpu.cfs_period_us", text: String(cpuQuota.period), optional: cpuQuota.quota < 0 },
          { controller: "cpu", file: "cpu.cfs_quota_us", text: String(cpuQuota.quota), optional: cpuQuota.quota < 0 },
        ]),
    ...(memoryLimit === undefined
      ? []
      : [
          { controller: "memory", file: "memory.limit_in_bytes", text: String(memoryLimit), optional: memoryLimit < 0 },
        ]),
    ...pidsSetting(pids),
    ...hugepageSettings(values, "limit_in_bytes"),
  ];
}

function settingsV2(values: CgroupValues): Setting[] {
  const { cpuShares, cpuQuota, memoryLimit, memoryMin, memoryLow, pids, cpus } = values;
  const protection = (file: string, bytes: number | undefined): Setting[] =>
    bytes === undefined ? [] : [{ controller: "memory", file, text: String(bytes), optional: bytes === 0 }];
  const orMax = (value: number): string => (value < 0 ? "max" : String(value));
  return [
    ...(cpuShares === undefined
      ? []
      : [{ controller: "cpu", file: "cpu.weight", text: String(sharesToWeight(cpuShares)) }]),
    ...(cpuQuota === undefined
      ? []
      : [
          {
            controller: "cpu",
            file: "cpu.max",
            text: `${orMax(cpuQuota.quota)} ${cpuQuota.period}`,
            optional: cpuQuota.quota < 0,
          },
        ]),
    ...(memoryLimit === undefined
      ? []
      : [{ controller: "memory", file: "memory.max", text: orMax(memoryLimit), optional: memoryLimit < 0 }]),
    ...protection("memory.min", memoryMin),
    ...protection("memory.low", memoryLow),
    ...pidsSetting(pids),
    ...(cpus === undefined ? [] : [{ controller: "cpuset", file: "cpuset.cpus", text: cpus, optional: true }]),
    ...hugepageSettings(values, "max"),
  ];
}

/** No process at all would be a limit that nothing can start under: 0 is written as 1. */
function pidsSetting(pids: number | undefined): Setting[] {
  if (pids === undefined) return [];
  const text = pids < 0 ? "max" : String(Math.max(1, pids));
  return [{ controller: "pids", file: "pids.max", text, optional: pids < 0 }];
}

function hugepageSettings({ hugepages }: CgroupValues, ending: string): Setting[] {
  return Object.entries(hugepages ?? {}).flatMap(([size, bytes]) => {
    const setting = { controller: "hugetlb", text: String(bytes) };
    return [
      { ...setting, file: `hugetlb.${size}.${ending}`, optional: bytes === 0 },
      { ...setting, file: `hugetlb.${size}.rsvd.${ending}`, optional: true },
    ];
  });
}

/** Bytes of memory used by a container's cgroup, which the runtime named by its id in one way or another. */
export function readUsage(hierarchies: Hierarchies, path: string, containerId: string): number | undefined {
  const directory = directoryOf(hierarchies, "memory", path);
  if (directory === undefined || !existsSync(directory)) return undefined;
  const name = readdirSync(directory).find((entry) => entry.includes(containerId));
  const file = hierarchies.version === 1 ? "memory.usage_in_bytes" : "memory.current";
  const text = name === undefined ? undefined : readText(join(directory, name, file));
  return text === undefined ? undefined : Number(text);
}

/** Bytes of memory in a cgroup that the kernel cannot reclaim: all but the page cache; undefined if it is not there. */
export function readUnreclaimable(hierarchies: Hierarchies, path: string): number | undefined {
  const directory = directoryOf(hierarchies, "memory", path);
  if (directory === undefined) return undefined;
  const isOld = hierarchies.version === 1;
  const usage = readText(join(directory, isOld ? "memory.usage_in_bytes" : "memory.current"));
  const stat = readText(join(directory, "memory.stat"));
  if (usage === undefined || stat === undefined) return undefined;
  const of = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(stat)?.[1] ?? 0);
  const prefix = isOld ? "total_" : "";
  return Math.max(0, Number(usage) - of(`${prefix}inactive_file`) - of(`${prefix}active_file`));
}

/** What the kernel has now for cpu and memory; undefined when there is no such cgroup. */
export function readValues(hierarchies: Hierarchies, path: string): CgroupValues | undefined {
  const file = (controller: string, name: string): string | undefined => {
    const directory = directoryOf(hierarchies, controller, path);
    return directory === undefined ? undefined : readText(join(directory, name));
  };
  return hierarchies.version === 1 ? readV1(file) : readV2(file);
}

type Read = (controller: string, name: string) => string | undefined;

/** The kernel's way to say "no limit" in version 1 is a number near 2^63. */
const UNLIMITED_V1 = 2 ** 62;

function readV1(read: Read): CgroupValues | undefined {
  const shares = read("cpu", "cpu.shares");
  const memory = read("memory", "memory.limit_in_bytes");
  if (shares === undefined && memory === undefined) return undefined;
  const quota = read("cpu", "cpu.cfs_quota_us");
  const period = read("cpu", "cpu.cfs_period_us");
  return {
    ...(shares === undefined ? {} : { cpuShares: Number(shares) }),
    ...(quota === undefined || period === undefined
      ? {}
      : { cpuQuota: { quota: Number(quota), period: Number(period) } }),
    ...(memory === undefined ? {} : { memoryLimit: Number(memory) >= UNLIMITED_V1 ? -1 : Number(memory) }),
  };
}

function readV2(read: Read): CgroupValues | undefined {
  const weight = read("cpu", "cpu.weight");
  const memory = read("memory", "memory.max");
  if (weight === undefined && memory === undefined) return undefined;
  const [quota = "max", period = "100000"] = (read("cpu", "cpu.max") ?? "").split(" ");
  return {
    ...(weight === undefined ? {} : { cpuShares: Math.floor(((Number(weight) - 1) * 262_142) / 9999) + 2 }),
    cpuQuota: { quota: quota === "max" || quota === "" ? -1 : Number(quota), period: Number(period) },
    ...(memory === undefined ? {} : { memoryLimit: memory === "max" ? -1 : Number(memory) }),
  };
}
