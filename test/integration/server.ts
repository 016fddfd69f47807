/** The main port on real containers: who may come in, logs, exec, attach, port-forward, and what must not harm it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, before, describe, it } from "node:test";
import { EXEC_PROTOCOL, runExec } from "../../src/adapters/net/spdy/exec.ts";
import { FORWARD_PROTOCOL, runPortForward } from "../../src/adapters/net/spdy/port-forward.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { metricProblems } from "../support/metric-names.ts";
import { whyNoCheckpoints } from "./support/criu.ts";
import { http } from "./support/http.ts";
import { ClientAuthority, type Identity, MainPort, type WebSocketChannels } from "./support/main-port.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { KUBELET, kubelet, Program } from "./support/program.ts";
import { type Agent, requireExec, requireMachine, Site } from "./support/site.ts";
import { summaryProblems } from "./support/summary.ts";
import { pause, until } from "./support/until.ts";

requireMachine();
requireExec();

/** Serves a page on 8080 and waits. */
const WEB = forever("mkdir -p /tmp/w; echo page > /tmp/w/index.html; httpd -p 8080 -h /tmp/w; echo serving");
/** What a crashed client leaves on a port-forward must not add up. */
const CONNECTIONS = 1000;
const EXECS = 200;
const IDLE_CONNECTIONS = 10_000;

