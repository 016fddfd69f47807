import { readdirSync, readFileSync } from "node:fs";
import type { Metrics } from "./metrics.ts";
import { versionInfo } from "./version.ts";

/** Prometheus' number for an address space without a limit. */
const UNLIMITED_BYTES = 2 ** 64;
const PAGE_BYTES = 4096;

/** Declares version, start time and resources of the process, by the names of Kubernetes and Prometheus. */
export function declareProcessMetrics(metrics: Metrics, version: string): void {
  const { major = "", minor = "", buildDate = "", nodeVersion = "", platform = "" } = versionInfo();
  const about = { major, minor, git_version: version, git_commit: "", git_tree_state: "", build_date: buildDate };
  const build = { ...about, go_version: "", compiler: `node ${nodeVersion}`, platform };
  metrics.gaugeFrom("kubernetes_build_info", "Version of the program; always 1.", {
    labels: Object.keys(build),
    values: () => [[Object.values(build), 1]],
  });
  const gauge = (name: string, help: string, read: () => number | undefined): void =>
    metrics.gaugeFrom(`process_${name}`, help, { values: () => toReading(read()) });
  const counter = (name: string, help: string, read: () => number | undefined): void =>
    metrics.counterFrom(`process_${name}`, help, { values: () => toReading(read()) });
  gauge("start_time_seconds", "Start time of the process as Unix time.", () => performance.timeOrigin / 1000);
  gauge("resident_memory_bytes", "Resident memory of the process.", () => process.memoryUsage.rss());
  counter("cpu_seconds_total", "User and system CPU time of the process in seconds.", cpuSeconds);
  gauge("open_fds", "Number of open file descriptors.", () => entriesIn("/proc/self/fd"));
  gauge("max_fds", "Maximum number of open file descriptors.", () => limitOf("Max open files"));
  gauge("virtual_memory_bytes", "Virtual memory of the process.", virtualBytes);
  gauge("virtual_memory_max_bytes", "Maximum amount of virtual memory.", () => limitOf("Max address space"));
  counter("network_receive_bytes_total", "Number of bytes received over the network.", () => octets("InOctets"));
  counter("network_transmit_bytes_total", "Number of bytes sent over the network.", () => octets("OutOctets"));
}

function toReading(value: number | undefined): readonly (readonly [readonly string[], number])[] {
  return value === undefined ? [] : [[[], value]];
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function virtualBytes(): number | undefined {
  const pages = Number(read("/proc/self/statm").split(" ", 1)[0]);
  return pages > 0 ? pages * PAGE_BYTES : undefined;
}

function limitOf(name: string): number | undefined {
  const soft = new RegExp(`^${name}\\s+(\\S+)`, "m").exec(read("/proc/self/limits"))?.[1];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? UNLIMITED_BYTES : Number(soft);
}

/** Of the network namespace of the process, as Prometheus' client has it. */
function octets(name: string): number | undefined {
  const [names = "", values = ""] = read("/proc/self/net/netstat")
    .split("\n")
    .filter((line) => line.startsWith("IpExt:"));
  const at = names.split(" ").indexOf(name);
  return at < 0 ? undefined : Number(values.split(" ")[at]);
}

function entriesIn(path: string): number | undefined {
  try {
    return readdirSync(path).length;
  } catch {
    return undefined;
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
