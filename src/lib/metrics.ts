import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { bucketText, metricsText, type Sample, type ScrapedMetric, TEXT_TYPE } from "./metrics-text.ts";

/** Values of a metric's labels, in the order in which the labels were declared. */
export type LabelValues = readonly string[];

/** One series of a counter, found once: for what is counted hundreds of times a second. Of no use after `remove`. */
export interface CounterSeries {
  inc(): void;
}

export interface Counter {
  /** Adds `by`, which defaults to 1 and must not be negative. */
  inc(labels?: LabelValues, by?: number): void;
  /** Ends a series, when what it counted is gone. */
  remove(labels: LabelValues): void;
  of(labels: LabelValues): CounterSeries;
}

export interface Gauge {
  set(value: number, labels?: LabelValues): void;
  add(by: number, labels?: LabelValues): void;
  /** Ends a series, when what it measured is gone. */
  remove(labels: LabelValues): void;
}

export interface Histogram {
  observe(value: number, labels?: LabelValues): void;
  /** Ends a series, when what it measured is gone. */
  remove(labels: LabelValues): void;
}

/** Where values come from at a scrape. */
export interface Readings {
  readonly labels?: readonly string[];
  values(): Iterable<readonly [LabelValues, number]>;
}

export interface SeriesOptions {
  readonly labels?: readonly string[];
  /** The most combinations of labels, where more than the usual number are no bug. */
  readonly most?: number;
}

export interface HistogramOptions extends SeriesOptions {
  /** Upper bounds, rising; seconds suit the default. */
  readonly buckets?: readonly number[];
}

const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** More label combinations than this in one metric are a bug: the rest are counted together as `other`. */
const MOST_SERIES = 1_000;

/**
 * The agent's own metrics. Counting costs a map lookup, and text is written only at a scrape. Names are unique: declaring
 * one twice is a bug.
 */
export class Metrics {
  private readonly series = new Map<string, ScrapedMetric>();

  counter(name: string, help: string, options: SeriesOptions | readonly string[] = {}): Counter {
    const values = this.declare(name, { help, type: "counter", ...seriesOptions(options) });
    return {
      inc: (of = [], by = 1) => values.add(of, Math.max(0, by)),
      remove: (of) => values.delete(of),
      of: (labelValues) => values.series(labelValues),
    };
  }

  gauge(name: string, help: string, labels: readonly string[] = []): Gauge {
    const values = this.declare(name, { help, type: "gauge", ...seriesOptions(labels) });
    return {
      set: (value, of = []) => values.set(of, value),
      add: (by, of = []) => values.add(of, by),
      remove: (of) => values.delete(of),
    };
  }

  /** A gauge whose value is read at each scrape instead of being stored. */
  gaugeFrom(name: string, help: string, read: Readings): void {
    this.register({ name, help, type: "gauge", collect: () => collected(read) });
  }

  /** A counter whose value is read from its owner at each scrape. */
  counterFrom(name: string, help: string, read: Readings): void {
    this.register({ name, help, type: "counter", collect: () => collected(read) });
  }

  histogram(name: string, help: string, options: HistogramOptions | readonly string[] = {}): Histogram {
    const { buckets = DEFAULT_BUCKETS } = isList(options) ? {} : options;
    const values = new HistogramValues(seriesOptions(options), buckets);
    this.register({ name, help, type: "histogram", collect: () => values.collect() });
    return { observe: (value, of = []) => values.observe(value, of), remove: (of) => values.delete(of) };
  }

  /** The selected metrics, all by default, as a page of Prometheus' text format. `describe` makes the help of each. */
  expose(
    isSelected: (name: string) => boolean = () => true,
    describe: (name: string, help: string) => string = (_name, help) => help,
  ): Promise<{ contentType: string; body: string }> {
    const selected = [...this.series.values()].flatMap((one) =>
      isSelected(one.name) ? [{ ...one, help: describe(one.name, one.help) }] : [],
    );
    return Promise.resolve({ contentType: TEXT_TYPE, body: metricsText(selected) });
  }

  private declare(
    name: string,
    about: { help: string; type: "counter" | "gauge" } & Required<SeriesOptions>,
  ): ScalarValues {
    const values = new ScalarValues(about);
    this.register({ name, help: about.help, type: about.type, collect: () => values.collect() });
    return values;
  }

  private register(series: ScrapedMetric): void {
    if (this.series.has(series.name)) throw new Error(`metric ${series.name} is declared twice`);
    this.series.set(series.name, series);
  }
}

/** One value a label combination, by the joined labels. */
class LabelMap<V> {
  private readonly values = new Map<string, { readonly labels: LabelValues; value: V }>();

  constructor(
    private readonly options: Required<SeriesOptions>,
    private readonly fresh: () => V,
  ) {}

