import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parse } from "yaml";
import { type AgentOptions, notActedOn, problemLines, type StartConfiguration } from "../config/index.ts";
import { SystemClock } from "../lib/clock.ts";
import { ProcessStreams } from "../lib/process-streams.ts";
import type { AgentLauncher } from "./launcher.ts";
import type { Output } from "./output.ts";
import { runCli } from "./run-cli.ts";

const dir = mkdtempSync(join(tmpdir(), "config-"));
after(() => rmSync(dir, { recursive: true }));
const { signal } = new AbortController();
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

function file(name: string, content: string): string {
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}
const a = file(
  "a.yaml",
  `${HEAD}maxPods: 5\nstaticPodURLHeader: {Secret: [hunter2]}\nenableContentionProfiling: true\n`,
);
const b = file("b.yaml", `${HEAD}maxPods: 6\n`);
const bad = file("bad.yaml", `${HEAD}maxPod: 5\nsyncFrequency: 1d\nport: 99999\n`);
const old = file(
  "old.yaml",
  "apiVersion: kubeletconfig/v1alpha1\nkind: KubeletConfiguration\npodManifestPath: /m\nnodeIP: 10.0.0.1\n",
);

async function cli(...argv: string[]) {
  const calls: { run?: AgentOptions; start?: StartConfiguration } = {};
  const launcher: Partial<AgentLauncher> = {
    lockConfigStore: async () => () => undefined,
    async run(options, { configuration }) {
      calls.run = options;
      calls.start = configuration;
      return 0;
    },
  };
  const texts = { out: "", err: "" };
  const output = (name: "out" | "err"): Output => ({
    isTerminal: false,
    color: false,
    isBroken: () => false,
    size: () => ({ columns: 80, rows: 24 }),
    onResize: () => undefined,
    send: async (text) => {
      texts[name] += text;
      return true;
    },
    write: () => undefined,
    drained: async () => undefined,
  });
  const clock = new SystemClock();
  const streams = new ProcessStreams(clock);
  const deps = { out: output("out"), err: output("err"), clock, streams, program: "kubelet" };
  // Only `run` of the launcher is called here.
  const code = await runCli(argv, { ...deps, launcher: launcher as AgentLauncher }, { signal });
  return { code, ...texts, ...calls };
}

test("the agent runs with its file, reports deprecated flags and settings without effect", async () => {
  const { code, err, run, start } = await cli("--config", a, "--max-pods=7", "--network-plugin=cni");
  assert.equal(code, 0, err);
  assert.deepEqual([run?.maxPods, run?.readOnlyPort, run?.enableContentionProfiling], [7, 0, true]);
  assert.equal(err, "Flag --max-pods has been deprecated: set maxPods in the file of --config.\n");
  assert.ok(start);
  assert.deepEqual(notActedOn(start.loaded), ["enableContentionProfiling"]);
  assert.match(problemLines(start.loaded.warnings).join(), /--network-plugin: .*is ignored/);
});

test("the agent does not start with an invalid file and reports all problems", async () => {
  const { code, err, run } = await cli("--config", bad, "--nope", "--v=x");
  assert.deepEqual([code, run], [1, undefined]);
  const lines = err.trim().split("\n");
  assert.equal(lines.length, 4, err);
  assert.match(err, /error: unknown flag --nope\n/);
  assert.match(err, new RegExp(`error: ${bad}:4: syncFrequency: must be a duration`));
});

test("the agent's file may be unreadable, a directory of manifests or a full one of 10 MiB", async () => {
  const locked = file("locked.yaml", HEAD);
  chmodSync(locked, 0);
  const unreadable = await cli("--config", locked);
  // Root reads everything.
  if (process.getuid?.() !== 0) assert.match(unreadable.err, /may not be read by this user/);
  const pods = join(dir, "pods");
  mkdirSync(pods);
  assert.equal((await cli("--config", pods)).run?.staticPodPath, pods);
  const big = file("big.yaml", `${HEAD}# ${"x".repeat(10 * 1024 * 1024)}\n`);
  assert.match((await cli("--config", big)).err, /has more than 10485760 bytes/);
  assert.match((await cli("--config", join(dir, "none.yaml"))).err, /none.yaml: is not there/);
  assert.match((await cli("--config-dir", a)).err, /a.yaml: is no directory/);
});

test("config view: values with their origin, secrets masked", async () => {
  const { code, out } = await cli("config", "view", "--config", a, "--max-pods=9");
  assert.equal(code, 0);
  assert.match(out, /^SETTING +VALUE +FROM +APPLIES\n/);
  assert.match(out, /\nmaxPods +9 +--max-pods +reload\n/);
  assert.match(out, /\nenableContentionProfiling +true +\S+a.yaml:5 +not acted on yet\n/);
  assert.doesNotMatch(out, /hunter2|\nregistryBurst/);
  assert.match((await cli("config", "view", "-a")).out, /\nregistryBurst +10 +default +live\n/);
  const list = JSON.parse((await cli("config", "view", "-ojson", "--config", a)).out) as Record<string, unknown>[];
  const { value, from, line } = list.find(({ field }) => field === "maxPods") ?? {};
  assert.deepEqual([value, from, line], [5, "file", 3]);
  assert.match((await cli("config", "view", "--container-runtime=rkt")).err, /rkt was removed/);
});

