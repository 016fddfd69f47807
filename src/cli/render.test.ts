import assert from "node:assert/strict";
import { test } from "node:test";
import { displayWidth } from "../lib/table.ts";
import type { PodEvent, PodExplanation, PodStep, PodSummary } from "../model/step.ts";
import { commands } from "./commands.ts";
import { eventLine, renderEvents } from "./events.ts";
import { commandHelp, generalHelp } from "./help.ts";
import { PlainView } from "./plain-view.ts";
import { renderPods } from "./ps.ts";
import { renderExplanation } from "./render-explanation.ts";
import { renderView } from "./render-view.ts";
import type { ViewModel } from "./view-model.ts";

const now = Date.UTC(2026, 0, 2, 3, 5, 0);
const at = (secondsAgo: number): number => now - secondsAgo * 1000;
const plain = { now, color: false };

function pod(name: string, more: Partial<PodSummary> = {}): PodSummary {
  const counts = { readyContainers: 1, totalContainers: 1, restarts: 0 };
  const state = { source: "file", state: "Running", phase: "Running", ip: "10.88.0.2", seenAt: at(60) };
  return { uid: name, name, namespace: "default", ...counts, ...state, ...more };
}

const web = pod("web-n1", { startedAt: at(58), step: { step: "running", since: at(58), detail: "" } });
const shared = pod("shared-n1", {
  state: "Pending",
  phase: "Pending",
  readyContainers: 0,
  totalContainers: 2,
  ip: "",
  step: { step: "pull", container: "init", since: at(10), detail: "demo:1" },
});
const crash = pod("crash-n1", {
  state: "CrashLoopBackOff",
  readyContainers: 0,
  restarts: 4,
  ip: "10.88.0.4",
  startedAt: at(57),
  step: { step: "backoff", container: "crash", since: at(5), detail: "exited with 1" },
  next: { at: at(-20), why: "crash back-off" },
});

const model: ViewModel = {
  title: "kubelet v1",
  stateDir: "/state",
  logFile: "/state/kubelet.log",
  runtime: "containerd 1.6.20 (pid 12)",
  ports: [
    { name: "health", address: "127.0.0.1:10248", trouble: undefined },
    { name: "read-only", address: undefined, trouble: "port 10255 (--read-only-port) is taken by nginx (pid 3)" },
  ],
  kubeconfig: "/state/kubeconfig",
  starting: undefined,
  pods: [web, shared, crash],
  urls: ["http://10.88.0.2:8080"],
  program: "bin/kubelet",
  flags: "",
};
const size = { columns: 80, rows: 24, color: false };

test("the live view shows ports, each pod with what it does, and what to try", () => {
  assert.deepEqual(renderView(model, now, size), [
    "kubelet v1  containerd 1.6.20 (pid 12)",
    "  health    http://127.0.0.1:10248/healthz",
    "  read-only port 10255 (--read-only-port) is taken by nginx (pid 3)",
    "  state     /state  log /state/kubelet.log",
    "",
    "  ✗ crash-n1   CrashLoopBackOff  10.88.0.4  next try in 20s, waiting to restart…",
    "  ◌ shared-n1  Pending                      pulling image init (10s): demo:1",
    "  ● web-n1     Running           10.88.0.2  started in 2s",
    "",
    "  curl http://10.88.0.2:8080    talk to a pod",
    "  bin/kubelet ps                list the pods",
    "  bin/kubelet logs -f web-n1    read along",
    "  bin/kubelet explain crash-n1  what it does and why",
    "  Ctrl-C                        stops the agent, not the pods",
    "  bin/kubelet down              removes everything",
  ]);
});

test("the live view shows the sockets of plugins as what they are", () => {
  const socket = "/state/kubelet/device-plugins/kubelet.sock";
  const ports = [...model.ports, { name: "device plugins", address: socket, trouble: undefined }];
  const lines = renderView({ ...model, ports }, now, size);
  assert.deepEqual(lines.slice(1, 5), [
    "  health         http://127.0.0.1:10248/healthz",
    "  read-only      port 10255 (--read-only-port) is taken by nginx (pid 3)",
    `  device plugins ${socket}`,
    "  state          /state  log /state/kubelet.log",
  ]);
});

