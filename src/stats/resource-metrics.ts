import { metricsText, type Sample, type ScrapedMetric } from "../lib/metrics-text.ts";
import type { ContainerSample, NodeSample, PodSample, UsageSample } from "./samples.ts";

type Labels = Sample["labels"];

const SCRAPE_ERROR = "1 if there was an error while getting container metrics, 0 otherwise";
const NOT_WINDOWS = "Reported only on non-windows systems";

/** What has a usage, with the labels that name it. */
interface Subject {
  readonly labels: Labels;
  readonly usage: UsageSample;
}

/** The page `/metrics/resource`, which metrics-server scrapes, in the names of Kubernetes. Pure. */
export function resourceMetrics(
  node: NodeSample | undefined,
  pods: readonly PodSample[],
  { showsHidden }: { readonly showsHidden: boolean } = { showsHidden: false },
): string {
  const nodes: readonly Subject[] = node === undefined ? [] : [{ labels: [], usage: node.usage }];
  const containers = pods.flatMap((pod) => pod.containers.map((container) => ({ pod, container })));
  const ofContainers = containers.map(({ pod, container }): Subject => {
    return { labels: [["container", container.name], ...namesOf(pod)], usage: container.usage };
  });
  const ofPods = pods.map((pod): Subject => ({ labels: namesOf(pod), usage: pod.usage }));
  const swap = node === undefined ? [] : [swapOf(node)];
  const error = [{ labels: [], value: node === undefined ? 1 : 0 }];
  return metricsText([
    cpu("container_cpu_usage_seconds_total", "container", ofContainers),
    workingSet("container_memory_working_set_bytes", "container", ofContainers),
    started(containers),
    gauge("container_swap_limit_bytes", `[ALPHA] Current amount of the container swap limit in bytes. ${NOT_WINDOWS}`, {
      of: ofContainers,
      value: ({ memory }) => memory?.swapLimit,
    }),
    gauge("container_swap_usage_bytes", `[ALPHA] Current amount of the container swap usage in bytes. ${NOT_WINDOWS}`, {
      of: ofContainers,
      value: ({ memory }) => memory?.swap,
    }),
    cpu("node_cpu_usage_seconds_total", "node", nodes),
    workingSet("node_memory_working_set_bytes", "node", nodes),
    metric("node_swap_usage_bytes", `[ALPHA] Current swap usage of the node in bytes. ${NOT_WINDOWS}`, swap),
    cpu("pod_cpu_usage_seconds_total", "pod", ofPods),
    workingSet("pod_memory_working_set_bytes", "pod", ofPods),
    gauge("pod_swap_usage_bytes", `[ALPHA] Current amount of the pod swap usage in bytes. ${NOT_WINDOWS}`, {
      of: ofPods,
      value: ({ memory }) => memory?.swap,
    }),
    metric("resource_scrape_error", `[STABLE] ${SCRAPE_ERROR}`, error),
    ...(showsHidden ? [metric("scrape_error", `[ALPHA] (Deprecated since 1.29.0) ${SCRAPE_ERROR}`, error)] : []),
  ]);
}

function namesOf({ name, namespace }: PodSample): Labels {
  return [
    ["namespace", namespace],
    ["pod", name],
  ];
}

function metric(name: string, help: string, samples: readonly Sample[]): ScrapedMetric {
  return { name, help, type: "gauge", collect: () => samples };
}

function gauge(
  name: string,
  help: string,
  { of, value }: { readonly of: readonly Subject[]; value(usage: UsageSample): number | undefined },
): ScrapedMetric {
  const samples = of.flatMap(({ labels, usage }): Sample[] => {
    const found = value(usage);
    return found === undefined ? [] : [{ labels, value: found, at: usage.at.wall }];
  });
  return metric(name, help, samples);
}

function cpu(name: string, what: string, of: readonly Subject[]): ScrapedMetric {
  const help = `[STABLE] Cumulative cpu time consumed by the ${what} in core-seconds`;
  const value = ({ cpu: used }: UsageSample): number | undefined => used && used.usageNanos / 1e9;
  return { ...gauge(name, help, { of, value }), type: "counter" };
}

function workingSet(name: string, what: string, of: readonly Subject[]): ScrapedMetric {
  const help = `[STABLE] Current working set of the ${what} in bytes`;
  return gauge(name, help, { of, value: ({ memory }) => memory?.workingSet });
}

function started(containers: readonly { pod: PodSample; container: ContainerSample }[]): ScrapedMetric {
  const samples = containers.flatMap(({ pod, container: { name, startedAt } }): Sample[] => {
    const labels: Labels = [["container", name], ...namesOf(pod)];
    return startedAt > 0 ? [{ labels, value: startedAt / 1000 }] : [];
  });
  const help = "[STABLE] Start time of the container since unix epoch in seconds";
  return metric("container_start_time_seconds", help, samples);
}

function swapOf({ swap, usage }: NodeSample): Sample {
  return { labels: [], value: swap.total - swap.free, at: usage.at.wall };
}
