import { ago, bytesWords, type Cell, paint, table } from "../lib/table.ts";
import type { NodeExplanation, RankingReport, SignalReport, ThresholdReport } from "../model/node-pressure.ts";
import type { RenderOptions } from "./render-explanation.ts";

/** How many pods of a ranking and how many evictions are shown; the rest is in `-o json`. */
const SHOWN_PODS = 10;
const SHOWN_EVICTIONS = 5;

const RESOURCE_WORDS: Readonly<Record<string, string>> = {
  memory: "If memory were short",
  "ephemeral-storage": "If disk space were short",
  inodes: "If inodes were short",
  pids: "If process ids were short",
};

/** The node on one screen: its pressure, its signals, and who would be evicted first. */
export function renderNode(node: NodeExplanation, how: RenderOptions): string {
  const { conditions } = node;
  const pressure: Cell =
    conditions.length === 0 ? { text: "none", style: "green" } : { text: conditions.join(", "), style: "red" };
  const overview = table(
    [
      ["Node", { text: node.node, style: "bold" }],
      ["Pressure", pressure],
    ],
    { color: how.color },
  );
  const sections = [
    overview,
    section("Signals", `${signals(node.signals, how)}${missing(node.unmeasured, how)}`, how),
    ...node.rankings.map((ranking) =>
      section(RESOURCE_WORDS[ranking.resource] ?? ranking.resource, pods(ranking, how), how),
    ),
    section("Evictions", evictions(node, how), how),
  ];
  return sections.filter((text) => text !== "").join("\n");
}

function section(title: string, body: string, { color }: RenderOptions): string {
  return body === "" ? "" : `${paint(title, "bold", color)}\n${body}`;
}

function signals(all: readonly SignalReport[], { color }: RenderOptions): string {
  const rows = all.map((one): Cell[] => {
    const isMet = one.thresholds.some(({ metForMs }) => metForMs !== undefined);
    return [
      `  ${one.signal}`,
      { text: amount(one.available, one.unit), style: isMet ? "red" : "bold" },
      { text: `of ${amount(one.capacity, one.unit)}`, style: "dim" },
      trend(one),
      one.thresholds.map((threshold) => thresholdWords(threshold, one.unit)).join(", ") || "no threshold",
    ];
  });
  return table(rows, { color });
}

function missing(all: readonly string[], { color }: RenderOptions): string {
  const words: Cell = { text: "not measured: its thresholds are not acted on", style: "yellow" };
  return table(
    all.map((signal): Cell[] => [`  ${signal}`, words]),
    { color },
  );
}

function trend({ perSecond, unit }: SignalReport): string {
  const rounded = Math.round(perSecond ?? 0);
  if (rounded === 0) return "steady";
  return `${rounded > 0 ? "+" : "-"}${amount(Math.abs(rounded), unit)}/s`;
}

function thresholdWords({ kind, value, graceMs, metForMs }: ThresholdReport, unit: SignalReport["unit"]): string {
  const grace = kind === "soft" ? ` for ${ago(graceMs)}` : "";
  const met = metForMs === undefined ? "" : ` (met for ${ago(metForMs)})`;
  return `${kind} below ${amount(value, unit)}${grace}${met}`;
}

function pods({ pods: ranked, unit }: RankingReport, { color }: RenderOptions): string {
  const rows = ranked
    .slice(0, SHOWN_PODS)
    .map((pod, place): Cell[] => [
      `  ${place + 1}.`,
      `${pod.namespace}/${pod.name}`,
      `priority ${pod.priority}`,
      pod.usage === undefined ? "" : amount(pod.usage, unit),
      { text: pod.why, style: "dim" },
    ]);
  return table(rows, { color });
}

function evictions({ evictions: made }: NodeExplanation, { now, color }: RenderOptions): string {
  const rows = made
    .slice(-SHOWN_EVICTIONS)
    .map(({ at, pod, signal, message }): Cell[] => [
      `  ${ago(Math.max(0, now - at))}`,
      `${pod.namespace}/${pod.name}`,
      signal,
      message.trim(),
    ]);
  return table(rows, { color });
}

function amount(value: number, unit: SignalReport["unit"]): string {
  return unit === "bytes" ? bytesWords(value) : String(value);
}
