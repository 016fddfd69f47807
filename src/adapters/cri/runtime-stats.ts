import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import type { CgroupUsage, InterfaceUsage, PressureStall } from "../../model/usage.ts";
import type { CallOptions, GrpcChannel } from "../grpc/channel.ts";
import type { RuntimeMetrics, RuntimeStatsPort, RuntimeUsage } from "../runtime/port.ts";
import {
  type ContainerStats,
  type LinuxPodSandboxStats,
  type Metric,
  MetricType,
  type PsiStats,
  type UInt64Value,
} from "./generated/cri.ts";
import { runtimeService as rpc } from "./methods.ts";

const NANOS_PER_MS = 1_000_000n;
/** What a help text, a label or its value may take, in bytes: runtimes and the images in them choose these. */
const TEXT_BYTES = 1024;
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Statistics and metrics as a CRI runtime measures them. */
export class CriStats implements RuntimeStatsPort {
  constructor(
    private readonly channel: GrpcChannel,
    private readonly limit: (signal: AbortSignal) => CallOptions,
  ) {}

  async usages({ signal }: Abortable): Promise<readonly RuntimeUsage[]> {
    const { stats } = await this.channel.unary(rpc.listPodSandboxStats, {}, this.limit(signal));
    return stats.flatMap(({ attributes, linux }) => {
      if (attributes === undefined || linux === undefined) return [];
      return [fromSandboxStats(attributes.id, linux), ...linux.containers.flatMap(fromContainer)];
    });
  }

  async metrics({ signal }: Abortable): Promise<RuntimeMetrics> {
    const [{ descriptors }, { podMetrics }] = await Promise.all([
      this.channel.unary(rpc.listMetricDescriptors, {}, this.limit(signal)),
      this.channel.unary(rpc.listPodSandboxMetrics, {}, this.limit(signal)),
    ]);
    const families = descriptors.flatMap(({ name, help, labelKeys }) => {
      const isFine = METRIC_NAME.test(name) && labelKeys.every((key) => LABEL_NAME.test(key));
      return isFine ? [{ name, help: clip(help, TEXT_BYTES), labels: labelKeys }] : [];
    });
    const all = podMetrics.flatMap(({ metrics, containerMetrics }) => [
      ...metrics,
      ...containerMetrics.flatMap((container) => container.metrics),
    ]);
    return { families, samples: all.map(fromMetric) };
  }
}

function fromSandboxStats(id: string, { cpu, memory, network, process, io }: LinuxPodSandboxStats): RuntimeUsage {
  const interfaces = network?.interfaces ?? [];
  const all = network?.defaultInterface === undefined ? interfaces : [network.defaultInterface, ...interfaces];
  const count = process?.processCount;
  return {
    id,
    usage: { ...usageOf({ cpu, memory, io }), ...(count && { processes: Number(count.value) }) },
    ...(network && { network: all.map(fromInterface) }),
  };
}

function fromContainer({ attributes, cpu, memory, swap, io }: ContainerStats): readonly RuntimeUsage[] {
  if (attributes === undefined) return [];
  const usage = usageOf({ cpu, memory, io });
  const swapped = optional("swap", swap?.swapUsageBytes);
  return [{ id: attributes.id, usage: usage.memory ? { ...usage, memory: { ...usage.memory, ...swapped } } : usage }];
}

function usageOf({ cpu, memory, io }: Pick<ContainerStats, "cpu" | "memory" | "io">): CgroupUsage {
  const ioStall = stallOf(io?.psi);
  const workingSet = numberOf(memory?.workingSetBytes);
  const available = memory?.availableBytes;
  const [cpuStall, memoryStall] = [stallOf(cpu?.psi), stallOf(memory?.psi)];
  return {
    ...(cpu?.usageCoreNanoSeconds && {
      cpu: { usageNanos: numberOf(cpu.usageCoreNanoSeconds), ...(cpuStall && { psi: cpuStall }) },
    }),
    ...(memory && {
      memory: {
        usage: numberOf(memory.usageBytes),
        workingSet,
        rss: numberOf(memory.rssBytes),
        pageFaults: numberOf(memory.pageFaults),
        majorPageFaults: numberOf(memory.majorPageFaults),
        swap: 0,
        ...(available !== undefined && available.value > 0n && { limit: workingSet + Number(available.value) }),
        ...(memoryStall && { psi: memoryStall }),
      },
    }),
    ...(ioStall && { io: { psi: ioStall } }),
  };
}

function fromInterface(one: {
  readonly name: string;
  readonly rxBytes: UInt64Value | undefined;
  readonly rxErrors: UInt64Value | undefined;
  readonly txBytes: UInt64Value | undefined;
  readonly txErrors: UInt64Value | undefined;
}): InterfaceUsage {
  return {
    name: clip(one.name, TEXT_BYTES),
    rxBytes: numberOf(one.rxBytes),
    rxPackets: 0,
    rxErrors: numberOf(one.rxErrors),
    rxDropped: 0,
    txBytes: numberOf(one.txBytes),
    txPackets: 0,
    txErrors: numberOf(one.txErrors),
    txDropped: 0,
  };
}

function fromMetric({ name, timestamp, metricType, labelValues, value }: Metric): RuntimeMetrics["samples"][number] {
  return {
    name,
    type: metricType === MetricType.COUNTER ? "counter" : "gauge",
    labels: labelValues.map((text) => clip(text, TEXT_BYTES)),
    value: numberOf(value),
    at: Number(timestamp / NANOS_PER_MS),
  };
}

function stallOf(psi: PsiStats | undefined): PressureStall | undefined {
  if (psi?.Some === undefined || psi.Full === undefined) return undefined;
  const times = ({ Total, Avg10, Avg60, Avg300 }: NonNullable<PsiStats["Some"]>) => {
    return { total: Number(Total), avg10: Avg10, avg60: Avg60, avg300: Avg300 };
  };
  return { some: times(psi.Some), full: times(psi.Full) };
}

function optional(key: "swap", value: UInt64Value | undefined): { readonly swap?: number } {
  return value === undefined ? {} : { [key]: Number(value.value) };
}

function numberOf(value: UInt64Value | undefined): number {
  return Number(value?.value ?? 0n);
}
