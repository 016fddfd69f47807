import { labelText } from "./exposition.ts";

/** Metrics of pods and containers as the runtime lists them. */
export interface ListedMetrics {
  readonly families: readonly { readonly name: string; readonly help: string; readonly labels: readonly string[] }[];
  readonly samples: readonly {
    readonly name: string;
    readonly type: "counter" | "gauge";
    /** In the order of the family's labels. */
    readonly labels: readonly string[];
    readonly value: number;
    /** Wall-clock milliseconds. */
    readonly at: number;
  }[];
}

/**
 * The families of a runtime as text, one at a time. A sample that has no family, or another number of labels, is left
 * out, as in Kubernetes; one with the labels of an earlier sample too, for a page with both would be read by nobody.
 */
export function* runtimeMetricsText({ families, samples }: ListedMetrics): Generator<string> {
  const byName = new Map<string, ListedMetrics["samples"][number][]>();
  for (const sample of samples) {
    const known = byName.get(sample.name);
    if (known === undefined) byName.set(sample.name, [sample]);
    else known.push(sample);
  }
  const shown = new Set<string>();
  for (const { name, help, labels } of families) {
    const own = (byName.get(name) ?? []).filter((sample) => sample.labels.length === labels.length);
    if (own.length === 0 || shown.has(name)) continue;
    shown.add(name);
    const lines = new Map(own.map((sample) => [lineLabels(labels, sample.labels), sample]));
    let text = `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${own[0]?.type}\n`;
    for (const [of, { value, at }] of lines) text += `${name}${of} ${value}${at > 0 ? ` ${at}` : ""}\n`;
    yield text;
  }
}

function lineLabels(names: readonly string[], values: readonly string[]): string {
  const pairs = names.map((name, at) => [name, values[at] ?? ""] as const);
  return pairs.length === 0 ? "" : `{${labelText(Object.fromEntries(pairs))}}`;
}
