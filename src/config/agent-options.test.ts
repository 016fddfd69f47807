import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentOptions } from "./agent.ts";
import { agentOptions, optionNames, optionOf } from "./agent-options.ts";
import { topLevelFields } from "./document.ts";
import { optionHelp } from "./help.ts";
import { oldEntries } from "./legacy/index.ts";
import { flagDefault } from "./parse.ts";
import {
  CADVISOR_FLAGS,
  FIELD_FACTS,
  FIELD_FLAGS,
  OLD_FIELDS,
  OLD_FLAGS,
  PROCESS_FLAGS,
  TOP_LEVEL_FIELDS,
} from "./table/spec-names.ts";

/** Flags that Kubernetes does not have. */
const OWN_FLAGS = [
  ...["max-concurrent-starts", "local-api-socket", "max-parallel-image-pulls", "pod-logs-dir", "strict-config"],
  ...["config-watch", "upstream-probe-timing", "checkpoint-secrets", "keep-local-images"],
  ...["image-pull-progress-timeout", "trust-shutdown-signals"],
  // Gone from Kubernetes with 1.15, and kept here.
  ...["allow-privileged", "host-network-sources", "host-pid-sources", "host-ipc-sources"],
  ...["apiserver", "apiserver-address", "apiserver-port", "apiserver-socket", "apiserver-kubeconfig"],
  ...["service-cluster-ip-range", "service-node-port-range"],
  ...["config-trial-duration", "dynamic-config-dir", "init-config-dir", "api-servers", "auth-path", "cadvisor-port"],
];
/** Fields that Kubernetes does not have; without a value they are left out of what the agent writes. */
const OWN_FIELDS = ["imagePullProgressTimeout"];
/** Fields of KubeletConfiguration by their full path. */
const NESTED_FIELDS = [
  ...["x509.clientCAFile", "webhook.enabled", "webhook.cacheTTL", "anonymous.enabled"].map(
    (f) => `authentication.${f}`,
  ),
  ...["mode", "webhook.cacheAuthorizedTTL", "webhook.cacheUnauthorizedTTL"].map((f) => `authorization.${f}`),
  ...["format", "flushFrequency", "verbosity", "vmodule"].map((f) => `logging.${f}`),
  ...["text", "json"].flatMap((f) => [`logging.options.${f}.splitStream`, `logging.options.${f}.infoBufferSize`]),
  ...["memorySwap.swapBehavior", "crashLoopBackOff.maxContainerRestartPeriod", "userNamespaces.idsPerPod"],
];

const entries = optionNames.map((name) => [name, optionOf(name)] as const);
const flags = entries.flatMap(([, { flag }]) => (flag === undefined ? [] : [flag]));

test("every field of KubeletConfiguration is in the table, and no other", () => {
  const wanted = TOP_LEVEL_FIELDS.map((name) => name.replace("*", ""));
  assert.equal(wanted.length, 125);
  assert.deepEqual([...topLevelFields()].sort(), [...wanted, ...OWN_FIELDS].sort());
  const fields = entries.flatMap(([, { field }]) => (field === undefined ? [] : [field]));
  assert.deepEqual(fields.filter((field) => field.includes(".")).sort(), [...NESTED_FIELDS].sort());
});

for (const name of OWN_FIELDS) {
  test(`${name}, which Kubernetes does not have, is written only if it is set`, () => {
    const entry = entries.find(([, { field }]) => field === name)?.[1];
    assert.equal(entry?.since, undefined);
    assert.equal(entry?.kind.encode(entry.default), undefined);
  });
}

test("a zero is a value exactly in the nullable fields", () => {
  const nullable = TOP_LEVEL_FIELDS.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  const inTable = entries.filter(([, { field, nullable: is }]) => field !== undefined && !field.includes(".") && is);
  const ours = inTable.map(([, { field }]) => field);
  // An object's own `*` says that it may be absent.
  assert.deepEqual(ours.sort(), nullable.filter((name) => name !== "userNamespaces").sort());
});