describe("the main port", () => {
  const site = new Site();
  const authority = new ClientAuthority(site.dir, "ca");
  const stranger = new ClientAuthority(site.dir, "other").issue("ann");
  let agent: Agent;
  let ann: MainPort;

  const as = (identity: Identity | undefined): MainPort => new MainPort(agent.mainPort, identity);
  const log = (pod: string, query = ""): Promise<{ status: number; body: string }> =>
    ann.ask(`/containerLogs/default/${pod}-here/main${query}`);
  const descriptors = (): number => readdirSync(`/proc/${agent.pid}/fd`).length;
  const residentMb = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, "utf8"))?.[1]) / 1024;

  before(async () => {
    agent = await site.up([`--client-ca-file=${authority.path}`]);
    ann = as(authority.issue("ann"));
    site.write(manifest("web", { containers: [shell("main", WEB)] }));
    await site.running("web");
    await until("the page is served", async () => (await log("web")).body === "serving\n");
  });
  after(() => site.close());

  it("lets in only who shows a certificate of the client CA, and tells nobody else what there is", async () => {
    for (const identity of [undefined, stranger]) {
      for (const path of ["/pods", "/containerLogs/default/web-here/main", "/exec/default/nope/main", "/configz"]) {
        const { status, body } = await as(identity).ask(path);
        assert.deepEqual({ status, body }, { status: 401, body: "Unauthorized" }, path);
      }
      assert.equal((await as(identity).ask("/nope")).status, 404);
    }
    const withToken = await as(undefined).ask("/pods", "GET", { authorization: "Bearer abc" });
    assert.equal(withToken.status, 401);
    const { items } = JSON.parse((await ann.ask("/pods")).body) as { items: Pod[] };
    assert.deepEqual(
      items.map(({ metadata, status }) => [metadata.name, status?.phase]),
      [["web-here", "Running"]],
    );
  });

  it("answers the pages about itself", async () => {
    assert.equal((await ann.ask("/healthz")).body, "ok");
    assert.match((await ann.ask("/metrics")).body, /^kubelet_running_pods 1$/m);
    assert.match((await ann.ask("/metrics")).body, /kubelet_http_requests_total\{method="GET",path="pods"/);
    const metrics = (await ann.ask("/metrics")).body;
    assert.match(metrics, /^kubelet_node_name\{node="here"\} 1$/m);
    assert.match(metrics, /^kubelet_running_containers\{container_state="running"\} 1$/m);
    assert.match(metrics, /^kubelet_started_pods_total 1$/m);
    assert.match(metrics, /^kubelet_started_containers_total\{container_type="container"\} 1$/m);
    assert.match(metrics, /^kubelet_runtime_operations_total\{operation_type="run_podsandbox"\} 1$/m);
    assert.match(metrics, /^kubelet_runtime_operations_duration_seconds_count\{operation_type="start_container"\} 1$/m);
    assert.match(metrics, /^kubelet_pod_worker_duration_seconds_count\{operation_type="create"\} 1$/m);
    assert.match(metrics, /^kubelet_pod_start_duration_seconds_count 1$/m);
    assert.match(metrics, /^kubelet_pleg_relist_duration_seconds_count [1-9]/m);
    assert.deepEqual(metricProblems(metrics, ["always"]), []);
    const { kubeletconfig } = JSON.parse((await ann.ask("/configz")).body) as {
      kubeletconfig: Record<string, unknown>;
    };
    assert.equal(kubeletconfig["port"], agent.mainPort);
    assert.match((await ann.ask("/statusz")).body, /binaryVersion/);
    assert.match((await ann.ask("/flagz")).body, new RegExp(`^port=${agent.mainPort}$`, "m"));
    // A sample is at least a second old before a new pod causes another one.
    let missing: string[] = [];
    const isWhole = async (): Promise<boolean> => {
      missing = summaryProblems((await ann.ask("/stats/summary")).body, "web-here");
      return missing.length === 0;
    };
    await until("the summary has the pod", isWhole, { seen: () => missing });
    const { items } = JSON.parse((await ann.ask("/runningpods/")).body) as { items: Pod[] };
    assert.equal(items[0]?.metadata.name, "web-here");
    const readOnly = `http://127.0.0.1:${agent.readOnlyPort}`;
    assert.equal((await http(`${readOnly}/pods`)).status, 200);
    assert.equal((await http(`${readOnly}/containerLogs/default/web-here/main`)).status, 405);
    assert.equal((await http(`${readOnly}/configz`)).status, 404);
    const alive = await http(`http://127.0.0.1:${agent.healthPort}/healthz?verbose`);
    assert.match(alive.body, /^\[\+\]ping ok\n[\s\S]*healthz check passed\n$/);
  });

  it("takes over new client authorities without a restart", async () => {
    const next = new ClientAuthority(site.dir, "next");
    const bob = as(next.issue("bob"));
    assert.equal((await bob.ask("/pods")).status, 401);
    const both = readFileSync(authority.path, "utf8") + readFileSync(next.path, "utf8");
    writeFileSync(`${authority.path}.new`, both);
    renameSync(`${authority.path}.new`, authority.path);
    await until("bob is let in", async () => (await bob.ask("/pods")).status === 200);
    assert.equal((await ann.ask("/pods")).status, 200);
  });

  it("gives logs: whole, the end, with times, cut, and of the instance before", async () => {
    const flags = mkdtempSync(join(site.dir, "f-"));
    // The runtime copies stdout and stderr side by side: the second is written when the first was read.
    const script = [
      "for i in 1 2 3; do echo line $i; done",
      "if [ -e /flags/restarted ]; then turn=2; else turn=1; fi",
      "until [ -e /flags/read-$turn ]; do sleep 0.1; done",
      "echo problem >&2",
      "if [ $turn = 1 ]; then touch /flags/restarted; exit 1; fi",
      forever(),
    ];
    const volumeMounts = [{ name: "flags", mountPath: "/flags" }];
    const containers = [shell("main", script.join("\n"), { volumeMounts })];
    site.write(manifest("talk", { containers, volumes: [{ name: "flags", hostPath: { path: flags } }] }));
    const lines = "line 1\nline 2\nline 3\n";
    const whole = `${lines}problem\n`;
    await until("the first instance has begun", async () => (await log("talk")).body === lines);
    writeFileSync(join(flags, "read-1"), "");
    await site.pod("talk", "has restarted", (pod) => pod.phase === "Running" && pod.restarts === 1);
    await until("the second instance has begun", async () => (await log("talk")).body === lines);
    writeFileSync(join(flags, "read-2"), "");
    await until("both instances have written", async () => (await log("talk")).body === whole);
    assert.equal((await log("talk", "?previous=true")).body, whole);
    assert.equal((await log("talk", "?tailLines=2")).body, "line 3\nproblem\n");
    assert.equal((await log("talk", "?limitBytes=8")).body, "line 1\nl");
    assert.match((await log("talk", "?timestamps=true&tailLines=1")).body, /^\d{4}-\d\d-\d\dT[\d:.]+Z problem\n$/);
    assert.equal((await log("talk", "?sinceSeconds=3600")).body, whole);
    assert.equal((await log("talk", `?sinceTime=${new Date(Date.now() + 60_000).toISOString()}`)).body, "");
    assert.equal((await log("talk", "?tailLines=x")).status, 400);
    assert.equal((await log("talk", "?limitBytes=0")).status, 422);
    assert.equal((await log("nope")).status, 404);
    assert.equal((await ann.ask("/containerLogs/default/talk-here/other")).status, 404);
    site.remove("talk");
  });

  it("follows a log through rotations without a gap and without a double, to the end of the container", async () => {
    // Its log can be rotated as long as it runs.
    const flags = mkdtempSync(join(site.dir, "f-"));
    const count = "i=0; while [ $i -lt 3000 ]; do echo number $i; i=$((i+1)); [ $((i % 100)) = 0 ] && sleep 0.05; done";
    const script = `${count}; until [ -e /flags/stop ]; do sleep 0.1; done`;
    const containers = [shell("main", script, { volumeMounts: [{ name: "flags", mountPath: "/flags" }] })];
    const volumes = [{ name: "flags", hostPath: { path: flags } }];
    site.write(manifest("count", { restartPolicy: "Never", containers, volumes }));
    const pod = await site.pod("count", "runs", ({ phase }) => phase === "Running");
    const following = log("count", "?follow=true");
    const [container] = await site.containers(pod.uid);
    assert.ok(container);
    const { logPath } = await site.cri.containerStatus(container.id, { signal: new AbortController().signal });
    for (let round = 0; round < 3; round++) {
      await pause(250);
      renameSync(logPath, `${logPath}.2026010${round}-000000`);
      await site.cri.reopenContainerLog(container.id, { signal: new AbortController().signal });
    }
    writeFileSync(join(flags, "stop"), "");
    const lines = (await following).body.trimEnd().split("\n");
    const strays = lines.flatMap((line, at) => (line === `number ${at}` ? [] : [`line ${at} is ${line}`]));
    assert.deepEqual([lines.length, strays.slice(0, 3)], [3000, []]);
    site.remove("count");
    await site.gone("count");
  });

  it("runs commands over WebSocket: output, errors and the exit code", async () => {
    const query = "command=sh&command=-c&command=echo+out;+echo+err+%3E%262;+exit+3&output=1&error=1";
    const socket = await ann.webSocket(`/exec/default/web-here/main?${query}`);
    await socket.closed;
    assert.equal(socket.text(1), "out\n");
    assert.equal(socket.text(2), "err\n");
    assert.match(socket.text(3), /"reason":"NonZeroExitCode".*"message":"3"/);
  });

  it("runs commands over SPDY: output, errors, input with its end, and the exit code", async () => {
    const script = encodeURIComponent("cat; echo err >&2; exit 4");
    const path = `/exec/default/web-here/main?command=sh&command=-c&command=${script}&input=1&output=1&error=1`;
    const headers = { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": EXEC_PROTOCOL };
    const made = await ann.upgrade(path, headers, "POST");
    assert.ok("socket" in made);
    const said = { out: "", err: "" };
    const code = await runExec(
      made,
      {
        stdin: (async function* () {
          yield Buffer.from("one\n");
          yield Buffer.from("two\n");
        })(),
        stdout: async (bytes) => void (said.out += Buffer.from(bytes).toString()),
        stderr: async (bytes) => void (said.err += Buffer.from(bytes).toString()),
      },
      { signal: new AbortController().signal },
    );
    assert.deepEqual({ code, ...said }, { code: 4, out: "one\ntwo\n", err: "err\n" });
  });

  it("says why a command cannot be run, although megabytes of its input are still on their way", async () => {
    const path = "/exec/default/web-here/main?command=no-such-program&input=1&output=1&error=1";
    const headers = { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": EXEC_PROTOCOL };
    const input = async function* (): AsyncGenerator<Buffer> {
      for (let part = 0; part < 48; part++) yield Buffer.alloc(64 * 1024);
    };
    const take = async (): Promise<void> => undefined;
    for (let round = 0; round < 20; round++) {
      const made = await ann.upgrade(path, headers, "POST");
      assert.ok("socket" in made);
      const ends = { stdin: input(), stdout: take, stderr: take };
      await assert.rejects(runExec(made, ends, new AbortController()), /no-such-program/, `round ${round}`);
    }
  });

  it("attaches to the process of a container: what is sent reaches it, and its end is the end", async () => {
    const script = "read a; echo got $a; read b; echo then $b >&2";
    const containers = [shell("main", script, { stdin: true })];
    site.write(manifest("listens", { restartPolicy: "Never", containers }));
    await site.running("listens");
    const path = "/attach/default/listens-here/main?input=1&output=1&error=1";
    const socket = await ann.webSocket(path);
    socket.send(0, "one\n");
    await until("it answers", () => socket.text(1) === "got one\n");
    const second = await ann.webSocket(path);
    second.send(0, "two\n");
    await Promise.all([socket.closed, second.closed]);
    assert.equal(socket.text(2), "then two\n");
    await site.pod("listens", "has ended", ({ phase }) => phase === "Succeeded");
    await until("all is logged", async () => (await log("listens")).body === "got one\nthen two\n");
    assert.equal((await ann.ask("/attach/default/nope/main?output=1")).status, 404);
    site.remove("listens");
    await site.gone("listens");
  });

  it("says in words that the runtime has no checkpoints, or cannot make one", async () => {
    const { status, body } = await ann.ask("/checkpoint/default/web-here/main", "POST");
    const { version } = await site.cri.version({ signal: new AbortController().signal });
    if (/^v?1\./.test(version)) {
      assert.equal(status, 500, body);
      assert.match(body, /^checkpointing of default\/web-here\/main failed \(.*code = Unimplemented desc = .+\)\n$/s);
    } else if (whyNoCheckpoints() === false) {
      assert.equal(status, 200, body);
      assert.match(body, /checkpoints\/checkpoint-web-here_default-main-/);
    } else {
      assert.equal(status, 500, body);
      assert.match(body, /^checkpointing of default\/web-here\/main failed \(.{5,}\)\n$/s);
    }
    assert.equal((await ann.ask("/checkpoint/default/web-here/other", "POST")).status, 404);
    assert.equal((await ann.ask("/checkpoint/default/web-here/main")).status, 405);
    assert.equal((await log("web")).status, 200);
  });

  it("gives a command a terminal that is resized", async () => {
    const script = "echo begun; read x; until [ \"$(stty size)\" = '45 123' ]; do sleep 0.1; done; stty size; exit 0";
    const query = `command=sh&command=-c&command=${encodeURIComponent(script)}&input=1&output=1&tty=1`;
    const socket = await ann.webSocket(`/exec/default/web-here/main?${query}`);
    await until("the command runs", () => socket.text(1).includes("begun"));
    socket.send(4, '{"Width":123,"Height":45}');
    socket.send(0, "go\n");
    await until("it has this size", () => socket.text(1).endsWith("45 123\r\n"), { seen: () => socket.text(1) });
    await socket.closed;
    assert.match(socket.text(1), /45 123\r\n$/);
    assert.match(socket.text(3), /"status":"Success"/);
  });

  it("refuses exec without streams, of what is not there, and without an upgrade", async () => {
    const path = "/exec/default/web-here/main?command=true";
    assert.equal((await ann.ask(path)).status, 400);
    assert.deepEqual((await ann.ask(`${path}&output=1`)).body, "Upgrade request required\n");
    assert.equal((await ann.ask("/exec/default/nope/main?command=true&output=1")).status, 404);
    assert.equal((await ann.ask("/run/default/web-here/main?cmd=echo+a++b", "POST")).body, "a  b\n");
    assert.equal((await ann.ask("/run/default/web-here/main?cmd=false", "POST")).status, 500);
    const refused = await as(undefined).upgrade(`${path}&output=1`, { Upgrade: "SPDY/3.1" }, "POST");
    assert.equal("status" in refused && refused.status, 401);
  });

  it(`runs ${EXECS} commands at a time`, async () => {
    const before = descriptors();
    const script = encodeURIComponent("echo begun; read x; echo got $x");
    const query = `command=sh&command=-c&command=${script}&input=1&output=1`;
    const sockets: WebSocketChannels[] = [];
    // A few at a time: containerd 1.6 stands still when many are begun in one container at once, without us too.
    const lane = async (work: () => Promise<void>): Promise<void> => {
      for (let turn = 0; turn < EXECS / 8; turn++) await work();
    };
    const begin = async (): Promise<void> => {
      const socket = await ann.webSocket(`/exec/default/web-here/main?${query}`);
      await until("it runs", () => socket.text(1) === "begun\n");
      sockets.push(socket);
    };
    await Promise.all(Array.from({ length: 8 }, () => lane(begin)));
    assert.equal(sockets.length, EXECS);
    const ending = sockets.values();
    const finish = async (): Promise<void> => {
      const socket: WebSocketChannels | undefined = ending.next().value;
      socket?.send(0, "it\n");
      await socket?.closed;
      assert.equal(socket?.text(1), "begun\ngot it\n");
      assert.match(socket?.text(3) ?? "", /"status":"Success"/);
    };
    await Promise.all(Array.from({ length: 8 }, () => lane(finish)));
    await until("nothing is left open", () => descriptors() <= before + 2, {
      seen: () => `${before} ${descriptors()}`,
    });
  });

  it("kubelet exec: output, input with its end, exit code, and words for what is wrong", async () => {
    const exec = (...words: string[]) => kubelet(["exec", "--state-dir", site.state, ...words]);
    const ran = await exec("web", "--", "sh", "-c", "echo out; echo err >&2; exit 7");
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [7, "out\n", "err\n"]);
    const bytes = Array.from({ length: 200_000 }, (_, index) => index % 251);
    const cat = spawn(join(import.meta.dirname, "../../bin/kubelet"), [
      ...["exec", "-i", "--state-dir", site.state, "web", "--", "cat"],
    ]);
    const parts: Buffer[] = [];
    cat.stdout.on("data", (chunk: Buffer) => parts.push(chunk));
    cat.stdin.on("error", () => undefined).end(Buffer.from(bytes));
    const [code] = (await once(cat, "close")) as [number];
    assert.equal(code, 0);
    assert.ok(Buffer.concat(parts).equals(Buffer.from(bytes)));
    const nope = await exec("wab", "--", "true");
    assert.deepEqual([nope.code, nope.stderr], [1, 'error: pod "wab" not found; there is default/web-here\n']);
    const other = await exec("-c", "man", "web", "--", "true");
    assert.match(other.stderr, /^error: pod web-here has no container "man"; there is main\n$/);
    const missing = await exec("web", "--", "no-such-program");
    assert.notEqual(missing.code, 0);
  });

  it("kubelet port-forward leads to the pod", async () => {
    const forward = site.start("port-forward", "web", ":8080");
    await forward.says(/Forwarding from 127\.0\.0\.1:\d+ -> 8080\n/);
    const port = /127\.0\.0\.1:(\d+)/.exec(forward.stdout)?.[1];
    for (let round = 0; round < 3; round++) assert.equal((await http(`http://127.0.0.1:${port}/`)).body, "page\n");
    const { code } = await forward.end("SIGINT");
    assert.equal(code, 130);
  });

  it(`${CONNECTIONS} connections through one port-forward, half of them reset, leave nothing open`, async () => {
    const before = descriptors();
    const made = await ann.upgrade(
      "/portForward/default/web-here",
      { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": FORWARD_PROTOCOL },
      "POST",
    );
    assert.ok("socket" in made);
    const stop = new AbortController();
    const { promise, resolve: ready } = withResolvers<number>();
    const running = runPortForward(
      made,
      {
        host: "127.0.0.1",
        ports: [{ local: 0, remote: 8080 }],
        ready: ([bound]) => ready(bound?.local ?? 0),
        trouble: () => undefined,
      },
      stop,
    ).catch(() => undefined);
    const port = await promise;
    const whole = new Set<number>();
    const visit = (index: number): Promise<void> =>
      new Promise((resolve) => {
        let text = "";
        const socket = connect(port, "127.0.0.1", () => {
          socket.write("GET / HTTP/1.0\r\n\r\n");
          // At any moment: before the request is there, while it is answered, after it.
          if (index % 2 === 1) setTimeout(() => socket.resetAndDestroy(), (index * 7) % 50);
        });
        socket.on("error", () => undefined).on("data", (chunk: Buffer) => (text += chunk.toString()));
        socket.on("close", () => {
          if (text.endsWith("page\n")) whole.add(index);
          resolve();
        });
      });
    // Many at a time: the runtime ends each of them a second after its answer.
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < CONNECTIONS) await visit(next++);
    };
    await Promise.all(Array.from({ length: 100 }, lane));
    // Whoever did not reset got all of its answer, however its neighbours behaved.
    const short = Array.from({ length: CONNECTIONS / 2 }, (_, index) => 2 * index).filter((index) => !whole.has(index));
    assert.deepEqual(short, []);
    stop.abort();
    await running;
    await until("nothing is left open", () => descriptors() <= before + 2, {
      seen: () => `${before} ${descriptors()}`,
    });
    assert.equal((await ann.ask("/healthz")).status, 200);
  });

  it("is not harmed by bad input", async () => {
    const raw = async (text: string | Buffer): Promise<string> => {
      const socket = await ann.connect();
      let answer = "";
      socket.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1"))).on("error", () => undefined);
      socket.write(text);
      const isAnswered = (): boolean => answer.includes("\r\n") || socket.closed;
      await until("an answer or the end", isAnswered, { seen: () => String(text).slice(0, 80) });
      socket.destroy();
      return answer.split("\r\n", 1)[0] ?? "";
    };
    const head = "Host: x\r\n";
    assert.match(await raw(`GET /logs/../../etc/shadow HTTP/1.1\r\n${head}\r\n`), / 400 /);
    assert.match(await raw(`GET /logs/%2e%2e/etc/shadow HTTP/1.1\r\n${head}\r\n`), / 400 /);
    assert.match(await raw(`GET /logs/..%2fetc/shadow HTTP/1.1\r\n${head}\r\n`), / 400 /);
    assert.match(await raw(`GET /pods%00 HTTP/1.1\r\n${head}\r\n`), / 400 /);
    assert.match(await raw(`GET /pods%zz HTTP/1.1\r\n${head}\r\n`), / 400 /);
    assert.match(await raw(`GET /${"a".repeat(1_100_000)} HTTP/1.1\r\n${head}\r\n`), / (400|431|414) |^$/);
    assert.match(await raw(`GET /pods?${"q=1&".repeat(100_000)} HTTP/1.1\r\n${head}\r\n`), / 200 /);
    assert.match(
      await raw(`GET /pods HTTP/1.1\r\n${head}${"X-Aaaaaaa: bbbbbbbbbbbb\r\n".repeat(60_000)}\r\n`),
      / (400|431) |^$/,
    );
    assert.match(await raw(`BREW /pods HTTP/1.1\r\n${head}\r\n`), / 400 /);
    assert.match(await raw(`DELETE /pods HTTP/1.1\r\n${head}\r\n`), / 405 /);
    assert.match(await raw("\0\x01\x02garbage\r\n\r\n"), / 400 /);
    assert.match(
      await raw(`GET /exec/default/web-here/main?command=ls&output=1 HTTP/1.1\r\n${head}Connection: Upgrade\r\n\r\n`),
      / 500 /,
    );
    assert.match(
      await raw(
        `GET /exec/default/web-here/main?command=ls&output=1 HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: nonsense\r\n\r\n`,
      ),
      / (400|403|500) /,
    );
    for (const garbage of ["GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff", "\xff".repeat(10_000)]) {
      const socket = connect(agent.mainPort, "127.0.0.1", () => socket.end(Buffer.from(garbage, "latin1")));
      await closing(socket.on("error", () => undefined).resume());
    }
    assert.equal((await ann.ask("/pods")).status, 200);
  });

  it(`goes on answering while ${IDLE_CONNECTIONS} connections do nothing, and frees what they took`, async () => {
    const before = { memory: residentMb(), open: descriptors() };
    const script = `
      const { connect } = require("node:net");
      let open = 0;
      const next = (left) => {
        if (left === 0) return;
        const socket = connect(${agent.mainPort}, "127.0.0.1", () => { open++; next(left - 1); });
        socket.on("error", () => next(left - 1)).resume();
      };
      for (let lane = 0; lane < 50; lane++) next(${IDLE_CONNECTIONS / 50});
      setInterval(() => process.stdout.write(open + "\\n"), 100);
    `;
    const crowd = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    let reached = 0;
    crowd.stdout.on("data", (chunk: Buffer) => {
      reached = Number(chunk.toString().trim().split("\n").at(-1));
    });
    try {
      await until("all are connected", () => reached >= IDLE_CONNECTIONS * 0.99, {
        limitMs: 120_000,
        seen: () => String(reached),
      });
      assert.equal((await ann.ask("/pods")).status, 200);
    } finally {
      crowd.kill("SIGKILL");
    }
    await until("all are gone", () => descriptors() <= before.open + 5, { seen: () => String(descriptors()) });
    await until("memory is given back", () => residentMb() <= before.memory + 30, {
      limitMs: 90_000,
      seen: () => `${before.memory} MB before, ${residentMb()} MB now`,
    });
  });

  it("a runtime that goes away in the middle of a command is an error, not a hang", async () => {
    const exec = ["exec", "--state-dir", site.state, "web", "--"];
    const running = new Program([KUBELET, ...exec, "sh", "-c", "echo started; sleep 1000"]);
    await running.says("started");
    const script = encodeURIComponent("echo begun; sleep 1000");
    const path = "/exec/default/web-here/main?command=sh&command=-c";
    const socket = await ann.webSocket(`${path}&command=${script}&output=1&error=1`);
    await until("it runs", () => socket.text(1) === "begun\n");
    const forward = await ann.upgrade(
      "/portForward/default/web-here",
      { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": FORWARD_PROTOCOL },
      "POST",
    );
    assert.ok("socket" in forward);
    const forwarded = closing(forward.socket.resume());
    const [, pid] = /runtime containerd \S+ \(pid (\d+)/.exec(agent.stdout) ?? [];
    assert.ok(pid);
    process.kill(Number(pid), "SIGKILL");
    const { code, stderr } = await running.ended;
    assert.notEqual(code, 0);
    assert.match(stderr, /broke|ended/);
    let open = 2;
    for (const end of [socket.closed, forwarded]) void end.then(() => open--);
    await until("both are closed", () => open === 0);
    assert.doesNotMatch(socket.text(3), /"status":"Success"/);
    await until("commands run again", async () => (await kubelet([...exec, "true"])).code === 0);
  });
});

/** Resolves when it is closed, by whatever: `once` would reject after a reset. */
function closing(socket: Duplex): Promise<void> {
  return new Promise((resolve) => socket.on("close", () => resolve()));
}

/** Promise.withResolvers of newer Node releases. */
function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
