import assert from "node:assert/strict";
import { test } from "node:test";
import { SystemClock } from "../../lib/clock.ts";
import { CodedError } from "../../lib/errors.ts";
import { parseDocuments } from "../../lib/yaml.ts";
import type { AgentOptions } from "../agent-options.ts";
import { type LoadedConfiguration, loadConfiguration, problemLines } from "../load.ts";
import { readInputs } from "../read.ts";
import { fieldOutcome } from "./entry.ts";
import { oldEntries } from "./index.ts";

const clock = new SystemClock();
const { signal } = new AbortController();

async function load(
  argv: readonly string[],
  files: Readonly<Record<string, string>> = {},
): Promise<LoadedConfiguration> {
  const read = async (path: string): Promise<string> => {
    const text = files[path];
    if (text === undefined) throw new CodedError("ENOENT", "no such file");
    return text;
  };
  const stat = async (path: string) => {
    if (path in files) return { kind: "file" as const };
    return Object.keys(files).some((each) => each.startsWith(`${path}/`)) ? { kind: "directory" as const } : undefined;
  };
  const deps = {
    files: { read, stat, list: async () => [] },
    parse: (text: string) => parseDocuments(text, { signal, clock, lines: true }),
  };
  return loadConfiguration(await readInputs(argv, deps, { signal }));
}