test("a running pull shows bytes, rate and remaining time in every view, before what may be cut", () => {
  const MIB = 1024 * 1024;
  const progress = { doneBytes: 12 * MIB, totalBytes: 80 * MIB, bytesPerSecond: 4 * MIB, remainingMs: 17_400 };
  const detail = "r.example.com/demo:1: pulling";
  const pulling = { ...shared, step: { step: "pull", container: "init", since: at(10), detail, progress } as const };
  const words = "pulling image init (10s), 12Mi of 80Mi, 4.0Mi/s, 17s left: r.example.com/demo:1: pulling";
  const lines = renderView({ ...model, pods: [pulling] }, now, { ...size, columns: 160 });
  assert.ok(
    lines.some((line) => line.endsWith(words)),
    lines.join("\n"),
  );
  assert.ok(renderPods([pulling], plain).includes(words));
  const explained = { containers: [], steps: [pulling.step], errors: [], events: [], warnings: [] };
  const text = renderExplanation({ ...pulling, ...explained }, { ...plain, columns: 200 });
  assert.match(
    text,
    /Now +pulling image init, 12Mi of 80Mi, 4\.0Mi\/s, 17s left: r\.example\.com\/demo:1: pulling \(for 10s\)/,
  );
  assert.match(text, /pull init .* r\.example\.com\/demo:1: pulling, 12Mi of 80Mi, 4\.0Mi\/s, 17s left/);
  const passing = { ...pulling, type: "Normal", reason: "PullProgress", message: detail, pod: pulling } as const;
  const event = { ...passing, sequence: 1, count: 1, first: at(10), last: now, progress };
  assert.ok(eventLine(event, false).endsWith(`${detail}, 12Mi of 80Mi, 4.0Mi/s, 17s left\n`));
});

test("what is not known of a pull is left out", () => {
  const cases = [
    [{ doneBytes: 0 }, "pulling image init (10s): demo:1"],
    [{ doneBytes: 0, totalBytes: 0 }, "pulling image init (10s): demo:1"],
    [{ doneBytes: 512, totalBytes: 1024 }, "pulling image init (10s), 512 of 1.0Ki: demo:1"],
    [{ doneBytes: 512, totalBytes: 1024, bytesPerSecond: 0 }, "pulling image init (10s), 512 of 1.0Ki, 0/s: demo:1"],
    [{ doneBytes: 1024, totalBytes: 1024, bytesPerSecond: 9 }, "pulling image init (10s), 1.0Ki of 1.0Ki: demo:1"],
  ] as const;
  for (const [progress, words] of cases) {
    const step = { step: "pull", container: "init", since: at(10), detail: "demo:1", progress } as const;
    assert.ok(
      renderPods([{ ...shared, step }], plain)
        .trimEnd()
        .endsWith(words),
      words,
    );
  }
});

test("a pod that is not wanted any more is not said to have taken 50 years to start", () => {
  const lines = renderView({ ...model, pods: [{ ...web, seenAt: 0 }] }, now, size);
  assert.ok(
    lines.some((text) => /web-n1 .* up since 20/.test(text)),
    lines.join("\n"),
  );
});

test("the main port speaks TLS", () => {
  const ports = [{ name: "main", address: "127.0.0.1:10250", trouble: undefined }];
  const lines = renderView({ ...model, ports }, now, size);
  assert.equal(lines[1], "  main      https://127.0.0.1:10250/pods");
});

test("the local API is shown with the command that talks to it, once it listens", () => {
  const open = [{ name: "API", address: "127.0.0.1:6443", trouble: undefined }];
  const hint = "kubectl --kubeconfig /state/kubeconfig get pods";
  const lines = renderView({ ...model, ports: open }, now, size);
  assert.equal(lines[1], "  API       https://127.0.0.1:6443");
  assert.ok(lines.includes(`  ${hint}  the same from kubectl`), lines.join("\n"));
  const closed = [{ name: "API", address: undefined, trouble: "port 6443 is taken" }];
  assert.ok(
    !renderView({ ...model, ports: closed }, now, size)
      .join("\n")
      .includes("kubectl"),
  );
  const view = new PlainView({ kubeconfig: "/state/kubeconfig" });
  assert.match(view.ports(open, now)[0] ?? "", new RegExp(`API {2}listening on 127\\.0\\.0\\.1:6443: ${hint}\\n$`));
});

test("while the agent starts, the view shows the current step", () => {
  const starting = {
    ...model,
    ports: [],
    pods: [],
    urls: [],
    runtime: "",
    starting: { text: "starting containerd", since: at(3) },
  };
  assert.deepEqual(renderView(starting, now, size), [
    "kubelet v1",
    "  state     /state  log /state/kubelet.log",
    "",
    "  … starting containerd (3s)",
    "",
    "  no pods yet",
  ]);
});

test("a state directory of one's own is in every hint", () => {
  const lines = renderView({ ...model, flags: "--state-dir /state" }, now, size);
  assert.ok(lines.some((line) => line.includes("bin/kubelet ps --state-dir /state")));
});