  entry(labels: LabelValues): { readonly labels: LabelValues; value: V } {
    const { labels: names, most } = this.options;
    if (labels.length !== names.length) throw new Error(`${labels.length} label values for ${names.length} labels`);
    const [only = ""] = labels;
    const key = labels.length === 1 ? only : labels.join("\0");
    const found = this.values.get(key);
    if (found !== undefined) return found;
    if (this.values.size >= most) {
      const other = labels.map(() => "other");
      const shared = this.values.get(other.join("\0"));
      if (shared !== undefined) return shared;
      return this.put(other);
    }
    return this.put(labels);
  }

  delete(labels: LabelValues): void {
    this.values.delete(labels.join("\0"));
  }

  all(): Iterable<{ readonly labels: LabelValues; value: V }> {
    return this.values.values();
  }

  private put(labels: LabelValues): { readonly labels: LabelValues; value: V } {
    const made = { labels: [...labels], value: this.fresh() };
    this.values.set(labels.join("\0"), made);
    return made;
  }
}

class ScalarValues {
  private readonly values: LabelMap<number>;
  private readonly names: readonly string[];

  constructor(options: Required<SeriesOptions>) {
    const { labels: names } = options;
    this.names = names;
    this.values = new LabelMap(options, () => 0);
    // A metric without labels is there from the start, as 0.
    if (names.length === 0) this.values.entry([]);
  }

  add(labels: LabelValues, by: number): void {
    this.values.entry(labels).value += by;
  }

  set(labels: LabelValues, value: number): void {
    this.values.entry(labels).value = value;
  }

  delete(labels: LabelValues): void {
    this.values.delete(labels);
  }

  series(labels: LabelValues): CounterSeries {
    const entry = this.values.entry(labels);
    return {
      inc: () => {
        entry.value++;
      },
    };
  }

  collect(): Sample[] {
    return [...this.values.all()].map(({ labels, value }) => ({ labels: zip(this.names, labels), value }));
  }
}

interface Distribution {
  /** How many fell into each bucket, not summed up; the last is for what is above all bounds. */
  readonly counts: number[];
  sum: number;
}

class HistogramValues {
  private readonly values: LabelMap<Distribution>;
  private readonly names: readonly string[];

  constructor(
    options: Required<SeriesOptions>,
    private readonly buckets: readonly number[],
  ) {
    this.names = options.labels;
    this.values = new LabelMap(options, () => ({ counts: new Array(buckets.length + 1).fill(0), sum: 0 }));
    if (this.names.length === 0) this.values.entry([]);
  }

  observe(value: number, labels: LabelValues): void {
    const { value: own } = this.values.entry(labels);
    const found = this.buckets.findIndex((bound) => value <= bound);
    const place = found === -1 ? this.buckets.length : found;
    own.counts[place] = (own.counts[place] ?? 0) + 1;
    own.sum += value;
  }

  delete(labels: LabelValues): void {
    this.values.delete(labels);
  }

  collect(): Sample[] {
    const samples: Sample[] = [];
    for (const { labels, value } of this.values.all()) {
      const own = zip(this.names, labels);
      let total = 0;
      value.counts.forEach((count, place) => {
        total += count;
        const le = bucketText(this.buckets[place] ?? Number.POSITIVE_INFINITY);
        samples.push({ labels: [...own, ["le", le]], value: total, suffix: "_bucket" });
      });
      samples.push({ labels: own, value: value.sum, suffix: "_sum" });
      samples.push({ labels: own, value: total, suffix: "_count" });
    }
    return samples;
  }
}

/** How often the event loop's delay is sampled, in milliseconds: rarely enough to cost nothing when idle. */
const DELAY_RESOLUTION_MS = 50;

/** Declares `kubelet_event_loop_delay_seconds`, how late timers fire; the answer stops the sampling. */
export function measureEventLoop(metrics: Metrics): () => void {
  const histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  histogram.enable();
  // The samples are the whole interval; what is over the resolution is the delay.
  const seconds = (nanoseconds: number): number =>
    Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - DELAY_RESOLUTION_MS / 1e3) : 0;
  metrics.gaugeFrom("kubelet_event_loop_delay_seconds", "How late the event loop runs timers, since the last scrape.", {
    // Not "quantile", which Prometheus keeps for summaries.
    labels: ["percentile"],
    values: () => {
      const percentiles = [50, 99, 100].map((percent) => {
        const value = percent === 100 ? histogram.max : histogram.percentile(percent);
        return [[String(percent)], histogram.count === 0 ? 0 : seconds(value)] as const;
      });
      histogram.reset();
      return percentiles;
    },
  });
  return () => void histogram.disable();
}

function collected({ labels = [], values }: Readings): Sample[] {
  return [...values()].map(([of, value]) => ({ labels: zip(labels, of), value }));
}

function zip(names: readonly string[], values: LabelValues): [string, string][] {
  return names.map((name, index) => [name, values[index] ?? ""]);
}

function seriesOptions(options: SeriesOptions | readonly string[]): Required<SeriesOptions> {
  const { labels = [], most = MOST_SERIES } = isList(options) ? { labels: options } : options;
  return { labels, most };
}

function isList(value: SeriesOptions | readonly string[]): value is readonly string[] {
  return Array.isArray(value);
}
