import assert from "node:assert/strict";
import { posix } from "node:path";
import { test } from "node:test";
import { SystemClock } from "../lib/clock.ts";
import { CodedError } from "../lib/errors.ts";
import { parseDocuments } from "../lib/yaml.ts";
import { type LoadedConfiguration, loadConfiguration, notActedOn, problemLines } from "./load.ts";
import { showOrigin } from "./origin.ts";
import { type ReadDeps, readInputs } from "./read.ts";

const clock = new SystemClock();
const { signal } = new AbortController();
const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

/** Files by path; a path that ends in "/" is an empty directory. */
function deps(files: Readonly<Record<string, string>>): ReadDeps {
  const paths = Object.keys(files);
  const isDirectory = (path: string): boolean => paths.some((each) => each.startsWith(`${path}/`));
  const missing = (): never => {
    throw new CodedError("ENOENT", "no such file");
  };
  return {
    files: {
      stat: async (path) => (isDirectory(path) ? { kind: "directory" } : path in files ? { kind: "file" } : undefined),
      list: async (path) => [
        ...new Set(
          paths
            .filter((each) => each.startsWith(`${path}/`))
            .map((each) => each.slice(path.length + 1).split("/")[0] ?? "")
            .filter((name) => name !== ""),
        ),
      ],
      read: async (path) => files[path] ?? missing(),
    },
    parse: (text, options) => parseDocuments(text, { ...options, clock, lines: true }),
  };
}

async function load(
  argv: readonly string[],
  files: Readonly<Record<string, string>> = {},
): Promise<LoadedConfiguration> {
  return loadConfiguration(await readInputs(argv, deps(files), { signal }));
}

async function loadFile(body: string, more: readonly string[] = []): Promise<LoadedConfiguration> {
  return load(["--config=/etc/k/config.yaml", ...more], { "/etc/k/config.yaml": HEAD + body });
}

const origin = ({ provenance }: LoadedConfiguration, name: Parameters<typeof provenance.get>[0]): string => {
  const found = provenance.get(name);
  assert.ok(found);
  return showOrigin(found.origin);
};

test("a file brings its own defaults; without one the old ones hold", async () => {
  const { values, problems } = await loadFile("");
  assert.deepEqual(problems, []);
  assert.deepEqual(
    [values.readOnlyPort, values.anonymousAuth, values.webhookAuthentication, values.authorizationMode],
    [0, false, true, "Webhook"],
  );
  assert.equal(values.evictionHard["memory.available"], "100Mi");
  const without = await load(["--kubeconfig=/k"]);
  assert.deepEqual(
    [without.values.readOnlyPort, without.values.anonymousAuth, without.values.address, without.values.evictionHard],
    [10255, true, "0.0.0.0", {}],
  );
});

const standalone: { argv: string[]; file?: string; want: [anonymousAuth: boolean, address: string] }[] = [
  { argv: ["--pod-manifest-path=/m"], want: [false, "127.0.0.1"] },
  { argv: ["--pod-manifest-path=/m", "--address=0.0.0.0"], want: [false, "0.0.0.0"] },
  { argv: ["--pod-manifest-path=/m", "--authorization-mode=AlwaysAllow"], want: [false, "127.0.0.1"] },
  { argv: ["--pod-manifest-path=/m", "--anonymous-auth=true"], want: [true, "127.0.0.1"] },
  { argv: ["--pod-manifest-path=/m", "--anonymous-auth=false"], want: [false, "127.0.0.1"] },
  { argv: ["--pod-manifest-path=/m", "--api-servers=https://a"], want: [true, "0.0.0.0"] },
  { argv: ["--pod-manifest-path=/m", "--kubeconfig=/k"], want: [true, "0.0.0.0"] },
  { argv: ["--config=/c.yaml"], file: "staticPodPath: /m\n", want: [false, "0.0.0.0"] },
  { argv: ["--config=/c.yaml"], file: "authentication: {anonymous: {enabled: true}}\n", want: [true, "0.0.0.0"] },
];
for (const { argv, file, want } of standalone) {
  const name = `${argv.join(" ")}${file === undefined ? "" : `, file ${file.trim()}`}`;
  test(`anonymous requests and the address of the ports: ${name}`, async () => {
    const { values, problems } = await load(argv, file === undefined ? {} : { "/c.yaml": HEAD + file });
    assert.deepEqual(problems, []);
    assert.deepEqual([values.anonymousAuth, values.address], want);
  });
}

