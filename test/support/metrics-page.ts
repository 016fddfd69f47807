/** One series of a page in Prometheus' text format. */
export interface ParsedSeries {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Milliseconds; undefined without a time. */
  readonly at: number | undefined;
}

const SERIES = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: (\d+))?$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The series of a page by name and labels, whatever the order of these. */
export function parseMetrics(page: string): Map<string, ParsedSeries> {
  const found = new Map<string, ParsedSeries>();
  for (const line of page.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [, name = "", text = "", value = "", at] = SERIES.exec(line) ?? [];
    if (name === "") throw new Error(`no series: ${line}`);
    const pairs = [...text.matchAll(LABEL)].map(([, key = "", of = ""]) => [key, of] as const).sort();
    const labels = Object.fromEntries(pairs);
    const key = `${name}${JSON.stringify(pairs)}`;
    found.set(key, { name, labels, value: Number(value), at: at === undefined ? undefined : Number(at) });
  }
  return found;
}

/** The names of labels of each metric, and the types of families, of a page. */
export function shapeOf(page: string): { labels: Map<string, string>; types: Map<string, string> } {
  const labels = new Map<string, string>();
  for (const { name, labels: of } of parseMetrics(page).values()) labels.set(name, Object.keys(of).sort().join(","));
  const types = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type] as const);
  return { labels, types: new Map(types) };
}