const mapped: { argv: string[]; want: Partial<AgentOptions>; says: RegExp }[] = [
  { argv: ["--experimental-fail-swap-on=false"], want: { failSwapOn: false }, says: /failSwapOn now/ },
  {
    argv: ["--experimental-bootstrap-kubeconfig=/b"],
    want: { bootstrapKubeconfig: "/b" },
    says: /--bootstrap-kubeconfig now/,
  },
  { argv: ["--system-container=/sys", "--cgroup-root=/"], want: { systemCgroups: "/sys" }, says: /systemCgroups now/ },
  { argv: ["--resource-container=/k"], want: { kubeletCgroups: "/k" }, says: /kubeletCgroups now/ },
  {
    argv: ["--max-per-pod-container-count=3"],
    want: { maximumDeadContainersPerContainer: 3 },
    says: /--maximum-dead-containers-per-container now/,
  },
  {
    argv: ["--low-diskspace-threshold-mb=256"],
    want: { evictionHard: { "nodefs.available": "256Mi", "imagefs.available": "256Mi" } },
    says: /evictionHard now/,
  },
  {
    argv: ["--low-diskspace-threshold-mb=256", "--eviction-hard=nodefs.available<1Gi"],
    want: { evictionHard: { "nodefs.available": "1Gi", "imagefs.available": "256Mi" } },
    says: /evictionHard now/,
  },
  {
    argv: ["--outofdisk-transition-frequency=1m"],
    want: { evictionPressureTransitionPeriod: 60_000 },
    says: /evictionPressureTransitionPeriod now/,
  },
  {
    argv: ["--register-schedulable=false"],
    want: { registerWithTaints: [{ key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" }] },
    says: /registerWithTaints now/,
  },
  { argv: ["--iptables-drop-bit=3"], want: { iptablesDropBit: 3 }, says: /iptablesDropBit now/ },
  { argv: ["--container-runtime=remote"], want: {}, says: /every runtime is a remote one/ },
  { argv: ["--container-runtime", "docker"], want: {}, says: /dockershim was removed in 1.24/ },
  { argv: ["--network-plugin=cni"], want: {}, says: /the runtime configures the network/ },
  { argv: ["--logtostderr=true", "--v=2"], want: { verbosity: 2 }, says: /the log goes to stderr/ },
  { argv: ["--pod-infra-container-image=pause"], want: {}, says: /sandbox image/ },
  { argv: ["--feature-gates=DevicePlugins=true"], want: {}, says: /featureGates\[DevicePlugins\]: .*always on/ },
];
for (const { argv, want, says } of mapped) {
  test(`an old command line: ${argv.join(" ")}`, async () => {
    const { values, problems, warnings } = await load(argv);
    assert.deepEqual(problemLines(problems), []);
    assert.match(problemLines(warnings).join("\n"), says);
    for (const [name, value] of Object.entries(want)) assert.deepEqual(values[name as keyof AgentOptions], value, name);
  });
}

const refused: { argv: string[]; says: RegExp }[] = [
  { argv: ["--container-runtime=rkt"], says: /rkt was removed in 1.11; use a CRI runtime/ },
  { argv: ["--container-runtime=hyper"], says: /--container-runtime-endpoint/ },
  { argv: ["--host-network-sources=apis"], says: /"apis" is none of file, http, api and \*/ },
  { argv: ["--network-plugin=kubenet"], says: /only cni/ },
  { argv: ["--configure-cbr0"], says: /CNI/ },
  { argv: ["--experimental-nvidia-gpus=1"], says: /device plugins/ },
  { argv: ["--google-json-key=/k"], says: /--image-credential-provider-config/ },
  { argv: ["--low-diskspace-threshold-mb=x"], says: /must be a whole number/ },
  {
    argv: ["--dynamic-config-dir=/d", "--feature-gates=DynamicKubeletConfig=false"],
    says: /--dynamic-config-dir is given, but the feature gate DynamicKubeletConfig is off/,
  },
  { argv: ["--feature-gates=DevicePlugins=false"], says: /cannot be turned off any more/ },
  { argv: ["--iptables-drop-bit=32"], says: /between 0 and 31/ },
  { argv: ["--no-such-flag"], says: /unknown flag --no-such-flag/ },
];
for (const { argv, says } of refused) {
  test(`refused: ${argv.join(" ")}`, async () => {
    const lines = problemLines((await load(argv)).problems);
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(lines[0] ?? "", says);
  });
}

test("today's flag goes before the old one", async () => {
  const { values } = await load(["--experimental-fail-swap-on=false", "--fail-swap-on=true"]);
  assert.equal(values.failSwapOn, true);
});

test("v1.3: --config names manifests when it is a directory or a pod", async () => {
  const directory = await load(["--config=/pods"], { "/pods/a.yaml": "kind: Pod\n" });
  assert.deepEqual([directory.problems, directory.values.staticPodPath, directory.values.config], [[], "/pods", ""]);
  assert.match(
    problemLines(directory.warnings).join(),
    /--config: names pod manifests, as in v1.3; use --pod-manifest-path/,
  );
  assert.equal(directory.values.readOnlyPort, 10255);
  const file = await load(["--config=/p.yaml"], { "/p.yaml": "apiVersion: v1\nkind: Pod\n" });
  assert.equal(file.values.staticPodPath, "/p.yaml");
});

const V1ALPHA1 = "apiVersion: kubeletconfig/v1alpha1\nkind: KubeletConfiguration\n";

test("v1.9: --init-config-dir, whose file goes over flags, with the defaults of its time", async () => {
  const loaded = await load(["--init-config-dir=/i", "--max-pods=9", "--hostname-override=n", "--event-burst=3"], {
    "/i/kubelet": `${V1ALPHA1}podManifestPath: /m\nmaxPods: 7\nallowPrivileged: true\nmaxContainerCount: 5\n`,
  });
  assert.deepEqual(problemLines(loaded.problems), []);
  const { values } = loaded;
  assert.deepEqual(
    [values.staticPodPath, values.maxPods, values.hostnameOverride, values.maximumDeadContainers, values.eventBurst],
    ["/m", 7, "n", 5, 10],
  );
  assert.deepEqual([values.readOnlyPort, values.authorizationMode, values.kubeAPIQPS], [10255, "AlwaysAllow", 5]);
  assert.equal(values.evictionHard["memory.available"], "100Mi");
  const lines = problemLines(loaded.warnings).join("\n");
  assert.match(lines, /kubelet:3: podManifestPath: ended with 1.9; it is staticPodPath now/);
  assert.match(lines, /the file goes over flags; not used: --max-pods, --event-burst/);
});

test("old files: texts where today are lists and maps, and numbers with a fraction", async () => {
  const loaded = await load(["--config=/c"], {
    "/c":
      "apiVersion: componentconfig/v1alpha1\nkind: KubeletConfiguration\nclusterDNS: 10.0.0.10\n" +
      "evictionHard: memory.available<300Mi\nfeatureGates: NodeSwap=true\nregistryPullQPS: 2.5\n" +
      "manifestURLHeader: 'a:b'\nhostNetworkSources: ['file']\nhostPIDSources: 'file,api'\nallowPrivileged: false\nlowDiskSpaceThresholdMB: 100\n" +
      "remoteRuntimeEndpoint: unix:///run/crio.sock\ncontainerRuntime: remote\n",
  });
  assert.deepEqual(problemLines(loaded.problems), []);
  const { values } = loaded;
  assert.deepEqual(values.clusterDNS, ["10.0.0.10"]);
  assert.equal(values.evictionHard["memory.available"], "300Mi");
  assert.equal(values.evictionHard["nodefs.available"], "100Mi");
  assert.deepEqual([values.featureGates, values.registryPullQPS], [{ NodeSwap: true }, 3]);
  assert.deepEqual(values.staticPodURLHeader, { a: ["b"] });
  assert.equal(values.containerRuntimeEndpoint, "unix:///run/crio.sock");
  assert.deepEqual([values.hostNetworkSources, values.hostPIDSources], [["file"], ["file", "api"]]);
  assert.deepEqual([values.hostIPCSources, values.allowPrivileged], [["*"], false]);
});

test("who may have what of the host, by the flags of before", async () => {
  const { values, problems, warnings } = await load(["--allow_privileged=false", "--host-ipc-sources=file,http"]);
  assert.deepEqual([problems, warnings], [[], []]);
  assert.deepEqual(
    [values.allowPrivileged, values.hostIPCSources, values.hostNetworkSources],
    [false, ["file", "http"], ["*"]],
  );
});

test("an old name in a file of today is an unknown field that is told its new name", async () => {
  const { values, warnings } = await load(["--config=/c"], {
    "/c": "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\npodManifestPath: /m\n",
  });
  assert.equal(values.staticPodPath, "");
  assert.match(problemLines(warnings).join(), /podManifestPath: is no field .*it was one once: .*staticPodPath now/);
});

test("no value of an old field makes it throw", () => {
  for (const entry of oldEntries) {
    for (const raw of [null, true, 5, 1.5, "x", "", [], ["*"], {}, { a: "b" }]) fieldOutcome(entry, raw);
  }
});
