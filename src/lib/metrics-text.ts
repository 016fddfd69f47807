/** The content type of Prometheus' text format. */
export const TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** One line of the text format. */
export interface Sample {
  readonly labels: readonly (readonly [string, string | number])[];
  readonly value: number;
  /** When it was measured, in wall-clock milliseconds; absent means at the scrape. */
  readonly at?: number;
  /** Appended to the metric's name: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string;
}

/** A metric as it is scraped. */
export interface ScrapedMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  collect(): readonly Sample[];
}

/** The metrics as a page of Prometheus' text format. */
export function metricsText(metrics: Iterable<ScrapedMetric>): string {
  let page = "";
  for (const { name, help, type, collect } of metrics) {
    page += `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
    for (const { labels, value, suffix = "", at } of collect()) {
      const time = at === undefined ? "" : ` ${Math.floor(at)}`;
      page += `${name}${suffix}${labelText(labels)} ${numberText(value)}${time}\n`;
    }
  }
  return page;
}

function labelText(labels: Sample["labels"]): string {
  if (labels.length === 0) return "";
  return `{${labels.map(([name, value]) => `${name}="${escapedLabel(value)}"`).join(",")}}`;
}

/** The value of a label as it stands between its quotes. */
export function escapedLabel(value: string | number): string {
  if (typeof value === "number") return numberText(value);
  return /[\\"\n]/.test(value) ? value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n") : value;
}

/**
 * The bound of a bucket as Prometheus' library for Go writes it, from a million on with an exponent: buckets of several
 * programs are only summed up if their labels are the same.
 */
export function bucketText(bound: number): string {
  const text = numberText(bound);
  if (!Number.isFinite(bound) || (Math.abs(bound) < 1e6 && (bound === 0 || Math.abs(bound) >= 1e-4))) return text;
  const [digits = "", exponent = ""] = bound.toExponential().split("e");
  return `${digits}e${exponent.replace(/^([+-])(\d)$/, "$10$2")}`;
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}