test("config validate: ok, or all problems, also unknown fields", async () => {
  const { code, out } = await cli("config", "validate", a, bad);
  assert.equal(code, 1);
  assert.match(out, /a.yaml: ok\n/);
  assert.match(out, /error: .*bad.yaml:3: maxPod: is no field of KubeletConfiguration .*did you mean maxPods/);
  assert.match(out, /bad.yaml:4: syncFrequency/);
  assert.match(out, /bad.yaml:5: port/);
  assert.equal((await cli("config", "validate", a, old)).code, 0);
  const [result] = JSON.parse((await cli("config", "validate", "-o=json", bad)).out) as { problems: unknown[] }[];
  assert.equal(result?.problems.length, 3);
  assert.match((await cli("config", "validate", dir)).out, /must be a file with a KubeletConfiguration/);
});

test("config defaults is a file that changes nothing", async () => {
  const { out } = await cli("config", "defaults");
  const path = file("defaults.yaml", out);
  assert.deepEqual(await cli("config", "validate", path).then(({ code }) => code), 0);
  assert.equal((await cli("config", "diff", path, file("empty.yaml", HEAD))).out, "No difference.\n");
  assert.equal(JSON.parse((await cli("config", "defaults", "-o", "json")).out).maxPods, 110);
});

test("config diff", async () => {
  const { code, out } = await cli("config", "diff", a, b);
  assert.equal(code, 1);
  assert.match(out, /\nmaxPods +5 +6\n/);
  assert.deepEqual(
    parse((await cli("config", "diff", "-oyaml", a, b)).out).find((one: { name: string }) => one.name === "maxPods"),
    { name: "maxPods", a: 5, b: 6 },
  );
});

test("config migrate: an old file or command line becomes an equivalent file of the current version", async () => {
  const { code, out, err } = await cli("config", "migrate", old);
  assert.equal(code, 0, err);
  assert.match(out, /^# stays on the command line: --node-ip=10.0.0.1\n/);
  const document = parse(out);
  assert.deepEqual([document.staticPodPath, document.readOnlyPort], ["/m", 10255]);
  assert.match(err, /warning: .*old.yaml:3: podManifestPath: ended with 1.9; it is staticPodPath now/);
  const flags = await cli("config", "migrate", "--", "--max-pods=4", "--low-diskspace-threshold-mb=100", "-v", "3");
  const path = file("migrated.yaml", flags.out);
  const { run } = await cli("--config", path);
  const direct = (await cli("--max-pods=4", "--low-diskspace-threshold-mb=100", "-v", "3")).run;
  assert.ok(run && direct);
  assert.deepEqual({ ...run, config: "" }, direct);
  assert.match((await cli("config", "migrate")).err, /needs a file, or flags after --/);
});

test("config without a subcommand or with an unknown one lists the subcommands", async () => {
  assert.match(
    (await cli("config")).err,
    /needs one of view, validate, defaults, diff, migrate, apply, rollback, history/,
  );
  assert.match((await cli("config", "vew")).err, /did you mean "config view"/);
  assert.match((await cli("config", "--help")).out, /Commands:\n {2}config view /);
  assert.match((await cli("help", "config", "diff")).out, /kubelet config diff A B/);
});

test("config apply, history and rollback work on the store while no agent runs", async () => {
  const store = join(dir, "dynamic");
  const place = ["--local-api-socket", join(dir, "none.sock"), "--dynamic-config-dir", store];
  assert.match((await cli("config", "history", ...place)).out, /No dynamic configuration/);
  const applied = await cli("config", "apply", a, ...place);
  assert.deepEqual([applied.code, applied.err], [0, ""]);
  assert.match((await cli("config", "history", ...place)).out, /file\/1\/kubelet .* trial +\S+a.yaml/);
  assert.match((await cli("config", "apply", bad, ...place)).err, /error: .*syncFrequency/);
  assert.match((await cli("config", "apply", join(dir, "nowhere"), ...place)).err, /nowhere/);
  assert.match((await cli("config", "apply", ...place)).err, /specify a FILE/);
  assert.equal((await cli("config", "rollback", ...place)).code, 0);
  assert.match((await cli("config", "rollback", ...place)).err, /local configuration is in force already/);
  const [entry] = JSON.parse((await cli("config", "history", "-ojson", ...place)).out) as { state: string }[];
  assert.equal(entry?.state, "rolled back");
});

test("without an agent and a store the commands name the missing flag", async () => {
  const socket = join(dir, "none.sock");
  const { code, err } = await cli("config", "apply", a, "--local-api-socket", socket);
  assert.equal(code, 1);
  assert.match(err, /no agent is running here .*--dynamic-config-dir/);
  assert.match((await cli("config", "view", "--running", "--local-api-socket", socket)).err, /no agent is running/);
  assert.match(
    (await cli("config", "view", "--running", "--max-pods=3")).err,
    /must not be combined with flags of the agent/,
  );
});