test("with more pods than rows, those with a running step are shown", () => {
  const many = Array.from({ length: 50 }, (_, index) => ({
    ...web,
    uid: `u${index}`,
    name: `web-${String(index).padStart(2, "0")}`,
  }));
  const lines = renderView({ ...model, pods: [...many, crash, shared] }, now, size);
  assert.ok(lines.length < size.rows);
  assert.ok(lines.some((line) => line.includes("crash-n1")) && lines.some((line) => line.includes("shared-n1")));
  assert.ok(
    lines.some((line) => line.includes("… and 42 more (42 Running)")),
    lines.join("\n"),
  );
});

test("no line is wider than the terminal and no frame higher, however small", () => {
  const wide = pod("ünï-日本語-🚀", { step: { step: "pull", since: at(1), detail: "日本語".repeat(40) } });
  for (const columns of [1, 2, 5, 20, 40, 79, 80, 200]) {
    for (const rows of [2, 5, 10, 24, 100]) {
      const lines = renderView({ ...model, pods: [wide, web, crash] }, now, { columns, rows, color: false });
      assert.ok(lines.length < rows || lines.length === 1, `${lines.length} lines in ${rows} rows`);
      for (const line of lines) assert.ok(displayWidth(line) <= columns, `${columns}: ${line}`);
    }
  }
});

test("text from outside cannot move the cursor", () => {
  const evil = pod("web", { step: { step: "pull", since: at(1), detail: "\u001b[2J\nx" } });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  const control = /[\u0000-\u001f]/;
  for (const line of renderView({ ...model, pods: [evil] }, now, size)) assert.doesNotMatch(line, control);
  for (const line of new PlainView({ kubeconfig: "/s/kubeconfig" }).pods([evil], now))
    assert.doesNotMatch(line.trimEnd(), control);
  for (const line of renderPods([evil], plain).split("\n")) assert.doesNotMatch(line, control);
});

test("colours only when asked for", () => {
  assert.ok(
    renderView(model, now, { ...size, color: true })
      .join("")
      .includes("\u001b["),
  );
  assert.ok(!renderView(model, now, size).join("").includes("\u001b["));
});

test("ps is a table by name", () => {
  assert.equal(
    renderPods([web, shared, crash], plain),
    `NAMESPACE   NAME        READY   STATE              RESTARTS   IP          AGE   NOW
default     crash-n1    0/1     CrashLoopBackOff   4          10.88.0.4   57s   next try in 20s, waiting to restart crash (5s): exited with 1
default     shared-n1   0/2     Pending            0          -           1m    pulling image init (10s): demo:1
default     web-n1      1/1     Running            0          10.88.0.2   58s
`,
  );
  assert.equal(renderPods([], plain), "No pods.\n");
});

const event = (sequence: number, more: Partial<PodEvent> = {}): PodEvent => ({
  sequence,
  type: "Normal",
  reason: "Started",
  message: "Container started",
  pod: crash,
  count: 1,
  first: at(50),
  last: at(50),
  ...more,
});
const backOff = event(2, {
  type: "Warning",
  reason: "BackOff",
  message: "Back-off restarting",
  container: "crash",
  count: 3,
  last: at(9),
});

test("events are a table, oldest first, with counts", () => {
  assert.equal(
    renderEvents([backOff, event(1)], plain),
    `LAST SEEN   TYPE      REASON    POD                      MESSAGE
50s         Normal    Started   default/crash-n1         Container started
9s          Warning   BackOff   default/crash-n1 crash   Back-off restarting (3 times)
`,
  );
  assert.equal(renderEvents([], plain), "No events.\n");
});

test("a watched event is a line", () => {
  const want = "2026-01-02T03:04:51Z  Warning  BackOff  default/crash-n1  Back-off restarting (3 times)\n";
  assert.equal(eventLine(backOff, false), want);
});

const steps: PodStep[] = [
  { step: "admitted", since: at(59), until: at(59) + 1, outcome: "ok", detail: "" },
  { step: "sandbox", since: at(59) + 1, until: at(59) + 200, outcome: "ok", detail: "" },
  {
    step: "pull",
    container: "crash",
    since: at(59) + 200,
    until: at(58) + 200,
    outcome: "failed",
    detail: "not found",
  },
  { step: "create", container: "crash", since: at(58) + 300, until: at(58) + 400, outcome: "ok", detail: "" },
  { step: "running", since: at(58) + 400, detail: "" },
];
const explanation: PodExplanation = {
  ...crash,
  steps,
  containers: [
    {
      name: "crash",
      kind: "regular",
      image: "demo:1",
      id: "c",
      state: "waiting",
      reason: "CrashLoopBackOff",
      message: "",
      ready: false,
      restarts: 4,
      since: at(5),
      exitCode: 1,
    },
  ],
  errors: [{ step: "pull", container: "crash", message: "demo:1:\n not found", count: 3, first: at(59), last: at(58) }],
  warnings: ["spec.colour is unknown"],
  events: [event(1), backOff],
};

