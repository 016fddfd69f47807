/** Pages and streams of the main port that the suite `server` does not use: probes, health, profiles, log searches. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ClientAuthority, MainPort } from "./support/main-port.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, requireExec, requireMachine, Site } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();
requireExec();

/** Serves a page on 8080, and writes a line to each stream. */
const WEB = forever(
  "mkdir -p /tmp/w; echo page > /tmp/w/index.html; httpd -p 8080 -h /tmp/w; echo to stdout; echo to stderr >&2",
);

/** A unit of the journal, or why there is none to search. */
function journalUnit(): { readonly unit: string } | { readonly skip: string } {
  const { stdout } = spawnSync("journalctl", ["--field", "_SYSTEMD_UNIT"], { encoding: "utf8" });
  const unit = (stdout ?? "").split("\n").find((name) => /^[\w.-]+\.service$/.test(name));
  return unit === undefined ? { skip: "needs a machine whose journal has units (npm run test:vm)" } : { unit };
}

describe("pages of the main port", () => {
  const site = new Site();
  const authority = new ClientAuthority(site.dir, "ca");
  const logName = `kubelet-ts-test-${process.pid}`;
  const logFile = `/var/log/${logName}.log`;
  let agent: Agent;
  let ann: MainPort;

  before(async () => {
    const config = join(site.dir, "config.json");
    const featureGates = { PodLogsQuerySplitStreams: true, NodeLogQuery: true };
    const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
    writeFileSync(config, JSON.stringify({ ...head, enableSystemLogQuery: true, featureGates }));
    agent = await site.up([`--config=${config}`, `--client-ca-file=${authority.path}`]);
    ann = new MainPort(agent.mainPort, authority.issue("ann"));
    const readinessProbe = { exec: { command: ["true"] }, periodSeconds: 1 };
    site.write(manifest("web", { containers: [shell("main", WEB, { readinessProbe })] }));
    await site.running("web");
  });
  after(async () => {
    rmSync(logFile, { force: true });
    await site.close();
  });

  it("/metrics/probes counts the results of probes, and /metrics does not", async () => {
    const line = /^prober_probe_total\{probe_type="Readiness",result="successful",.*pod="web-here",.*\} [1-9]/m;
    await until("a probe is counted", async () => line.test((await ann.ask("/metrics/probes")).body));
    assert.match((await ann.ask("/metrics/probes")).body, /^prober_probe_duration_seconds_bucket\{/m);
    assert.doesNotMatch((await ann.ask("/metrics")).body, /prober_/);
  });

  it("/metrics/slis has the result of each health check", async () => {
    const { status, body } = await ann.ask("/metrics/slis");
    assert.equal(status, 200);
    for (const name of ["ping", "log", "syncloop"]) {
      assert.match(body, new RegExp(`^kubernetes_healthcheck\\{name="${name}",type="healthz"\\} 1$`, "m"));
    }
  });

  it("/debug/pprof has profiles of the process in V8's format, and its command line", async () => {
    assert.match((await ann.ask("/debug/pprof/")).body, /^profile /m);
    assert.match((await ann.ask("/debug/pprof/cmdline")).body, new RegExp(`\0--port=${agent.mainPort}\0`));
    const cpu = JSON.parse((await ann.ask("/debug/pprof/profile?seconds=1")).body) as { nodes: unknown[] };
    assert.ok(cpu.nodes.length > 1);
    const heap = JSON.parse((await ann.ask("/debug/pprof/heap?seconds=1")).body) as { head: object };
    assert.ok("callFrame" in heap.head);
    assert.equal((await ann.ask("/debug/pprof/profile?seconds=0")).status, 400);
    assert.equal((await ann.ask("/debug/pprof/goroutine")).status, 404);
  });

  it("/debug/flags/v changes the verbosity of the running agent", async () => {
    const logged = (): string => readFileSync(join(site.state, "kubelet.log"), "utf8");
    await ann.garbage();
    assert.doesNotMatch(logged(), /TLS handshake failed/);
    const set = await ann.put("/debug/flags/v", "5");
    assert.deepEqual([set.status, set.body], [200, "successfully set klog.logging.verbosity to 5\n"]);
    await ann.garbage();
    await until("a line of that verbosity", () => /TLS handshake failed/.test(logged()));
    assert.match((await ann.ask("/flagz")).body, /^v=5$/m);
    assert.equal((await ann.put("/debug/flags/v", "many")).status, 400);
    assert.equal((await ann.ask("/debug/flags/v")).status, 406);
  });

  it("logs of a single stream, with ?stream=", async () => {
    const log = async (query: string): Promise<string> =>
      (await ann.ask(`/containerLogs/default/web-here/main${query}`)).body;
    await until("both lines are written", async () => (await log("")).split("\n").length === 3);
    assert.equal(await log("?stream=Stdout"), "to stdout\n");
    assert.equal(await log("?stream=Stderr"), "to stderr\n");
    assert.equal((await log("?stream=All")).split("\n").sort().join("|"), "|to stderr|to stdout");
    assert.equal((await ann.ask("/containerLogs/default/web-here/main?stream=Stdout&tailLines=1")).status, 422);
  });

  it("forwards ports over WebSocket: data and errors of each port on channels of their own", async () => {
    const socket = await ann.webSocket("/portForward/default/web-here?port=8080&port=9");
    // Each channel begins with the number of its port.
    const begins = (channel: number, port: number): boolean =>
      socket
        .bytes(channel)
        .subarray(0, 2)
        .equals(Buffer.from([port & 0xff, port >> 8]));
    await until("the channels of both ports", () => begins(0, 8080) && begins(1, 8080) && begins(2, 9) && begins(3, 9));
    socket.send(0, "GET / HTTP/1.0\r\n\r\n");
    await until("the page", () => socket.text(0).endsWith("page\n"), { seen: () => socket.text(0) });
    assert.match(socket.text(0), /HTTP\/1\.[01] 200 OK/);
    socket.send(2, "anybody?");
    await until("the error of the other port", () => /refused/.test(socket.text(3)), { seen: () => socket.text(3) });
    socket.destroy();
    assert.equal((await ann.ask("/healthz")).body, "ok");
  });

  it("/logs/?query= searches files below the log directory", async () => {
    writeFileSync(logFile, "first\nsecond\n");
    assert.equal((await ann.ask(`/logs/?query=${logName}`)).body, "first\nsecond\n");
    assert.equal((await ann.ask(`/logs/?query=/${logName}.log`)).body, "first\nsecond\n");
    assert.match((await ann.ask("/logs/?query=no-such-service")).body, /^no logs found for no-such-service\n$/);
    assert.equal((await ann.ask("/logs/?query=../shadow")).status, 406);
    assert.equal((await ann.ask("/logs/?query=")).status, 400);
  });

  const journal = journalUnit();
  it("/logs/?query= searches the journal by unit, pattern and number of lines", {
    skip: "skip" in journal && journal.skip,
  }, async () => {
    assert.ok("unit" in journal);
    const { unit } = journal;
    const { stdout } = spawnSync("journalctl", ["--unit", unit, "--utc", "--output=short-precise", "--no-pager"], {
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    });
    const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("-- "));
    assert.ok(lines.length > 0);
    const found = await ann.ask(`/logs/?query=${unit}`);
    assert.ok(found.body.includes(lines[0] ?? ""), found.body.slice(0, 500));
    const last = await ann.ask(`/logs/?query=${unit.replace(/\.service$/, "")}&tailLines=1`);
    assert.equal(last.body.split("\n").filter((line) => line !== "" && !line.startsWith("-- ")).length, 1);
    const none = await ann.ask(`/logs/?query=${unit}&pattern=no-line-says-this-${process.pid}`);
    assert.ok(!none.body.includes(lines[0] ?? ""));
    const future = await ann.ask(`/logs/?query=${unit}&sinceTime=2100-01-01T00:00:00Z`);
    assert.ok(!future.body.includes(lines[0] ?? ""));
  });
});