test("a read-only port that others can reach without an API server is warned about", async () => {
  const messages = async (...argv: string[]) => (await load(argv)).warnings.map(({ message }) => message);
  const want = ["port 10255 shows pods to everybody who can reach 0.0.0.0"];
  assert.deepEqual(await messages("--pod-manifest-path=/m", "--address=0.0.0.0"), want);
  assert.deepEqual(await messages("--pod-manifest-path=/m", "--address=0.0.0.0", "--read-only-port=0"), []);
  assert.deepEqual(await messages("--pod-manifest-path=/m"), []);
});

test("flags go over drop-ins over the file over defaults, and each value knows where it came from", async () => {
  const loaded = await load(["--config=/c.yaml", "--config-dir=/d", "--registry-burst=4"], {
    "/c.yaml": `${HEAD}maxPods: 1\nregistryPullQPS: 1\nregistryBurst: 1\nkubeAPIBurst: 1\n`,
    "/d/10-a.conf": `${HEAD}registryPullQPS: 2\nregistryBurst: 2\neventBurst: 2\n`,
    "/d/20-b.conf": `${HEAD}\nregistryBurst: 3\neventBurst: 3\n`,
    "/d/notes.txt": "not read",
  });
  assert.deepEqual(loaded.problems, []);
  const { maxPods, registryPullQPS, registryBurst, eventBurst, kubeAPIQPS } = loaded.values;
  assert.deepEqual([maxPods, registryPullQPS, registryBurst, eventBurst, kubeAPIQPS], [1, 2, 4, 3, 50]);
  assert.deepEqual(
    (["maxPods", "registryPullQPS", "registryBurst", "eventBurst", "kubeAPIQPS"] as const).map((name) =>
      origin(loaded, name),
    ),
    ["/c.yaml:3", "/d/10-a.conf:3", "--registry-burst", "/d/20-b.conf:5", "default"],
  );
});

test("a zero means the default, but not in a nullable field", async () => {
  const { values } = await loadFile("port: 0\nmaxPods: 0\nsyncFrequency: 0s\nregistryPullQPS: 0\nresolvConf: ''\n");
  assert.deepEqual(
    [values.port, values.maxPods, values.syncFrequency, values.registryPullQPS, values.resolvConf],
    [10250, 110, 60_000, 0, ""],
  );
});

test("null in a file is the same as nothing", async () => {
  const { values, problems } = await loadFile("maxPods: null\nauthentication: null\nevictionHard: null\nlogging:\n");
  assert.deepEqual(problems, []);
  assert.equal(values.maxPods, 110);
  assert.equal(values.evictionHard["nodefs.available"], "10%");
});

