import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics, measureEventLoop } from "./metrics.ts";
import { bucketText } from "./metrics-text.ts";

const lines = async (metrics: Metrics): Promise<string[]> => (await metrics.expose()).body.split("\n");

test("counters, gauges and histograms appear as Prometheus text", async () => {
  const metrics = new Metrics();
  const starts = metrics.counter("starts_total", "Starts.", ["result"]);
  starts.inc(["ok"]);
  starts.inc(["ok"], 2);
  starts.inc(['quo"te\n']);
  metrics.gauge("pods", "Pods.").set(3);
  const took = metrics.histogram("took_seconds", "Time.", { labels: ["verb"], buckets: [0.1, 1] });
  for (const value of [0.1, 0.5, 7]) took.observe(value, ["pull"]);
  const { contentType, body } = await metrics.expose();
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  for (const line of [
    "# TYPE starts_total counter",
    'starts_total{result="ok"} 3',
    'starts_total{result="quo\\"te\\n"} 1',
    "# HELP pods Pods.",
    "pods 3",
    "# TYPE took_seconds histogram",
    'took_seconds_bucket{le="0.1",verb="pull"} 1',
    'took_seconds_bucket{le="1",verb="pull"} 2',
    'took_seconds_bucket{le="+Inf",verb="pull"} 3',
    'took_seconds_sum{verb="pull"} 7.6',
    'took_seconds_count{verb="pull"} 3',
  ]) {
    const shown = body
      .split("\n")
      .map((text) => text.replace('verb="pull",le', "le").replace(/(le="[^"]+")}/, '$1,verb="pull"}'));
    assert.ok(shown.includes(line), `${line}\nnot in\n${body}`);
  }
});

test("help and label values are escaped, and numbers are Prometheus' own", async () => {
  const metrics = new Metrics();
  metrics.gauge("odd", "A \\ and a\nline.", ["of"]).set(Number.POSITIVE_INFINITY, ['a\\b"c\n']);
  metrics.gauge("less", "Less.").set(Number.NEGATIVE_INFINITY);
  metrics.gauge("none", "None.").set(Number.NaN);
  const { body } = await metrics.expose((name) => name !== "none");
  assert.equal(
    body,
    '# HELP odd A \\\\ and a\\nline.\n# TYPE odd gauge\nodd{of="a\\\\b\\"c\\n"} +Inf\n# HELP less Less.\n# TYPE less gauge\nless -Inf\n',
  );
  assert.match((await metrics.expose()).body, /^none NaN$/m);
});

test("a metric without labels is 0 from the start, and a counter never goes down", async () => {
  const metrics = new Metrics();
  const counter = metrics.counter("errors_total", "Errors.");
  assert.ok((await lines(metrics)).includes("errors_total 0"));
  counter.inc([], 2);
  counter.inc([], -5);
  assert.ok((await lines(metrics)).includes("errors_total 2"));
});

test("a gauge's series can be ended, and one can be asked at the scrape", async () => {
  const metrics = new Metrics();
  const gauge = metrics.gauge("size", "Size.", ["of"]);
  gauge.set(1, ["a"]);
  gauge.add(2, ["b"]);
  gauge.remove(["a"]);
  let now = 1;
  metrics.gaugeFrom("live", "Live.", { values: () => [[[], now]] });
  now = 9;
  const shown = await lines(metrics);
  assert.ok(shown.includes('size{of="b"} 2') && !shown.some((line) => line.includes('of="a"')));
  assert.ok(shown.includes("live 9"));
});

test("mistakes of the program are loud, too many series are not", async () => {
  const metrics = new Metrics();
  const counter = metrics.counter("x_total", "X.", ["id"]);
  assert.throws(() => metrics.gauge("x_total", "again"), /twice/);
  assert.throws(() => counter.inc([]), /0 label values for 1 labels/);
  for (let i = 0; i < 1200; i++) counter.inc([String(i)]);
  const shown = (await lines(metrics)).filter((line) => line.startsWith("x_total"));
  assert.equal(shown.length, 1001);
  assert.ok(shown.includes('x_total{id="other"} 200'));
});

test("the event loop's delay is a metric that starts anew with each scrape", async () => {
  const metrics = new Metrics();
  const stop = measureEventLoop(metrics);
  const body = await lines(metrics);
  stop();
  for (const percentile of [50, 99, 100]) {
    assert.ok(body.includes(`kubelet_event_loop_delay_seconds{percentile="${percentile}"} 0`), body.join("\n"));
  }
});

test("a series that is found once counts as one that is named each time", async () => {
  const metrics = new Metrics();
  const counter = metrics.counter("runs_total", "Runs.", ["kind", "result"]);
  const series = counter.of(["http", "ok"]);
  series.inc();
  series.inc();
  counter.inc(["http", "ok"]);
  assert.ok((await lines(metrics)).includes('runs_total{kind="http",result="ok"} 3'));
  counter.remove(["http", "ok"]);
  assert.ok(!(await lines(metrics)).some((line) => line.startsWith("runs_total{")));
});

test("bounds of buckets are written as Prometheus' library for Go does", () => {
  const bounds = [
    0.005,
    0.5,
    1,
    2.5,
    86_400,
    604_800,
    999_999,
    1e6,
    2_592_000,
    31_104_000,
    1.5e-5,
    Number.POSITIVE_INFINITY,
  ];
  assert.deepEqual(bounds.map(bucketText), [
    ...["0.005", "0.5", "1", "2.5", "86400", "604800", "999999"],
    ...["1e+06", "2.592e+06", "3.1104e+07", "1.5e-05", "+Inf"],
  ]);
});

test("a metric may have more series than the usual, and is counted together past its own limit", async () => {
  const metrics = new Metrics();
  const counter = metrics.counter("a_total", "A.", { labels: ["of"], most: 1500 });
  for (let count = 0; count < 1600; count++) counter.inc([String(count)]);
  const { body } = await metrics.expose();
  assert.equal(body.match(/^a_total\{/gm)?.length, 1501);
  assert.match(body, /^a_total\{of="other"\} 100$/m);
});

test("the help of a metric can be described by who shows it", async () => {
  const metrics = new Metrics();
  metrics.counter("a_total", "A.");
  const { body } = await metrics.expose(undefined, (name, help) => `[${name}] ${help}`);
  assert.match(body, /^# HELP a_total \[a_total\] A\.$/m);
});

test("a histogram without labels is there from the start, as 0", async () => {
  const metrics = new Metrics();
  metrics.histogram("took_ms", "Time.", { buckets: [1] });
  const lines = (await metrics.expose()).body.trimEnd().split("\n").slice(2);
  assert.deepEqual(lines, [
    'took_ms_bucket{le="1"} 0',
    'took_ms_bucket{le="+Inf"} 0',
    "took_ms_sum 0",
    "took_ms_count 0",
  ]);
});
