import { bytesWords, printable } from "../lib/table.ts";
import { groupCpus } from "../model/machine-topology.ts";
import type { CpuReport, Holding, MemoryReport, TopologyReport } from "../model/topology-report.ts";

/** Letters for the containers with CPUs of their own, in the order of the list below the drawing. */
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const MARKS: Readonly<Record<CpuReport["use"], string>> = { any: ".", shared: ".", reserved: "r", exclusive: "#" };

/** Draws the machine as text: one line a group of cores, each core as the marks of its threads. */
export function renderTopology(report: TopologyReport): string {
  const { cpu, memory, topology, scope } = report.policies;
  const letters = lettersOf(report.holdings);
  const sockets = [...groupCpus(report.cpus, "socket").keys()];
  const lines = [
    `CPU policy ${cpu}, memory policy ${memory}, topology policy ${topology} (scope ${scope})`,
    "",
    ...sockets.flatMap((socket) => socketLines(report, socket, letters)),
    ...nodesWithoutCpus(report).flatMap((node) => nodeLines(report, node, letters)),
    ...(report.offline.length > 0 ? [`offline CPUs: ${report.offline.join(" ")}`] : []),
    "",
    ...legend(report),
    // A plugin may name its devices as it likes.
    ...[...holdingLines(report.holdings, letters), ...deviceLines(report)].map(printable),
  ];
  return `${lines
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trimEnd()}\n`;
}

type Letters = ReadonlyMap<number, string>;

function socketLines(report: TopologyReport, socket: number, letters: Letters): readonly string[] {
  const nodes = new Set(report.cpus.filter((cpu) => cpu.socket === socket).map(({ numa }) => numa));
  return [
    `socket ${socket}`,
    ...[...nodes].flatMap((node) => nodeLines(report, node, letters).map((line) => `  ${line}`)),
  ];
}

function nodeLines(report: TopologyReport, id: number, letters: Letters): readonly string[] {
  const node = report.nodes.find((each) => each.id === id);
  const cpus = report.cpus.filter(({ numa }) => numa === id);
  const caches = [...groupCpus(cpus, "uncore").keys()];
  const memory = (node?.memory ?? []).filter(({ type, total }) => type === "memory" || total > 0).map(memoryText);
  return [
    `NUMA node ${id}: ${memory.join(", ")}`,
    ...caches.map((cache) => {
      const cores = [
        ...groupCpus(
          cpus.filter(({ uncore }) => uncore === cache),
          "core",
        ),
      ];
      const drawn = cores.map(
        ([core, threads]) => `${core}[${[...threads].map((cpu) => markOf(report, cpu, letters)).join("")}]`,
      );
      return `  L3 ${cache}: ${drawn.join(" ")}`;
    }),
  ];
}

function memoryText({ type, total, free }: MemoryReport): string {
  const left = free === undefined ? "" : ` (${bytesWords(free)} free)`;
  return `${type} ${bytesWords(total)}${left}`;
}

function markOf({ cpus }: TopologyReport, cpu: number, letters: Letters): string {
  const use = cpus.find((each) => each.cpu === cpu)?.use ?? "any";
  return use === "exclusive" ? (letters.get(cpu) ?? MARKS.exclusive) : MARKS[use];
}

function nodesWithoutCpus({ nodes, cpus }: TopologyReport): readonly number[] {
  return nodes.map(({ id }) => id).filter((id) => !cpus.some(({ numa }) => numa === id));
}

function lettersOf(holdings: readonly Holding[]): Letters {
  const withCpus = holdings.filter(({ cpus }) => cpus.length > 0);
  return new Map(withCpus.flatMap(({ cpus }, at) => cpus.map((cpu) => [cpu, LETTERS[at] ?? MARKS.exclusive] as const)));
}

function legend({ cpus }: TopologyReport): readonly string[] {
  const isStatic = cpus.some(({ use }) => use !== "any");
  return [
    isStatic
      ? ". shared by containers without CPUs of their own   r reserved   A-z of one container or pod"
      : ". shared by all",
  ];
}

function holdingLines(holdings: readonly Holding[], letters: Letters): readonly string[] {
  return holdings.map((holding) => {
    const { namespace, pod, container, cpus, isShared, memory } = holding;
    const letter = letters.get(cpus[0] ?? -1) ?? " ";
    const name = `${namespace}/${pod || holding.uid} ${container}`;
    const parts = [
      ...(cpus.length > 0 ? [`CPUs ${cpus.join(" ")}${isShared === true ? " shared within the pod" : ""}`] : []),
      ...memory.map(({ type, bytes, nodes }) => `${type} ${bytesWords(bytes)} on NUMA node ${nodes.join(", ")}`),
    ];
    return `${letter} ${name}: ${parts.join("; ")}`;
  });
}

function deviceLines({ devices }: TopologyReport): readonly string[] {
  if (devices.length === 0) return [];
  const lines = devices.map(({ resource, id, nodes, isHealthy, holder }) => {
    const at = nodes.length === 0 ? "" : ` on NUMA node ${nodes.join(", ")}`;
    const who = holder === undefined ? "free" : `${holder.namespace}/${holder.pod} ${holder.container}`;
    return `  ${resource} ${id}${at}: ${isHealthy ? who : `unhealthy, ${who}`}`;
  });
  return ["", "devices", ...lines];
}