test("relative paths start at the file, in the file only", async () => {
  const files = {
    "/etc/k/c.yaml": `${HEAD}staticPodPath: pods\nresolvConf: r.conf\nauthentication: {x509: {clientCAFile: ../ca.pem}}\n`,
    "/d/a.conf": `${HEAD}tlsCertFile: c.pem\ntlsPrivateKeyFile: k.pem\n`,
  };
  const { values, problems } = await load(
    ["--config", "/etc/k/c.yaml", "--config-dir=/d", "--volume-plugin-dir=v"],
    files,
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(
    [values.staticPodPath, values.resolvConf, values.clientCAFile, values.tlsCertFile, values.volumePluginDir],
    ["/etc/k/pods", "/etc/k/r.conf", "/etc/ca.pem", "c.pem", "v"],
  );
  const relative = await load(["--config=c.yaml"], { "c.yaml": `${HEAD}staticPodPath: pods\n` });
  assert.equal(relative.values.staticPodPath, posix.resolve("pods"));
});

test("every signal of Kubernetes may have a threshold, also that of what all pods may use", async () => {
  const soft = "evictionSoft: {allocatableMemory.available: 180Mi}\n";
  const { values, problems } = await loadFile(`${soft}evictionSoftGracePeriod: {allocatableMemory.available: 6s}\n`);
  assert.deepEqual([values.evictionSoft, problems], [{ "allocatableMemory.available": "180Mi" }, []]);
});

test("hard eviction: as the file has it, with the defaults if asked, over them in drop-ins, alone by flag", async () => {
  assert.deepEqual((await loadFile("evictionHard: {memory.available: 5%}\n")).values.evictionHard, {
    "memory.available": "5%",
  });
  const merged = await loadFile("evictionHard:\n  memory.available: 5%\nmergeDefaultEvictionSettings: true\n");
  assert.equal(merged.values.evictionHard["imagefs.available"], "15%");
  assert.equal(merged.values.evictionHard["memory.available"], "5%");
  const drop = await load(["--config=/c", "--config-dir=/d"], {
    "/c": HEAD,
    "/d/a.conf": `${HEAD}evictionHard:\n  memory.available: 1Gi\n  nodefs.available: null\n`,
  });
  assert.deepEqual(drop.values.evictionHard, {
    "memory.available": "1Gi",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
  });
  const parts = drop.provenance.get("evictionHard")?.parts;
  assert.deepEqual(parts?.get("memory.available"), { from: "drop-in", file: "/d/a.conf", line: 4 });
  const flag = await loadFile("evictionHard: {memory.available: 5%}\n", ["--eviction-hard=nodefs.available<1%"]);
  assert.deepEqual(flag.values.evictionHard, { "nodefs.available": "1%" });
});

test("gates of flag and file are united and the flag wins; other maps are replaced", async () => {
  const { values } = await loadFile("featureGates: {EnvFiles: false, MemoryQoS: true}\nsystemReserved: {cpu: '1'}\n", [
    "--feature-gates=EnvFiles=true",
    "--system-reserved=memory=1Gi",
  ]);
  assert.deepEqual(values.featureGates, { EnvFiles: true, MemoryQoS: true });
  assert.deepEqual(values.systemReserved, { memory: "1Gi" });
});

test("drop-ins: lists are replaced, null brings the default back, defaults do not follow them", async () => {
  const files = {
    "/c": `${HEAD}clusterDNS: [10.0.0.1, 10.0.0.2]\nmaxPods: 5\ntracing: {endpoint: 'a:1'}\n`,
    "/d/b.conf": `${HEAD}clusterDNS: [10.0.0.3]\nmaxPods: null\nnodeStatusUpdateFrequency: 5s\ntracing: {samplingRatePerMillion: 7}\n`,
    "/d/a/z.conf": `${HEAD}maxPods: 7\n`,
    "/d/skipped.conf.bak": "x",
  };
  const { values, problems } = await load(["--config=/c", "--config-dir=/d"], files);
  assert.deepEqual(problems, []);
  assert.deepEqual(values.clusterDNS, ["10.0.0.3"]);
  assert.equal(values.maxPods, 110, "a/ comes before b.conf");
  assert.equal(values.nodeStatusReportFrequency, 300_000);
  assert.deepEqual(values.tracing, { endpoint: "a:1", samplingRatePerMillion: 7 });
  const parallel = await load(["--config-dir=/d"], { "/d/a.conf": `${HEAD}maxParallelImagePulls: 5\n` });
  assert.match(
    problemLines(parallel.problems).join(),
    /a.conf:3: maxParallelImagePulls=5 needs serializeImagePulls=false/,
  );
  assert.equal(parallel.values.readOnlyPort, 10255, "drop-ins alone go over the old defaults");
});

test("defaults follow from the file's own values", async () => {
  const { values } = await loadFile("nodeStatusUpdateFrequency: 7s\nmaxParallelImagePulls: 3\n");
  assert.equal(values.nodeStatusReportFrequency, 7000);
  assert.equal(values.serializeImagePulls, false);
});

test("the flag --seccomp-default and the field are or-ed", async () => {
  assert.equal((await loadFile("seccompDefault: true\n", ["--seccomp-default=false"])).values.seccompDefault, true);
  assert.equal((await loadFile("", ["--seccomp-default"])).values.seccompDefault, true);
});

const wrong: { body: string; says: RegExp }[] = [
  { body: "port: 70000\n", says: /^\/etc\/k\/config.yaml:3: port: must be between 1 and 65535 \(it is 70000\)$/ },
  { body: "maxPods: 4294967296\n", says: /:3: maxPods: must fit in 32 bits/ },
  { body: "maxPods: 1.5\n", says: /maxPods: must be a whole number/ },
  { body: "maxPods: '5'\n", says: /maxPods: must be a whole number \(it is "5"\)/ },
  { body: "syncFrequency: 1d\n", says: /syncFrequency: must be a duration such as .* \(it is "1d"\)/ },
  { body: "syncFrequency: 60\n", says: /syncFrequency: must be a duration/ },
  { body: "fileCheckFrequency: -5m\n", says: /fileCheckFrequency: must be more than 0 \(it is "-5m0s"\)/ },
  { body: "containerLogMaxSize: 1e400\n", says: /containerLogMaxSize: must be text; put it in quotes/ },
  { body: "containerLogMaxSize: '0'\n", says: /containerLogMaxSize: .*must not be 0/ },
  { body: "containerLogMaxSize: '1e400'\n", says: /containerLogMaxSize: must be a quantity/ },
  { body: "clusterDomain: 5\n", says: /clusterDomain: must be text; put it in quotes/ },
  { body: "enableServer: 'yes'\n", says: /enableServer: must be true or false/ },
  { body: "authentication: 5\n", says: /:3: authentication: must be a map/ },
  {
    body: "authentication:\n  webhook:\n    cacheTTL: 1d\n",
    says: /:5: authentication.webhook.cacheTTL: must be a duration/,
  },
  { body: "clusterDNS: 10.0.0.1\n", says: /clusterDNS: must be a list/ },
  { body: "systemReserved:\n  cpu: 1\n", says: /:4: systemReserved.cpu: must be text; put it in quotes/ },
  { body: "systemReserved:\n  memory: 1Gi\n  disk: 5Gi\n", says: /:5: systemReserved: disk is not one of cpu/ },
  {
    body: "evictionHard:\n  nodefs.avail: 1Gi\n",
    says: /:4: evictionHard: nodefs.avail is not one of .*did you mean nodefs.available/,
  },
  { body: "featureGates:\n  A: true\n", says: /:4: featureGates\[A\]: is no feature gate/ },
  { body: "featureGates: {NodeSwap: 'true'}\n", says: /featureGates.NodeSwap: must be true or false/ },
  { body: "reservedMemory: [{numaNode: 0}]\n", says: /reservedMemory\[0\].limits: is required/ },
  {
    body: "reservedMemory:\n- numaNode: 0\n  limits: {memory: lots}\n",
    says: /:5: reservedMemory\[0\].limits.memory: must be a quantity/,
  },
  {
    body: "registerWithTaints: [{key: a, effect: NoSchedule, timeAdded: x}]\n",
    says: /timeAdded is set by the cluster/,
  },
  { body: "shutdownGracePeriod: 500ms\n", says: /must be 0 or at least 1s/ },
  { body: "shutdownGracePeriodCriticalPods: 5s\n", says: /must be no longer than shutdownGracePeriod/ },
  { body: "imageGCHighThresholdPercent: 70\n", says: /must be below imageGCHighThresholdPercent \(70\)/ },
  { body: "imageMaximumGCAge: 1m\n", says: /imageMaximumGCAge must be more than imageMinimumGCAge/ },
  { body: "serializeImagePulls: true\nmaxParallelImagePulls: 2\n", says: /needs serializeImagePulls=false/ },
  { body: "podLogsDir: /var/log/../x\n", says: /podLogsDir: must be a plain path/ },
  { body: "logging: {format: xml}\n", says: /logging.format: must be one of text, json/ },
  { body: "logging: {flushFrequency: 0}\n", says: /^$/ },
  { body: "logging: {vmodule: [{filePattern: 'a=b', verbosity: 1}]}\n", says: /must have no =/ },
  { body: "memorySwap: {swapBehavior: Unlimited}\n", says: /memorySwap.swapBehavior: must be one of/ },
  { body: "userNamespaces: {idsPerPod: 1000}\n", says: /multiple of 65536/ },
  { body: "crashLoopBackOff: {maxContainerRestartPeriod: 10m}\n", says: /between 1s and 5m/ },
  { body: "memoryThrottlingFactor: 1.5\n", says: /above 0 and at most 1/ },
  { body: "tlsCurvePreferences: [1]\n", says: /1 is not one of/ },
  { body: "podCIDR: 10.88.0.0\n", says: /podCIDR: "10.88.0.0" must be a subnet like 10.88.0.0\/24/ },
  { body: "podCIDR: 10.88.0.0/24,fd00::/129\n", says: /podCIDR: "fd00::\/129" must be a subnet/ },
  { body: "podCIDR: 10.88.0.0/24,fd00::/64\n", says: /^$/ },
  { body: "tlsMinVersion: TLS12\n", says: /tlsMinVersion: must be one of/ },
  { body: "memoryReservationPolicy: TieredReservation\n", says: /needs the feature gate MemoryQoS/ },
  { body: "containerLogMaxFiles: 1\n", says: /must be more than 1/ },
  { body: "containerLogMonitorInterval: 1s\n", says: /at least 3s/ },
  { body: "cpuCFSQuotaPeriod: 2s\n", says: /between 1ms and 1s/ },
  { body: "enableSystemLogQuery: true\nenableSystemLogHandler: false\n", says: /needs enableSystemLogHandler=true/ },
  { body: "showHiddenMetricsForVersion: '1.30'\n", says: /must be 1.35 or empty/ },
  { body: "tracing: {endpoint: 'ftp://x'}\n", says: /scheme ftp/ },
  {
    body: "preloadedImagesVerificationAllowlist: [a]\n",
    says: /needs imagePullCredentialsVerificationPolicy=NeverVerifyAllowlistedImages/,
  },
];
for (const { body, says } of wrong) {
  test(`refused in a file: ${body.trim().replaceAll("\n", " ")}`, async () => {
    const lines = problemLines((await loadFile(body)).problems);
    assert.ok(lines.length <= 1, lines.join("\n"));
    assert.match(lines[0] ?? "", says);
  });
}

test("all problems are told at once, with their lines", async () => {
  const { problems } = await loadFile(
    "port: -1\nsyncFrequency: 1d\nfeatureGates: {Nope: true}\nimageGCHighThresholdPercent: 50\n",
    ["--bogus"],
  );
  assert.deepEqual(
    problems.map(({ line }) => line),
    [undefined, undefined, 3, 4, 5],
  );
});

test("an unknown field or doubled key is a warning, and refused when strict", async () => {
  const body =
    "maxPod: 5\nmaxPods: 1\nmaxPods: 2\nauthentication: {webhok: {}}\nregisterWithTaints: [{key: a, effect: NoExecute, colour: x}]\n";
  const loaded = await loadFile(body);
  assert.deepEqual(loaded.problems, []);
  assert.equal(loaded.values.maxPods, 2);
  const lines = problemLines(loaded.warnings);
  assert.equal(lines.length, 4, lines.join("\n"));
  assert.match(lines.join("\n"), /config.yaml:3: maxPod: is no field .*; did you mean maxPods\?/);
  assert.match(lines.join("\n"), /config.yaml:5: key "maxPods" is set twice/);
  assert.match(lines.join("\n"), /:6: authentication.webhok: is no field .*; did you mean webhook\?/);
  assert.match(lines.join("\n"), /:7: registerWithTaints\[0\].colour: is no field/);
  const strict = await loadFile(body, ["--strict-config"]);
  assert.equal(strict.problems.length, 4);
  assert.deepEqual(strict.warnings, []);
});

const files: { name: string; content: string; says: RegExp }[] = [
  { name: "empty", content: "", says: /^\/c: is empty$/ },
  { name: "only a comment", content: "# nothing\n", says: /is empty/ },
  { name: "no head", content: "maxPods: 5\n", says: /must begin with apiVersion/ },
  {
    name: "another kind",
    content: "apiVersion: v1\nkind: ConfigMap\n",
    says: /:2: kind: must be KubeletConfiguration \(it is "ConfigMap"\)/,
  },
  {
    name: "a later version",
    content: "apiVersion: kubelet.config.k8s.io/v9\nkind: KubeletConfiguration\n",
    says: /apiVersion: must be kubelet.config.k8s.io\/v1beta1 \(it is/,
  },
  { name: "a list", content: "- a\n", says: /must be a KubeletConfiguration, a map/ },
  { name: "text", content: "hello", says: /must be a KubeletConfiguration, a map/ },
  { name: "tabs", content: `${HEAD}authentication:\n\twebhook: {}\n`, says: /^\/c:4: .*[Tt]ab/ },
  { name: "a bracket that is open", content: `${HEAD}clusterDNS: [a\n`, says: /^\/c:\d+: / },
  { name: "control characters", content: `${HEAD}a: \u0000\n`, says: /control characters/ },
  {
    name: "an alias bomb",
    content: `${HEAD}a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`,
    says: /alias/i,
  },
  { name: "more than 10 MiB", content: `${HEAD}#${"x".repeat(10 * 1024 * 1024)}\n`, says: /bytes are more than/ },
];
for (const { name, content, says } of files) {
  test(`a file that cannot be used: ${name}`, async () => {
    const { problems } = await load(["--config=/c"], { "/c": content });
    assert.equal(problems.length, 1, problemLines(problems).join("\n"));
    assert.match(problemLines(problems)[0] ?? "", says);
  });
}

test("a byte order mark, CRLF and JSON are read, with their lines", async () => {
  const dos = await load(["--config=/c"], { "/c": `\ufeff${HEAD}maxPods: 7\n`.replaceAll("\n", "\r\n") });
  assert.deepEqual([dos.problems, dos.values.maxPods, origin(dos, "maxPods")], [[], 7, "/c:3"]);
  const json = JSON.stringify(
    { kind: "KubeletConfiguration", apiVersion: "kubelet.config.k8s.io/v1beta1", maxPods: 8 },
    null,
    2,
  );
  const loaded = await load(["--config=/c"], { "/c": json });
  assert.deepEqual([loaded.problems, loaded.values.maxPods, origin(loaded, "maxPods")], [[], 8, "/c:4"]);
});

test("files that are not there, and a drop-in directory that is a file", async () => {
  const gone = await load(["--config=/none", "--config-dir=/nowhere"]);
  assert.deepEqual(problemLines(gone.problems), ["/none: is not there", "/nowhere: is not there"]);
  const file = await load(["--config-dir=/d"], { "/d": HEAD });
  assert.deepEqual(problemLines(file.problems), ["/d: is no directory"]);
  const bad = await load(["--config-dir=/d"], { "/d/a.conf": "", "/d/b.conf": "maxPods: 5" });
  assert.equal(bad.problems.length, 2);
});

test("a file that changes while it is read is read again, but not for ever", async () => {
  const changing = (times: number): ReadDeps => {
    const { files, parse } = deps({ "/c": `${HEAD}maxPods: 5\n` });
    let [stamp, reads] = [0, 0];
    const stat: ReadDeps["files"]["stat"] = async () => ({ kind: "file", stamp: String(stamp) });
    const read: ReadDeps["files"]["read"] = async (path, options) => {
      if (reads++ >= times) return files.read(path, options);
      stamp++;
      return "apiVer";
    };
    return { parse, files: { ...files, stat, read } };
  };
  const once = loadConfiguration(await readInputs(["--config=/c"], changing(1), { signal }));
  assert.deepEqual([once.problems, once.values.maxPods], [[], 5]);
  const always = loadConfiguration(await readInputs(["--config=/c"], changing(100), { signal }));
  assert.deepEqual(problemLines(always.problems), ["/c: keeps changing while it is read"]);
});

test("`__proto__` in a map is a key like any other", async () => {
  const { problems } = await loadFile("systemReserved: {__proto__: '5'}\nfeatureGates: {__proto__: true}\n");
  assert.match(problemLines(problems).join("\n"), /__proto__ is not one of cpu/);
  assert.match(problemLines(problems).join("\n"), /featureGates\[__proto__\]: is no feature gate/);
});

test("settings that nothing acts on yet are named as they were given", async () => {
  const loaded = await loadFile("enableContentionProfiling: true\nmaxPods: 5\n", [
    "--experimental-mounter-path=/bin/mount",
  ]);
  assert.deepEqual(notActedOn(loaded), ["enableContentionProfiling", "--experimental-mounter-path"]);
});

for (const { policy, problems, warnings } of [
  { policy: "none", problems: 0, warnings: 1 },
  { policy: "restricted", problems: 1, warnings: 0 },
]) {
  test(`options that the topology policy does not have: ${policy}`, async () => {
    const why = 'max-allowable-numa-nodes: "4" must be a whole number of at least 8';
    const body = `topologyManagerPolicy: ${policy}\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: "4"}\n`;
    const flags = [
      `--topology-manager-policy=${policy}`,
      "--topology-manager-policy-options=max-allowable-numa-nodes=4",
    ];
    for (const [place, loaded] of [
      ["/etc/k/config.yaml:4: topologyManagerPolicyOptions: ", await loadFile(body)],
      ["--topology-manager-policy-options: ", await load(flags)],
    ] as const) {
      assert.deepEqual([loaded.problems.length, loaded.warnings.length], [problems, warnings]);
      const [line] = problemLines([...loaded.problems, ...loaded.warnings]);
      assert.equal(line, `${place}${why}${policy === "none" ? "; the policy none ignores it" : ""}`);
    }
  });
}
