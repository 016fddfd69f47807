import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parse } from "yaml";
import { type AgentOptions, parseOptions, type ReadDeps } from "../config/index.ts";
import { AbortedError } from "../lib/abort.ts";
import { SystemClock } from "../lib/clock.ts";
import { CodedError } from "../lib/errors.ts";
import { silent } from "../lib/log.ts";
import { ProcessStreams } from "../lib/process-streams.ts";
import { type AgentView, type LogRequest, localApiServer } from "../localapi/index.ts";
import type { PodEvent, PodExplanation, PodSummary } from "../model/step.ts";
import { podPath, socketCandidates } from "./agent-client.ts";
import type { AgentLauncher, DownOptions, RunningAgent, UpOptions } from "./launcher.ts";
import { type Output, wantsColor } from "./output.ts";
import { runCli } from "./run-cli.ts";
import { planUp, upOptions } from "./up-options.ts";

const dir = mkdtempSync(join(tmpdir(), "cli-"));
after(() => rmSync(dir, { recursive: true }));
const { signal } = new AbortController();

const web: PodSummary = {
  uid: "u1",
  name: "web-n1",
  namespace: "default",
  source: "file",
  state: "Running",
  phase: "Running",
  readyContainers: 1,
  totalContainers: 1,
  restarts: 0,
  ip: "10.88.0.2",
  seenAt: 0,
};
const started: PodEvent = {
  sequence: 1,
  type: "Normal",
  reason: "Started",
  message: "Container started",
  pod: web,
  count: 1,
  first: 0,
  last: 0,
};
const explanation: PodExplanation = {
  ...web,
  containers: [
    {
      name: "web",
      kind: "regular",
      image: "demo",
      id: "c",
      state: "running",
      reason: "",
      message: "",
      ready: true,
      restarts: 0,
    },
  ],
  steps: [],
  errors: [],
  events: [],
  warnings: [],
};
const asked: LogRequest[] = [];
const view: AgentView = {
  summaries: () => [web],
  summary: () => web,
  explain: () => explanation,
  events: (since) => (since < 1 ? [started] : []),
  onChange: () => undefined,
  logPath: () => "/log",
};
const logs = {
  async *read(request: LogRequest) {
    asked.push(request);
    yield Buffer.from([0xc3]);
    yield Buffer.from([0xbc, 0x0a]);
  },
};

const path = join(dir, "kubelet.sock");
const clock = new SystemClock();
const streams = new ProcessStreams(clock);
const node = async () => ({ node: "n1", conditions: [], signals: [], unmeasured: [], rankings: [], evictions: [] });
const usage = async () => ({
  node: { at: 1, workingSetBytes: 1, network: { rxBytes: 0, txBytes: 0 }, swap: { totalBytes: 0, freeBytes: 0 } },
  cores: 2,
  memoryBytes: 4,
  pods: [{ uid: "u1", name: "web-n1", namespace: "default", at: 1, workingSetBytes: 2, containers: [] }],
});
const pageLink = () => "http://127.0.0.1:4194/#login=abc";
const server = localApiServer(
  { view, logs, clock, node, usage, pageLink, log: silent },
  { path, nodeName: "n1", version: "v0" },
);
const serving = new AbortController();
const served = server.open().then(() => server.run(serving));
after(async () => {
  serving.abort();
  await served;
});

function fakeOutput(more: Partial<Output> = {}): Output & { text: string } {
  const out = {
    text: "",
    isTerminal: false,
    color: false,
    isBroken: () => false,
    size: () => ({ columns: 80, rows: 24 }),
    onResize: () => undefined,
    send: async (text: string) => {
      out.text += text;
      return true;
    },
    write: (text: string) => {
      out.text += text;
    },
    drained: async () => undefined,
    ...more,
  };
  return out;
}

interface Calls {
  run?: AgentOptions;
  up?: UpOptions;
  down?: DownOptions;
}

async function cli(
  argv: readonly string[],
  more: { out?: Partial<Output>; launcher?: Partial<AgentLauncher>; signal?: AbortSignal } = {},
) {
  const calls: Calls = {};
  const agent: RunningAgent = {
    view,
    runtime: "fake 1",
    ports: () => [],
    onPorts: () => undefined,
    pods: () => [],
    done: Promise.resolve(0),
  };
  const launcher: AgentLauncher = {
    lockConfigStore: async () => () => undefined,
    async run(options) {
      calls.run = options;
      return 7;
    },
    async up(options, { progress }) {
      calls.up = options;
      progress("getting ready");
      return agent;
    },
    async down(options, { progress }) {
      calls.down = options;
      progress("stopping pods");
    },
    ...more.launcher,
  };
  const out = fakeOutput(more.out);
  const err = fakeOutput();
  const code = await runCli(
    argv,
    { out, err, clock, launcher, streams, program: "kubelet" },
    { signal: more.signal ?? signal },
  );
  return { code, out: out.text, err: err.text, calls };
}

