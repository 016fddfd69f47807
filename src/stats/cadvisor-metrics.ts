import { CONTAINER_COLUMNS } from "./cadvisor-columns.ts";
import type { Column } from "./cgroup-column.ts";
import { type CgroupRow, rowLabels } from "./cgroup-rows.ts";
import { familyHead, labelText, type MetricFamily } from "./exposition.ts";
import type { MachineDescription } from "./machine-description.ts";
import { type ListedMetrics, runtimeMetricsText } from "./runtime-metrics.ts";

const VERSION: MetricFamily = {
  name: "cadvisor_version_info",
  type: "gauge",
  help: "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.",
};
const CONTAINER_ERROR: MetricFamily = {
  name: "container_scrape_error",
  type: "gauge",
  help: "1 if there was an error while getting container metrics, 0 otherwise",
};
const MACHINE_ERROR: MetricFamily = {
  name: "machine_scrape_error",
  type: "gauge",
  help: "1 if there was an error while getting machine metrics, 0 otherwise.",
};

interface MachineColumn extends MetricFamily {
  /** Values by their further labels. */
  values(machine: MachineDescription): Readonly<Record<string, number>>;
}

const machineGauge = (name: string, help: string, values: MachineColumn["values"]): MachineColumn => {
  return { name, type: "gauge", help, values };
};

const MACHINE: readonly MachineColumn[] = [
  machineGauge("machine_cpu_books", "Number of CPU books.", () => ({ "": 0 })),
  machineGauge("machine_cpu_cores", "Number of logical CPU cores.", ({ cores }) => ({ "": cores })),
  machineGauge("machine_cpu_drawers", "Number of CPU drawers.", () => ({ "": 0 })),
  machineGauge("machine_cpu_physical_cores", "Number of physical CPU cores.", (m) => ({ "": m.physicalCores })),
  machineGauge("machine_cpu_sockets", "Number of CPU sockets.", ({ sockets }) => ({ "": sockets })),
  machineGauge("machine_memory_bytes", "Amount of memory installed on the machine.", (m) => ({ "": m.memoryBytes })),
  machineGauge("machine_nvm_avg_power_budget_watts", "NVM power budget.", () => ({ "": 0 })),
  machineGauge(
    "machine_nvm_capacity",
    "NVM capacity value labeled by NVM mode (memory mode or app direct mode).",
    () => ({ 'mode="app_direct_mode"': 0, 'mode="memory_mode"': 0 }),
  ),
  machineGauge("machine_swap_bytes", "Amount of swap memory available on the machine.", (m) => ({ "": m.swapBytes })),
];

/** What the page is made from. */
export interface CadvisorFacts {
  readonly machine: MachineDescription;
  readonly rows: Iterable<CgroupRow>;
  /** Wall-clock milliseconds. */
  readonly now: number;
}

/**
 * The page `/metrics/cadvisor`, a family at a time, by the names and labels of cAdvisor in the kubelet. Pure: nothing is
 * read, and no more than a family is in memory beside the labels.
 */
export function* cadvisorMetrics({ machine, rows, now }: CadvisorFacts): Generator<string> {
  const labelled = [...rows].map((row) => ({ row, labels: rowLabels(row), at: ` ${Math.floor(row.usage.at.wall)}\n` }));
  yield versionText(machine);
  for (const column of CONTAINER_COLUMNS) {
    const text = columnText(column, labelled, now);
    if (text !== "") yield familyHead(column) + text;
  }
  yield `${familyHead(CONTAINER_ERROR)}${CONTAINER_ERROR.name} 0\n`;
  yield machineText(machine);
}

/** The same page where the runtime lists the metrics of pods and containers. */
export function* runtimePage(machine: MachineDescription, listed: ListedMetrics): Generator<string> {
  yield versionText(machine);
  yield* runtimeMetricsText(listed);
  yield machineText(machine);
}

function columnText(
  column: Column,
  rows: readonly { readonly row: CgroupRow; readonly labels: string; readonly at: string }[],
  now: number,
): string {
  const { name, time = "sample" } = column;
  let text = "";
  for (const { row, labels, at } of rows) {
    const end = time === "sample" ? at : time === "none" ? "\n" : ` ${Math.floor(now)}\n`;
    column.each(
      row,
      (value, extra) => {
        text += `${name}{${labels}${extra === undefined ? "" : `,${extra}`}} ${value}${end}`;
      },
      now,
    );
  }
  return text;
}

function versionText({ kernel, osImage, version }: MachineDescription): string {
  const labels = labelText({
    cadvisorRevision: "",
    cadvisorVersion: version,
    dockerVersion: "",
    kernelVersion: kernel,
    osVersion: osImage,
  });
  return `${familyHead(VERSION)}${VERSION.name}{${labels}} 1\n`;
}

function machineText(machine: MachineDescription): string {
  const { bootId, machineId, systemUuid } = machine;
  const labels = labelText({ boot_id: bootId, machine_id: machineId, system_uuid: systemUuid });
  let text = "";
  for (const column of MACHINE) {
    text += familyHead(column);
    for (const [extra, value] of Object.entries(column.values(machine))) {
      text += `${column.name}{${labels}${extra === "" ? "" : `,${extra}`}} ${value} ${Math.floor(machine.at)}\n`;
    }
  }
  return `${text}${familyHead(MACHINE_ERROR)}${MACHINE_ERROR.name} 0\n`;
}
