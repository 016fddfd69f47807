/** What monitoring reads from an agent with a real pod. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { freePort } from "../support/free-port.ts";
import { promtoolProblems, whyNoPromtool } from "../support/promtool.ts";
import { http } from "./support/http.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { KUBELET } from "./support/program.ts";
import { PtyProgram } from "./support/pty.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();

describe("monitoring", () => {
  const site = new Site();
  let agent: Agent;
  let cadvisorPort: number;

  const page = async (path: string): Promise<string> => {
    const { status, body } = await http(`http://127.0.0.1:${agent.readOnlyPort}${path}`);
    assert.equal(status, 200, `${path}: ${body}`);
    return body;
  };

  before(async () => {
    cadvisorPort = await freePort();
    agent = await site.up([`--cadvisor-port=${cadvisorPort}`]);
    const resources = { limits: { cpu: "500m", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } };
    site.write(manifest("web", { containers: [shell("main", forever("echo up"), { resources })] }));
    await site.running("web");
    // A sample may have the pod without the container, which was being started.
    const labels = 'container="main",namespace="default",pod="web-here"';
    await until("the container is sampled", async () => (await page("/metrics/resource")).includes(labels));
  });
  after(() => site.close());

  it("/metrics/resource has usage of node, pod and container, with the time of the sample", async () => {
    const body = await page("/metrics/resource");
    const labels = 'container="main",namespace="default",pod="web-here"';
    assert.match(body, new RegExp(`^container_cpu_usage_seconds_total\\{${labels}\\} [\\d.]+ \\d{13}$`, "m"));
    assert.match(body, new RegExp(`^container_memory_working_set_bytes\\{${labels}\\} [1-9]\\d+ \\d{13}$`, "m"));
    assert.match(body, new RegExp(`^container_start_time_seconds\\{${labels}\\} \\d{10}(\\.\\d+)?$`, "m"));
    assert.match(body, /^pod_memory_working_set_bytes\{namespace="default",pod="web-here"\} [1-9]\d+ \d{13}$/m);
    assert.match(body, /^node_memory_working_set_bytes [1-9]\d+ \d{13}$/m);
    assert.match(body, /^resource_scrape_error 0$/m);
  });

  it("/metrics/cadvisor has the cgroups of node, pod, sandbox and container with the kubelet's labels", async () => {
    const body = await page("/metrics/cadvisor");
    const of = (labels: string, name: string): string | undefined =>
      body.split("\n").find((line) => line.startsWith(`${name}{`) && line.includes(labels));
    assert.match(
      of('container="main"', "container_memory_working_set_bytes") ?? "",
      /pod="web-here"\} [1-9]\d+ \d{13}$/,
    );
    assert.match(of('container="main"', "container_spec_memory_limit_bytes") ?? "", / 67108864$/);
    assert.match(of('container="main"', "container_spec_cpu_quota") ?? "", / 50000$/);
    assert.match(of('container="main"', "container_processes") ?? "", / [1-9]\d* \d{13}$/);
    assert.match(of('pod="web-here",interface="eth0"', "container_network_receive_bytes_total") ?? "", / \d+ \d{13}$/);
    assert.match(of('id="/"', "container_cpu_usage_seconds_total") ?? "", /cpu="total"\} [1-9]/);
    assert.match(body, /^machine_cpu_cores\{.*\} [1-9]/m);
  });

  it("every page is what Prometheus reads", { skip: whyNoPromtool() ?? false }, async () => {
    await page("/healthz");
    for (const path of ["", "/probes", "/slis", "/cadvisor", "/resource"]) {
      assert.deepEqual(promtoolProblems(await page(`/metrics${path}`)), [], path);
    }
  });

  it("the cAdvisor port has its API, metrics and health; old paths of the kubelet have the same facts", async () => {
    const ask = (path: string) => http(`http://127.0.0.1:${cadvisorPort}${path}`);
    assert.equal((await ask("/healthz")).body, "ok");
    assert.match((await ask("/validate/")).body, /Kernel version is \d/);
    assert.match((await ask("/metrics")).body, /^container_cpu_usage_seconds_total\{container="main"/m);
    const machine = JSON.parse((await ask("/api/v1.3/machine")).body) as { num_cores: number; memory_capacity: number };
    assert.ok(machine.num_cores > 0 && machine.memory_capacity > 1e8);
    const spec = JSON.parse(await page("/spec/")) as { num_cores: number };
    assert.equal(spec.num_cores, machine.num_cores);
    type Info = { name: string; stats: { memory: { working_set: number } }[] };
    const all = JSON.parse((await ask("/api/v1.1/subcontainers/")).body) as Info[];
    const web = JSON.parse(await page("/stats/web-here/main")) as Info;
    assert.ok((web.stats[0]?.memory.working_set ?? 0) > 0);
    assert.ok(all.some(({ name }) => name === web.name));
    assert.equal((await ask("/api/v2.1/stats/nope")).status, 500);
  });

  it("top shows node and pods live on a terminal, within its size, until it is interrupted", async () => {
    const top = new PtyProgram(`${KUBELET} top --state-dir ${site.state}`, { columns: 100, rows: 24 });
    try {
      const row = (): string => top.screen().find((line) => line.includes("web-here")) ?? "";
      await until("the pod has a row", () => /^default\s+web-here\s+\d+m\s+\S+ of 64Mi\s+\d+/.test(row()), {
        seen: () => top.written,
      });
      // A frame may arrive in pieces.
      const shows = (what: string, isShown: (screen: readonly string[]) => boolean): Promise<boolean> =>
        until(what, () => isShown(top.screen()), { seen: () => top.written });
      await shows("the node's usage", ([first = ""]) => /^CPU\s+\d+m of \d+ cores \(\d+ %\)/.test(first));
      // One bar a sample, and rates between two of them.
      await until("sparklines grow", () => /[▁▂▃▄▅▆▇█]{3,}$/.test(row()), { seen: () => top.written });
      await shows("rates", (lines) => lines.some((line) => /^Network\s+\S+\/s in, \S+\/s out$/.test(line)));
      await shows("that frames replace each other", (lines) => {
        return lines.filter((line) => line.startsWith("NAMESPACE")).length === 1;
      });
      await top.resize({ columns: 40, rows: 8 });
      await until(
        "it fits into a smaller window",
        () => {
          const shown = top.lastFrame();
          return shown.length < 8 && shown.every((line) => line.length <= 40) && shown[0]?.startsWith("CPU");
        },
        { seen: () => top.written.slice(-3000) },
      );
      top.type("\u0003");
      assert.equal(await top.ended(), 130);
      assert.doesNotMatch(top.written, /\?25l(?!.*\?25h)/s, "the cursor is visible");
    } finally {
      await top.kill();
    }
  });

  it("top shows it once where there is no terminal, and as JSON", async () => {
    const once = await site.run("top", "--containers");
    assert.equal(once.code, 0, once.stderr);
    assert.match(once.stdout, /^default\s+web-here\s/m);
    assert.match(once.stdout, /^\s+main\s+\d+m/m);
    assert.doesNotMatch(once.stdout, /\u001b/);
    const node = JSON.parse((await site.run("top", "--node", "-o", "json")).stdout) as {
      cores: number;
      pods?: unknown;
    };
    assert.ok(node.cores > 0);
    assert.equal(node.pods, undefined);
  });
});