const at = ["--local-api-socket", path];

test("no sub-command is the agent, with its exit code", async () => {
  const { code, calls } = await cli(["--pod-manifest-path=/pods", "-v", "4"]);
  assert.equal(code, 7);
  assert.deepEqual([calls.run?.staticPodPath, calls.run?.verbosity], ["/pods", 4]);
  assert.equal((await cli([])).calls.run?.staticPodPath, "");
});

const refused = [
  { argv: ["pss"], says: 'error: unknown command "pss"; did you mean "ps"? (see kubelet --help)\n' },
  { argv: ["--nope"], says: "error: unknown flag --nope (see kubelet --help)\n" },
  {
    argv: ["--nope", "-v=x"],
    says: 'error: unknown flag --nope\nerror: invalid value "x" for -v: must be a whole number (see kubelet --help)\n',
  },
  { argv: ["ps", "extra"], says: 'error: unexpected word "extra" (see kubelet ps --help)\n' },
  { argv: ["explain"], says: "error: kubelet explain needs POD or --node (see kubelet explain --help)\n" },
  {
    argv: ["explain", "web", "--node"],
    says: "error: kubelet explain needs POD or --node (see kubelet explain --help)\n",
  },
  {
    argv: ["ps", "-o", "xml"],
    says: 'error: invalid value "xml" for -o: must be one of text, json, yaml (see kubelet ps --help)\n',
  },
  { argv: ["logs", "a/b/c", ...at], says: 'error: invalid pod "a/b/c": expected NAME or NAMESPACE/NAME\n' },
  { argv: ["explain", "wbe", ...at], says: 'error: pod "wbe" not found; there is default/web-n1\n' },
  { argv: ["logs", "web", "-c", "wbe", ...at], says: 'error: pod web-n1 has no container "wbe"; there is web\n' },
  {
    argv: ["up", "--apiserver=false"],
    says: /^error: up needs --pods DIR, the directory of pod manifests to run, or the local API/,
  },
  { argv: ["down", "--state-dir", "/var/lib"], says: /^error: \/var\/lib belongs to the system/ },
  {
    argv: ["ps", "--local-api-socket", join(dir, "none.sock")],
    says: /^error: no agent is running here \(tried .*none.sock\); start one with "kubelet up --pods DIR"/,
  },
];
for (const c of refused) {
  test(`refused: kubelet ${c.argv.slice(0, 3).join(" ").replace(dir, "")}`, async () => {
    const { code, out, err } = await cli(c.argv);
    assert.equal(code, 1);
    assert.equal(out, "");
    if (typeof c.says === "string") assert.equal(err, c.says);
    else assert.match(err, c.says);
  });
}

test("ps as text, JSON and YAML", async () => {
  assert.match((await cli(["ps", ...at])).out, /^NAMESPACE +NAME .*\ndefault +web-n1 +1\/1 +Running/);
  assert.deepEqual(JSON.parse((await cli(["ps", "-o", "json", ...at])).out), [web]);
  assert.deepEqual(parse((await cli(["ps", "-oyaml", ...at])).out), [web]);
});

test("explain and events as text and JSON", async () => {
  assert.match((await cli(["explain", "web", ...at])).out, /^Pod +default\/web-n1\n/);
  assert.equal((await cli(["explain", "--node", ...at])).out, "Node       n1\nPressure   none\n");
  assert.deepEqual(JSON.parse((await cli(["explain", "--node", "-ojson", ...at])).out), await node());
  assert.deepEqual(JSON.parse((await cli(["explain", "default/web-n1", "-ojson", ...at])).out), explanation);
  assert.match((await cli(["events", ...at])).out, /Normal +Started +default\/web-n1 +Container started/);
  assert.deepEqual(JSON.parse((await cli(["events", "-o=json", ...at])).out), [started]);
});