for (const [field = "", type = "", shown = "", since = ""] of FIELD_FACTS) {
  test(`field ${field} has the type, default and age that Kubernetes says`, () => {
    const entry = entries.find((each) => each[1].field === field)?.[1];
    assert.ok(entry);
    assert.equal(entry.since, since);
    // A field with a fixed choice of words is a string there.
    const ours = entry.kind.type.startsWith("`") ? "string" : entry.kind.type;
    assert.equal(ours, type);
    const wanted = shown === "" ? "" : entry.kind.show(entry.kind.parse(shown, undefined));
    assert.equal(entry.kind.show(entry.default), wanted);
  });
}

test("every flag is in the table, bound to its field, and no other but our own", () => {
  const bound = FIELD_FLAGS.map((pair) => pair.split("="));
  for (const [flag, field] of bound) {
    const found = entries.find(([, entry]) => entry.flag === flag);
    assert.ok(found, `--${flag}`);
    assert.equal(found[1].field, field, `--${flag}`);
  }
  const wanted = [...bound.map(([flag = ""]) => flag), ...PROCESS_FLAGS, ...CADVISOR_FLAGS, ...OWN_FLAGS];
  assert.deepEqual([...flags].sort(), wanted.sort());
});

test("flags of fields are deprecated, but for five and our own", () => {
  const plain = entries.filter(([, e]) => e.field !== undefined && e.flag !== undefined && e.deprecated === undefined);
  const names = plain.map(([, { flag }]) => flag);
  const wanted = ["v", "vmodule", "log-flush-frequency", "provider-id", "fail-cgroupv1"];
  assert.deepEqual(
    names.sort(),
    [...wanted, "image-pull-progress-timeout", "max-parallel-image-pulls", "pod-logs-dir"].sort(),
  );
});

test("every setting of the older kubelets has an entry, or goes on living", () => {
  const oldFields = oldEntries.map(({ field }) => field);
  const live = new Set(topLevelFields());
  assert.deepEqual(
    OLD_FIELDS.filter((name) => !oldFields.includes(name) && !live.has(name)),
    [],
  );
  const oldFlags = oldEntries.map(({ flag }) => flag);
  assert.deepEqual(
    OLD_FLAGS.filter((name) => !oldFlags.includes(name) && !flags.includes(name)),
    [],
  );
  assert.deepEqual(
    oldFlags.filter((flag) => flag !== undefined && flags.includes(flag)),
    [],
    "no flag is old and new",
  );
});

for (const [name, entry] of entries) {
  test(`option ${name} has help and a valid default`, () => {
    assert.match(entry.help, /^[A-Z].*\.$/, "help is a sentence");
    assert.equal(entry.validate?.(entry.default), undefined);
    assert.equal(entry.validate?.(flagDefault(entry)), undefined);
    const shown = entry.kind.show(entry.default);
    if (shown !== "" && entry.flag !== undefined)
      assert.deepEqual(entry.kind.parse(shown, undefined), entry.default, "help shows the default as it is typed");
    const written = entry.kind.encode(entry.default);
    if (entry.field !== undefined && written !== undefined) {
      const fail = (): void => assert.fail("the default is not read back");
      assert.deepEqual(entry.kind.decode(written, { problem: fail, unknownKey: fail }), entry.default);
    }
  });
}

test("no two options share a flag or a letter", () => {
  const names = entries.flatMap(([, { flag, short }]) => [
    ...(flag === undefined ? [] : [`--${flag}`]),
    ...(short === undefined ? [] : [`-${short}`]),
  ]);
  assert.deepEqual(names, [...new Set(names)]);
});

test("help stays within 80 columns and names each flag once, but hidden ones", () => {
  const lines = optionHelp(agentOptions);
  assert.deepEqual(
    lines.filter((line) => line.length > 80),
    [],
  );
  for (const [, { flag, hidden }] of entries) {
    if (flag === undefined) continue;
    const count = lines.filter((line) => new RegExp(`^  (-., )?--${flag}( |$)`).test(line)).length;
    assert.equal(count, hidden === true ? 0 : 1, `--${flag}`);
  }
});

test("help groups by topic", () => {
  const topics = optionHelp(agentOptions).filter((line) => /^\S.*:$/.test(line));
  assert.deepEqual(topics, [...new Set(topics)]);
  assert.equal(topics[0], "Pod sources:");
});

