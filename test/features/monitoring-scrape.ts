/** A real Prometheus scrapes every page of an agent with a pod, and the alert rules of the examples work on them. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { http } from "../integration/support/http.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { Program } from "../integration/support/program.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { freePort } from "../support/free-port.ts";

requireMachine();

const PROMETHEUS = "/usr/bin/prometheus";
const RULES = join(import.meta.dirname, "../../examples/monitoring/alerts.yaml");
/** One series of each page that is there from the first scrape. */
const PAGES = {
  "/metrics": 'kubernetes_build_info{job="metrics"}',
  "/metrics/cadvisor": 'container_memory_working_set_bytes{job="metrics-cadvisor",container="main"}',
  "/metrics/resource": 'pod_memory_working_set_bytes{job="metrics-resource",pod="web-here"}',
  "/metrics/probes": 'prober_probe_total{job="metrics-probes",container="main"}',
  "/metrics/slis": 'kubernetes_healthcheck{job="metrics-slis",name="ping"}',
} as const;
const DASHBOARD = join(import.meta.dirname, "../../examples/monitoring/dashboard.json");
/** Of errors there are none here, and of pressure none where the kernel does not measure it. */
const isQuiet = (expr: string): boolean =>
  /_errors_total/.test(expr) ||
  (/pressure/.test(expr) && !hasPressure) ||
  (/container_fs_(reads|writes)/.test(expr) && !countsDisks);
const hasPressure = existsSync("/proc/pressure/cpu");
const DISK_BYTES = "/sys/fs/cgroup/blkio/blkio.throttle.io_service_bytes";
/** Kernels from 5.14 on with cgroup v1 count what groups read and write only while it is limited. */
const countsDisks = !existsSync(DISK_BYTES) || /[1-9]$/m.test(readFileSync(DISK_BYTES, "utf8"));
const jobOf = (path: string): string => path.slice(1).replaceAll("/", "-");

