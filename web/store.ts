import { computed, signal } from "@preact/signals";
import type { NodeUsageLine, PodUsageLine, UsageHistoryReport } from "../src/model/node-usage.ts";
import type { OverviewLine, PageHello, PageSection } from "../src/model/page-lines.ts";
import type { PodEvent, PodSummary } from "../src/model/step.ts";
import { follow, type StreamState } from "./stream.ts";

/** Samples that charts show, and sparklines. */
const MOST_SAMPLES = 300;
const MOST_BARS = 40;
const MOST_EVENTS = 500;

export const hello = signal<PageHello | undefined>(undefined);
export const state = signal<{ readonly kind: StreamState; readonly message: string }>({
  kind: "connecting",
  message: "",
});
export const pods = signal<ReadonlyMap<string, PodSummary>>(new Map());
export const events = signal<readonly PodEvent[]>([]);
export const node = signal<
  { readonly line: NodeUsageLine; readonly cores: number; readonly memoryBytes: number } | undefined
>(undefined);
export const podUsage = signal<ReadonlyMap<string, PodUsageLine>>(new Map());
/** The agent's clock minus that of this browser, in milliseconds. */
let offset = 0;
/** The agent's time, once a second. */
export const now = signal(Date.now());

export const troubled = computed(() => [...pods.value.values()].filter((pod) => toneOf(pod) === "bad"));

/** A series of samples with their times in seconds. */
export interface Series {
  readonly at: number[];
  readonly values: number[][];
}

/**
 * Node: CPU cores, memory bytes, received and sent bytes a second, pressure of CPU, memory and IO in percent, and bytes of
 * disks read and written a second.
 */
export const nodeSeries: Series = { at: [], values: [[], [], [], [], [], [], [], [], []] };
let lastLine: NodeUsageLine | undefined;
const bars = new Map<string, number[]>();
const traffic = new Map<string, { readonly received: number; readonly sent: number }>();

export function may(section: PageSection): boolean {
  return hello.value?.sections.includes(section) ?? false;
}

/** The last CPU usages of a pod, in billionths of a core. */
export function barsOf(uid: string): readonly number[] {
  return bars.get(uid) ?? [];
}

/** Bytes a second. */
export function trafficOf(uid: string): { readonly received: number; readonly sent: number } | undefined {
  return traffic.get(uid);
}

export type Tone = "good" | "busy" | "bad" | "done";

/** Whether a pod is healthy, on its way, needs attention, or has completed. */
export function toneOf(pod: Pick<PodSummary, "state" | "readyContainers" | "totalContainers">): Tone {
  if (/BackOff|Err|Failed|Error|OOM|Invalid|Unknown|Evicted/.test(pod.state)) return "bad";
  if (pod.state === "Running") return pod.readyContainers === pod.totalContainers ? "good" : "busy";
  return pod.state === "Succeeded" || pod.state === "Completed" ? "done" : "busy";
}

/** Follows the node for as long as the page is open. */
export function start(): void {
  follow<OverviewLine>("stream", {
    line: apply,
    state: (kind, message = "") => {
      if (state.value.kind !== kind || state.value.message !== message) state.value = { kind, message };
    },
  });
  setInterval(() => {
    if (!document.hidden) now.value = Date.now() + offset;
  }, 1000);
}

function apply(line: OverviewLine): void {
  if (line.hello !== undefined) {
    hello.value = line.hello;
    offset = line.hello.now - Date.now();
    now.value = line.hello.now;
    // A stream begins with everything.
    pods.value = new Map();
    events.value = [];
    podUsage.value = new Map();
  }
  if (line.pods !== undefined) {
    const next = new Map(pods.value);
    for (const pod of line.pods.set) next.set(pod.uid, pod);
    for (const uid of line.pods.gone) next.delete(uid);
    pods.value = next;
  }
  if (line.history !== undefined) applyHistory(line.history);
  if (line.events !== undefined) events.value = merged(events.value, line.events);
  if (line.usage !== undefined) applyUsage(line.usage);
}