const refused = [
  { argv: ["--healthz-port=65536"], says: /--healthz-port: must be between 0 and 65535/ },
  { argv: ["--healthz-bind-address", "1.2.3"], says: /must be an IP address/ },
  { argv: ["--address=300.1.1.1"], says: /must be an IP address/ },
  { argv: ["--manifest-url=ftp://x/"], says: /must be an http or https URL/ },
  { argv: ["--root-dir=relative"], says: /must be an absolute path/ },
  { argv: ["--root-dir=/a/../b"], says: /must be a plain path/ },
  { argv: ["--cluster-dns=10.0.0.10,nonsense"], says: /"nonsense" is no IP address/ },
  { argv: ["--file-check-frequency=20"], says: /must be a duration/ },
  { argv: ["--file-check-frequency=-1s"], says: /must be more than 0/ },
  { argv: ["--cgroup-driver=none"], says: /must be one of cgroupfs, systemd/ },
  { argv: ["--container-runtime-endpoint=tcp://x"], says: /must be the path of a unix socket/ },
  { argv: ["--vmodule=a"], says: /PATTERN=N/ },
  { argv: ["--vmodule=a=1", "--logging-format=json"], says: /--vmodule works only with/ },
  { argv: ["--serialize-image-pulls", "--max-parallel-image-pulls=3"], says: /needs --serialize-image-pulls=false/ },
  { argv: ["--read-only-port=10248"], says: /both 10248/ },
  { argv: ["--hostname-override=a_b"], says: /must be a DNS name/ },
  { argv: ["pods"], says: /unknown command "pods"/ },
  { argv: ["--runonce", "false"], says: /unknown command "false"/ },
  { argv: ["--port=0"], says: /between 1 and 65535/ },
  { argv: ["--eviction-hard=memory.avail<100Mi"], says: /memory.avail is not one of .*did you mean memory.available/ },
  { argv: ["--eviction-hard=memory.available<0"], says: /must be more than 0/ },
  { argv: ["--eviction-hard=memory.available"], says: /must be KEY<VALUE/ },
  { argv: ["--eviction-hard=memory.available<101%"], says: /at most 100%/ },
  { argv: ["--eviction-soft=memory.available<1Gi"], says: /--eviction-soft has memory.available, which needs a time/ },
  { argv: ["--eviction-minimum-reclaim=nodefs.available=0%"], says: /percentage above 0/ },
  {
    argv: ["--system-reserved=cpus=1"],
    says: /cpus is not one of cpu, memory, ephemeral-storage, pid; did you mean cpu/,
  },
  { argv: ["--kube-reserved=memory=-1"], says: /must not be negative/ },
  { argv: ["--kube-reserved=memory=1e400"], says: /must be a quantity/ },
  { argv: ["--feature-gates=NoSuchGate=true"], says: /NoSuchGate\]: is no feature gate/ },
  { argv: ["--feature-gates=NodeSwop=true"], says: /did you mean NodeSwap\?/ },
  { argv: ["--feature-gates=NodeSwap=false"], says: /locked to true/ },
  { argv: ["--feature-gates=GangScheduling=true"], says: /needs GenericWorkload, which is off/ },
  { argv: ["--register-with-taints=a=b:Nope"], says: /is not one of NoSchedule/ },
  { argv: ["--register-with-taints=a:NoExecute,a=b:NoExecute"], says: /given twice/ },
  { argv: ["--reserved-memory=0:memory=0"], says: /must be more than 0/ },
  { argv: ["--reserved-memory=0:disk=1"], says: /is not memory or hugepages-SIZE/ },
  { argv: ["--node-labels=kubernetes.io/role=x"], says: /may not be set by a node/ },
  { argv: ["--reserved-cpus=3-1"], says: /list of CPUs/ },
  { argv: ["--tls-cipher-suites=TLS_NOPE"], says: /is no cipher suite/ },
  { argv: ["--exit-on-lock-contention"], says: /--exit-on-lock-contention needs --lock-file/ },
  { argv: ["--image-gc-low-threshold=90"], says: /must be below/ },
  { argv: ["--enforce-node-allocatable=pods,system-reserved"], says: /needs systemReservedCgroup/ },
  { argv: ["--qos-reserved=memory=50%"], says: /needs the feature gate QOSReserved/ },
  { argv: ["--version=v1.2.3"], says: /must be true, false, raw or a version that begins with v1.36.3/ },
  { argv: ["--cloud-provider=aws"], says: /must be one of "", external/ },
  { argv: ["--oom-score-adj=-1001"], says: /between -1000 and 1000/ },
];
for (const c of refused) {
  test(`refused: ${c.argv.join(" ")}`, () => {
    const { problems } = parseAgentOptions(c.argv);
    assert.equal(problems.length, 1, problems.join("\n"));
    assert.match(problems[0] ?? "", c.says);
  });
}