test("explain shows state, step, next retry, history and errors", () => {
  assert.equal(
    renderExplanation(explanation, { ...plain, columns: 80 }),
    `Pod        default/crash-n1
State      CrashLoopBackOff, 0 of 1 ready, 4 restarts, IP 10.88.0.4
Now        waiting to restart crash: exited with 1 (for 5s)
Next try   in 20s, crash back-off
From       file, seen 1m ago
UID        crash-n1

Steps
  admitted      ━                         1ms
  sandbox       ━━━━                      199ms
  pull crash       ━━━━━━━━━━━━━━━━━━     1s     failed  not found
  create crash                        ━━  100ms
  running                              ━  57s …

Containers
  crash   waiting: CrashLoopBackOff, exit 1   5s   4 restarts   demo:1

Errors
  pull crash (3 times, first 59s ago, last 58s ago)
    demo:1: not found

Warnings
  spec.colour is unknown

Events
  50s   Normal    Started   Container started
  9s    Warning   BackOff   Back-off restarting (3 times)
`,
  );
});

test("explain shows the local storage of a pod, and what is over its limit", () => {
  const usage = { bytes: 3 * 2 ** 20, inodes: 1, at: now, by: "walk" } as const;
  const part = { isMemory: false, usage };
  const storage = {
    parts: [
      { ...part, kind: "emptyDir", name: "cache", sizeLimit: 2 ** 20 },
      { ...part, kind: "emptyDir", name: "fast", isMemory: true, usage: { ...usage, by: "filesystem" } },
      { ...part, kind: "emptyDir", name: "own", usage: { ...usage, by: "quota" } },
      { kind: "emptyDir", name: "new", isMemory: false },
      { ...part, kind: "log", name: "app", usage: { ...usage, bytes: 0 } },
      { ...part, kind: "layer", name: "app", usage: { ...usage, bytes: 8192, by: "runtime" } },
      { ...part, kind: "file", name: "etc-hosts" },
      { ...part, kind: "file", name: "termination-log", usage: { ...usage, bytes: 8192 } },
    ],
    bytes: 3 * 2 ** 20 + 8192,
    inodes: 3,
    isFresh: false,
  } as const;
  const bare = { ...pod("new"), containers: [], steps: [], errors: [], warnings: [], events: [], storage };
  const shown = renderExplanation(bare, { ...plain, columns: 80 });
  assert.match(
    shown,
    /\nStorage\n {2}emptyDir cache +3\.0Mi +of 1\.0Mi +walked\n {2}emptyDir fast +3\.0Mi +in memory\n {2}emptyDir own +3\.0Mi +counted by quota\n {2}emptyDir new +not measured yet\n {2}layer of app +8\.0Ki\n {2}file etc-hosts +3\.0Mi\n {2}all on disk +3\.0Mi, still being measured\n$/,
  );
  assert.match(renderExplanation(bare, { ...plain, color: true, columns: 80 }), /\u001b\[31m3\.0Mi/);
});

test("a pod with no history is explained too", () => {
  const bare = { ...pod("new"), containers: [], steps: [], errors: [], warnings: [], events: [] };
  assert.match(renderExplanation(bare, { ...plain, columns: 80 }), /^Pod +default\/new\n/);
});

test("without a terminal each change is one line", () => {
  const view = new PlainView({ kubeconfig: "/s/kubeconfig" });
  const starting = pod("web", { state: "Pending", ip: "", step: { step: "sandbox", since: at(1), detail: "" } });
  const ended = {
    ...starting,
    step: { step: "sandbox", since: at(1), until: at(0.5), outcome: "ok", detail: "" },
  } as const;
  const running = pod("web", { step: { step: "running", since: at(0), detail: "" } });
  const time = "2026-01-02T03:05:00Z  web";
  assert.deepEqual(view.pods([starting], now), [`${time}  making sandbox\n`, `${time}  state Pending, 1/1 ready\n`]);
  assert.deepEqual(view.pods([starting], now), []);
  assert.deepEqual(view.pods([ended], now), [`${time}  making sandbox (ok, took 500ms)\n`]);
  assert.deepEqual(view.pods([running], now), [
    `${time}  running\n`,
    `${time}  state Running, 1/1 ready, IP 10.88.0.2\n`,
  ]);
  assert.deepEqual(view.pods([], now), [`${time}  gone\n`]);
  assert.deepEqual(view.ports(model.ports, now).length, 2);
  assert.deepEqual(view.ports(model.ports, now), []);
});

test("help fits 80 columns and names every command", () => {
  const texts = [generalHelp(commands), ...commands.map(commandHelp)];
  for (const line of texts.join("").split("\n")) assert.ok(line.length <= 80, line);
  for (const { name } of commands) assert.match(texts[0] ?? "", new RegExp(`^  ${name} `, "m"));
});