/** An event that came again replaces what was known of it. Newest first. */
export function merged(known: readonly PodEvent[], news: readonly PodEvent[]): readonly PodEvent[] {
  const byKey = new Map(known.map((event) => [keyOf(event), event]));
  for (const event of news) byKey.set(keyOf(event), event);
  return [...byKey.values()].sort((a, b) => b.sequence - a.sequence).slice(0, MOST_EVENTS);
}

function keyOf({ pod, container, type, reason, message, first }: PodEvent): string {
  return JSON.stringify([pod.uid, container, type, reason, message, first]);
}

/** Fills the charts with what the agent kept, from the last sample that was seen here. */
function applyHistory({ node: lines, pods: usages }: UsageHistoryReport): void {
  const last = nodeSeries.at.at(-1) ?? 0;
  // The first one has nothing before it that a rate could be made of.
  for (const [index, line] of lines.entries()) if (index > 0 && line.at / 1000 > last) addLine(lines[index - 1], line);
  for (const [uid, usage] of Object.entries(usages)) {
    if ((bars.get(uid)?.length ?? 0) < usage.length) bars.set(uid, [...usage]);
  }
}

function addLine(before: NodeUsageLine | undefined, line: NodeUsageLine): void {
  const rate = rateOf(before, line);
  push(nodeSeries, line.at / 1000, [
    (line.nanoCores ?? 0) / 1e9,
    line.workingSetBytes,
    rate?.received ?? 0,
    rate?.sent ?? 0,
    line.pressure?.cpu ?? 0,
    line.pressure?.memory ?? 0,
    line.pressure?.io ?? 0,
    ...diskRates(before, line),
  ]);
  lastLine = line;
}

function applyUsage({ node: line, cores, memoryBytes, pods: changed, gone }: NonNullable<OverviewLine["usage"]>) {
  if (lastLine === undefined || line.at > lastLine.at) addLine(lastLine, line);
  node.value = { line, cores, memoryBytes };
  const next = new Map(podUsage.value);
  for (const pod of changed) {
    const last = next.get(pod.uid);
    const flow =
      last?.network && pod.network && rateOf({ ...last, network: last.network }, { ...pod, network: pod.network });
    if (flow) traffic.set(pod.uid, flow);
    next.set(pod.uid, pod);
  }
  const changedUids = new Set(changed.map(({ uid }) => uid));
  for (const uid of gone) for (const map of [next, bars, traffic]) map.delete(uid);
  for (const [uid, { nanoCores = 0 }] of next) {
    const own = bars.get(uid) ?? [];
    own.push(nanoCores);
    if (own.length > MOST_BARS) own.shift();
    bars.set(uid, own);
    if (!changedUids.has(uid)) traffic.delete(uid);
  }
  podUsage.value = next;
}

function diskRates(before: NodeUsageLine | undefined, after: NodeUsageLine): readonly [number, number] {
  const [from, to] = [before?.diskTraffic, after.diskTraffic];
  const seconds = (after.at - (before?.at ?? after.at)) / 1000;
  if (from === undefined || to === undefined || seconds <= 0) return [0, 0];
  const of = (then: number, now_: number): number => Math.max(0, now_ - then) / seconds;
  return [of(from.readBytes, to.readBytes), of(from.writtenBytes, to.writtenBytes)];
}

interface Counted {
  readonly at: number;
  readonly network: { readonly rxBytes: number; readonly txBytes: number };
}

/** Bytes a second between two samples. */
export function rateOf(before: Counted | undefined, after: Counted): { received: number; sent: number } | undefined {
  if (before === undefined || after.at <= before.at) return undefined;
  const seconds = (after.at - before.at) / 1000;
  const of = (from: number, to: number): number => Math.max(0, to - from) / seconds;
  return {
    received: of(before.network.rxBytes, after.network.rxBytes),
    sent: of(before.network.txBytes, after.network.txBytes),
  };
}

/** Adds a sample; the oldest is dropped when there are too many, and one of the same time is not added twice. */
export function push(series: Series, at: number, values: readonly number[]): void {
  const last = series.at.at(-1);
  if (last !== undefined && at <= last) return;
  series.at.push(at);
  series.values.forEach((list, index) => list.push(values[index] ?? 0));
  if (series.at.length <= MOST_SAMPLES) return;
  series.at.shift();
  for (const list of series.values) list.shift();
}