interface Targets {
  readonly data: { readonly activeTargets: readonly { labels: { job: string }; health: string; lastError: string }[] };
}
interface Answer {
  readonly data: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

describe("a Prometheus", { skip: existsSync(PROMETHEUS) ? false : "not installed: prometheus" }, () => {
  const site = new Site();
  let agent: Agent;
  let prometheus: Program;
  let url = "";

  const ask = async <T>(path: string): Promise<T> => JSON.parse((await http(`${url}${path}`)).body) as T;
  const query = async (text: string): Promise<number | undefined> => {
    const answer = await ask<Answer>(`/api/v1/query?query=${encodeURIComponent(text)}`).catch(() => undefined);
    const value = answer?.data.result[0]?.value[1];
    return value === undefined ? undefined : Number(value);
  };

  before(async () => {
    const cadvisorPort = await freePort();
    agent = await site.up([`--cadvisor-port=${cadvisorPort}`]);
    const probe = { readinessProbe: { exec: { command: ["/bin/true"] }, periodSeconds: 1 } };
    // Throttled, and writing: some panels are about that.
    const resources = { limits: { cpu: "20m", memory: "64Mi" } };
    const busy = forever("(while :; do dd if=/dev/zero of=/data/a bs=1M count=1 conv=fsync 2>/dev/null; done) &");
    const data = { name: "data", mountPath: "/data" };
    const worker = shell("busy", busy, { resources, volumeMounts: [data] });
    const failing = { exec: { command: ["/bin/false"] }, periodSeconds: 1 };
    site.write(manifest("sick", { containers: [shell("main", forever(), { readinessProbe: failing })] }));
    site.write(
      manifest("web", {
        containers: [shell("main", forever(), probe), worker],
        volumes: [{ name: "data", emptyDir: {} }],
      }),
    );
    await site.running("web");
    const job = (path: string, port: number, name = jobOf(path)): object => ({
      job_name: name,
      metrics_path: path,
      static_configs: [{ targets: [`127.0.0.1:${port}`] }],
    });
    const config = {
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: [RULES],
      scrape_configs: [
        ...Object.keys(PAGES).map((path) => job(path, agent.readOnlyPort)),
        job("/metrics", cadvisorPort, "port-4194"),
      ],
    };
    const file = join(site.dir, "prometheus.json");
    writeFileSync(file, JSON.stringify(config));
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    prometheus = new Program([
      PROMETHEUS,
      ...[`--config.file=${file}`, `--storage.tsdb.path=${join(site.dir, "tsdb")}`],
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    await until(
      "Prometheus is ready",
      async () => (await http(`${url}/-/ready`).catch(() => undefined))?.status === 200,
      {
        seen: () => prometheus.stderr.slice(-2000),
      },
    );
  });
  after(async () => {
    await prometheus?.end("SIGTERM");
    rmSync(join(site.dir, "tsdb"), { recursive: true, force: true });
    await site.close();
  });

  it("scrapes every page without an error", async () => {
    let targets: Targets["data"]["activeTargets"] = [];
    // On a busy machine a scrape may take longer than its second; what is wrong with a page stays.
    await until(
      "all targets are up",
      async () => {
        targets = (await ask<Targets>("/api/v1/targets")).data.activeTargets;
        return targets.length === 6 && targets.every(({ health }) => health === "up");
      },
      { limitMs: 30_000, seen: () => targets.map(({ labels, lastError }) => `${labels.job}: ${lastError}`) },
    );
  });

  for (const [path, series] of Object.entries(PAGES)) {
    it(`finds ${path} in its store`, async () => {
      const value = await until(series, () => query(series), { limitMs: 30_000 });
      assert.ok(value >= 0);
    });
  }

  it("keeps every sample: none is a duplicate, out of order or out of bounds", async () => {
    const counted = async (name: string): Promise<number> =>
      (await query(`sum(prometheus_target_scrapes_${name})`)) ?? 0;
    for (const name of [
      "sample_duplicate_timestamp_total",
      "sample_out_of_order_total",
      "sample_out_of_bounds_total",
    ]) {
      assert.equal(await counted(name), 0, name);
    }
    assert.doesNotMatch(prometheus.stderr, /Error on ingesting|duplicate|out-of-order/i);
  });

  it("every panel of the dashboard has something to show", async () => {
    type Panel = { title: string; targets?: { expr: string }[] };
    const { panels } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as { panels: Panel[] };
    const asked = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        title,
        expr: expr.replaceAll("$instance", ".*").replaceAll("$__rate_interval", "10s").replaceAll(/\$\w+/g, ".*"),
      })),
    );
    assert.ok(asked.length > 15);
    const empty = async (): Promise<string[]> => {
      const found = await Promise.all(
        asked.map(async ({ title, expr }) => {
          const { status, body } = await http(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`);
          assert.equal(status, 200, `${title}: ${expr}: ${body}`);
          const isEmpty = (JSON.parse(body) as Answer).data.result.length === 0;
          return isEmpty && !isQuiet(expr) ? [`${title}: ${expr}`] : [];
        }),
      );
      return found.flat();
    };
    let left: string[] = [];
    await until("all panels have series", async () => (left = await empty()).length === 0, {
      limitMs: 60_000,
      seen: () => left.join("\n"),
    });
  });

  it("takes the alert rules of the examples", async () => {
    type Rules = { data: { groups: { rules: { name: string; lastError?: string; health: string }[] }[] } };
    const rules = await until("the rules were evaluated", async () => {
      const all = (await ask<Rules>("/api/v1/rules")).data.groups.flatMap((group) => group.rules);
      return all.length > 0 && all.every(({ health }) => health !== "unknown") ? all : undefined;
    });
    assert.deepEqual(
      rules.filter(({ health }) => health !== "ok").map(({ name, lastError }) => `${name}: ${lastError}`),
      [],
    );
  });
});