test("ps -w prints the pods and their changes until it is ended", async () => {
  const cases = [
    { argv: [], says: /web-n1 {2}state Running, 1\/1 ready, IP 10.88.0.2\n$/ },
    { argv: ["-ojson"], says: /^\{"set":\[\{"uid":"u1"/ },
    { argv: [], out: { isTerminal: true }, says: /^\rNAMESPACE .*\u001b\[K\ndefault +web-n1/ },
  ];
  for (const c of cases) {
    const controller = new AbortController();
    let text = "";
    const send = async (part: string): Promise<boolean> => {
      text += part;
      controller.abort(new AbortedError());
      return true;
    };
    const { code } = await cli(["ps", "-w", ...c.argv, ...at], { out: { send, ...c.out }, signal: controller.signal });
    assert.equal(code, 130);
    assert.match(text, c.says);
  }
});

test("top prints once without a terminal, and draws on one until it is ended", async () => {
  assert.match((await cli(["top", ...at])).out, /^CPU +- of 2 cores \(0 %\)\n[^]*\ndefault +web-n1 +- +2 +-\n$/);
  assert.doesNotMatch((await cli(["top", "--node", ...at])).out, /web-n1/);
  assert.deepEqual(JSON.parse((await cli(["top", "-o", "json", ...at])).out), await usage());
  const controller = new AbortController();
  let text = "";
  const send = async (part: string): Promise<boolean> => {
    text += part;
    controller.abort(new AbortedError());
    return true;
  };
  const { code } = await cli(["top", ...at], { out: { send, isTerminal: true }, signal: controller.signal });
  assert.equal(code, 130);
  assert.match(text, /^\rCPU .*\u001b\[K\n/);
});

test("open prints a login link, and on a terminal what it is", async () => {
  assert.equal((await cli(["open", ...at])).out, "http://127.0.0.1:4194/#login=abc\n");
  assert.match(
    (await cli(["open", ...at], { out: { isTerminal: true } })).out,
    /login=abc\nThe link opens the page once/,
  );
});

test("logs passes its options on and joins characters that arrive in pieces", async () => {
  const { code, out } = await cli(["logs", "-f", "--tail", "5", "web", "-c", "web", ...at]);
  assert.deepEqual([code, out], [0, "ü\n"]);
  assert.deepEqual([asked.at(-1)?.path, asked.at(-1)?.tail, asked.at(-1)?.follow !== undefined], ["/log", 5, true]);
});

test("a closed output ends the command quietly", async () => {
  const { code, err } = await cli(["logs", "web", ...at], { out: { send: async () => false } });
  assert.deepEqual([code, err], [0, ""]);
});

test("Ctrl-C ends a command quietly", async () => {
  const controller = new AbortController();
  controller.abort(new AbortedError());
  const { code, err } = await cli(["ps", ...at], { signal: controller.signal });
  assert.deepEqual([code, err], [130, ""]);
  const broken = await cli(["ps", ...at], { signal: controller.signal, out: { isBroken: () => true } });
  assert.equal(broken.code, 0, "no interruption when only the reader left");
});

test("help goes to stdout", async () => {
  for (const argv of [["--help"], ["-h"], ["help"]]) assert.match((await cli(argv)).out, /\nUsage:\n/);
  for (const argv of [
    ["logs", "-h"],
    ["help", "logs"],
  ])
    assert.match((await cli(argv)).out, /kubelet logs \[-f\]/);
});

test("the version is printed by flag and by command", async () => {
  assert.match((await cli(["--version", "-v=2"])).out, /^Kubernetes v1\./);
  assert.match((await cli(["--version=raw", "-v=2"])).out, /^\{"major"/);
  assert.match((await cli(["version"])).out, /^Kubernetes v1\./);
  assert.equal((await cli(["--version=false"])).code, 7);
});

test("up without a terminal prints plain lines and a final line", async () => {
  const { code, out, calls } = await cli(["up", "--pods", "/pods", "--state-dir", "/s", "-v2"]);
  assert.equal(code, 0);
  assert.match(out, /Z {2}kubelet {2}getting ready\n/);
  assert.match(out, /Z {2}web-n1 {2}state Running, 1\/1 ready, IP 10.88.0.2\n/);
  assert.match(out, /1 pod keeps running.*kubelet down --state-dir \/s\n$/);
  assert.equal(calls.up?.agent.verbosity, 2);
});

test("up on a terminal draws the view", async () => {
  const { code, out } = await cli(["up", "--pods", "/pods"], { out: { isTerminal: true } });
  assert.equal(code, 0);
  assert.match(out, /● web-n1 {2}Running {2}10.88.0.2/);
});

test("a failure of up that has a code is one line", async () => {
  const up = async (): Promise<never> => {
    throw new CodedError("Locked", "the state directory is held\nby pid 12");
  };
  const { code, err } = await cli(["up", "--pods", "/pods"], { launcher: { up } });
  assert.deepEqual([code, err], [1, "error: the state directory is held by pid 12\n"]);
});

test("an internal error is not shown as a user error", async () => {
  const run = async (): Promise<never> => {
    throw new TypeError("x is undefined");
  };
  await assert.rejects(cli([], { launcher: { run } }), TypeError);
});

test("down says what it does", async () => {
  const { code, out, calls } = await cli(["down", "--state-dir", "/s"]);
  assert.deepEqual([code, out], [0, "stopping pods\nNothing is left of /s.\n"]);
  assert.deepEqual(calls.down, { stateDir: "/s", runtimeEndpoint: undefined });
});

const noFiles: ReadDeps = {
  files: { stat: async () => undefined, list: async () => [], read: () => Promise.reject(new Error("no such file")) },
  parse: async () => ({ documents: [], warnings: [] }),
};

test("up takes a configuration file and drop-ins; it decides directories and runtime itself", async () => {
  const config = join(dir, "config.yaml");
  const dropIns = join(dir, "conf.d");
  mkdirSync(dropIns);
  const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  writeFileSync(
    config,
    `${head}maxPods: 7\nregistryBurst: 3\nstaticPodPath: /elsewhere\nevictionHard: {pid.available: 5%}\n`,
  );
  writeFileSync(join(dropIns, "10-a.conf"), `${head}registryBurst: 4\n`);
  const argv = [
    "up",
    "--pods=/p",
    "--state-dir=/s",
    `--config=${config}`,
    `--config-dir=${dropIns}`,
    "--event-burst=6",
  ];
  const { calls, code, err } = await cli(argv);
  assert.equal(code, 0, err);
  const { agent, warnings } = calls.up ?? assert.fail("up was not called");
  assert.deepEqual([agent.maxPods, agent.registryBurst, agent.eventBurst], [7, 4, 6]);
  assert.deepEqual([agent.staticPodPath, agent.rootDir], ["/p", "/s/kubelet"]);
  assert.deepEqual([agent.address, agent.anonymousAuth, agent.authorizationMode], ["127.0.0.1", false, "AlwaysAllow"]);
  assert.deepEqual(warnings, ["staticPodPath: ignored, `kubelet up` decides it"]);
  writeFileSync(config, `${head}address: 0.0.0.0\nmaxPods: many\n`);
  const bad = await cli(argv);
  assert.equal(bad.code, 1);
  assert.match(bad.err, /config\.yaml:4: maxPods/);
  writeFileSync(config, `${head}address: 0.0.0.0\n`);
  assert.equal((await cli(argv)).calls.up?.agent.address, "0.0.0.0");
});

test("everything that up makes lies under the state directory", async () => {
  const argv = ["--pods=/p", "--state-dir=/s", "--max-parallel-image-pulls=3"];
  const plan = await planUp(parseOptions(argv, upOptions), noFiles, { signal });
  const { agent } = plan;
  assert.deepEqual(
    [plan.stateDir, plan.containerLogsDir, plan.logFile, agent.rootDir, agent.podLogsDir, agent.localApiSocket],
    ["/s", "/s/log/containers", "/s/kubelet.log", "/s/kubelet", "/s/log/pods", "/s/kubelet.sock"],
  );
  assert.deepEqual([agent.staticPodPath, agent.address, agent.serializeImagePulls], ["/p", "127.0.0.1", false]);
  assert.equal(plan.runtimeEndpoint, undefined);
});

const places = [
  { name: "a named socket is the only one", given: { localApiSocket: "/x" }, want: ["/x"] },
  { name: "that of up goes before the plain agent's", given: {}, want: ["/s/kubelet.sock", "/r/kubelet.sock"] },
  { name: "a named state directory is the only one", given: { stateDirGiven: true }, want: ["/s/kubelet.sock"] },
];
for (const c of places) {
  test(`the agent's socket: ${c.name}`, () => {
    const place = { localApiSocket: "", stateDir: "/s", rootDir: "/r", stateDirGiven: false, ...c.given };
    assert.deepEqual(socketCandidates(place), c.want);
  });
}

test("a pod's name cannot leave its place in the path", () => {
  assert.equal(podPath("pods", "a b"), "/v1/pods/a%20b");
  for (const name of ["", "../x", "a/..", "/a", "a/b/c"]) assert.throws(() => podPath("pods", name), /invalid pod/);
});

const colours = [
  { isTerminal: true, env: {}, want: true },
  { isTerminal: false, env: {}, want: false },
  { isTerminal: true, env: { NO_COLOR: "1" }, want: false },
  { isTerminal: true, env: { NO_COLOR: "" }, want: true },
  { isTerminal: true, env: { TERM: "dumb" }, want: false },
];
for (const c of colours) {
  test(`colours on ${JSON.stringify(c)}`, () => assert.equal(wantsColor(c.isTerminal, c.env), c.want));
}

test("up opens the page unless it is told not to", async () => {
  const argv = ["up", "--pods", dir, "--state-dir", join(dir, "state")];
  assert.equal((await cli(argv)).calls.up?.agent.cadvisorPort, 4194);
  assert.equal((await cli([...argv, "--cadvisor-port", "0"])).calls.up?.agent.cadvisorPort, 0);
});