test("a header's value is never shown, even when it is refused", () => {
  const { problems } = parseAgentOptions(["--manifest-url-header=Bearer hunter2"]);
  assert.equal(problems.length, 1);
  assert.doesNotMatch(problems.join(), /hunter2/);
});

const read = [
  {
    argv: ["--eviction-hard=memory.available<1Gi,nodefs.available<10%"],
    evictionHard: { "memory.available": "1Gi", "nodefs.available": "10%" },
  },
  { argv: ["--system_reserved=cpu=1", "--system-reserved=memory=1Gi"], systemReserved: { cpu: "1", memory: "1Gi" } },
  {
    argv: ["--cpu-manager-policy-options=full-pcpus-only=true"],
    cpuManagerPolicyOptions: { "full-pcpus-only": "true" },
  },
  { argv: ["--node-labels=a=b,c", "--node-labels=d=e"], nodeLabels: { a: "b", c: "", d: "e" } },
  {
    argv: ["--feature-gates=AllAlpha=true", "--feature-gates=EnvFiles=false"],
    featureGates: { AllAlpha: true, EnvFiles: false },
  },
  {
    argv: ["--register-with-taints=a=b:NoSchedule,c:NoExecute"],
    registerWithTaints: [
      { key: "a", value: "b", effect: "NoSchedule" },
      { key: "c", effect: "NoExecute" },
    ],
  },
  { argv: ["--register-with-taints="], registerWithTaints: [] },
  {
    argv: ["--reserved-memory=0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi"],
    reservedMemory: [
      { numaNode: 0, limits: { memory: "1Gi", "hugepages-1Gi": "2Gi" } },
      { numaNode: 1, limits: { memory: "2Gi" } },
    ],
  },
  {
    argv: ["--vmodule=plan=4,server*=2"],
    vmodule: [
      { filePattern: "plan", verbosity: 4 },
      { filePattern: "server*", verbosity: 2 },
    ],
  },
  { argv: ["--seccomp-default"], seccompDefault: true },
  { argv: ["--pod-max-pids=-5"], podPidsLimit: -1 },
  { argv: ["--max-parallel-image-pulls=4"], serializeImagePulls: false },
  {
    argv: [],
    serializeImagePulls: true,
    readOnlyPort: 10255,
    anonymousAuth: false,
    webhookAuthentication: false,
    authorizationMode: "AlwaysAllow",
    evictionHard: {},
  },
  { argv: ["--root-dir=/x"], localApiSocket: "/x/kubelet.sock" },
  { argv: ["--local-api-socket=/y.sock"], localApiSocket: "/y.sock" },
  { argv: ["--address=", "--kubeconfig=/k"], address: "0.0.0.0" },
  { argv: ["--hostname-override", " Node-A "], hostnameOverride: "node-a" },
  { argv: ["--feature-gates=KubeletEnsureSecretPulledImages=false"], imagePullCredentialsVerificationPolicy: "" },
];
for (const { argv, ...want } of read) {
  test(`read: ${argv.join(" ")}`, () => {
    const { values, problems } = parseAgentOptions(argv);
    assert.deepEqual(problems, []);
    const all: Record<string, unknown> = values;
    for (const [name, value] of Object.entries(want)) assert.deepEqual(all[name], value);
  });
}
