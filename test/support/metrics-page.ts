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

/** What a page tells of its metrics, whatever their values. */
export interface PageShape {
  /** Names of labels by the names of series. */
  readonly labels: ReadonlyMap<string, string>;
  /** By the names of families, as the following. */
  readonly types: ReadonlyMap<string, string>;
  /** How long Kubernetes keeps it, at the beginning of its help; empty where it does not tell. */
  readonly levels: ReadonlyMap<string, string>;
  /** Bounds of the buckets of histograms. */
  readonly bounds: ReadonlyMap<string, string>;
}

export function shapeOf(page: string): PageShape {
  const labels = new Map<string, string>();
  const bounds = new Map<string, Set<string>>();
  for (const { name, labels: of } of parseMetrics(page).values()) {
    labels.set(name, Object.keys(of).sort().join(","));
    const { le } = of;
    const family = name.replace(/_bucket$/, "");
    if (le !== undefined) bounds.set(family, (bounds.get(family) ?? new Set()).add(le));
  }
  const words = (line: RegExp) => new Map([...page.matchAll(line)].map(([, name = "", word = ""]) => [name, word]));
  return {
    labels,
    types: words(/^# TYPE (\S+) (\S+)$/gm),
    levels: words(/^# HELP (\S+) (?:\[([A-Z]+)\] )?/gm),
    bounds: new Map([...bounds].map(([name, of]) => [name, [...of].sort().join(" ")])),
  };
}

/** What both pages have and tell differently: labels, types, levels and bounds of buckets. */
export function shapeProblems(theirs: PageShape, ours: PageShape): readonly string[] {
  return (["labels", "types", "levels", "bounds"] as const).flatMap((what) =>
    [...theirs[what]].flatMap(([name, word]) => {
      const own = ours[what].get(name);
      return own === undefined || own === word ? [] : [`${what} of ${name}: theirs ${word}, ours ${own}`];
    }),
  );
}
