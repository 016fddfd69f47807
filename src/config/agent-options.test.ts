import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAgentOptions } from "./agent.ts";
import { agentOptions } from "./agent-options.ts";
import { optionHelp } from "./help.ts";
import type { Option } from "./option.ts";

/** The flags of Kubernetes v1.36. */
const KUBERNETES_FLAGS = new Set(
  `
    - address allowed-unsafe-sysctls anonymous-auth authentication-token-webhook
    authentication-token-webhook-cache-ttl authorization-mode authorization-webhook-cache-authorized-ttl
    authorization-webhook-cache-unauthorized-ttl bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root
    cgroups-per-qos client-ca-file cloud-provider cluster-dns cluster-domain config config-dir
    container-log-max-files container-log-max-size container-runtime-endpoint contention-profiling cpu-cfs-quota
    cpu-cfs-quota-period cpu-manager-policy cpu-manager-policy-options cpu-manager-reconcile-period
    enable-controller-attach-detach enable-debugging-handlers enable-server enforce-node-allocatable event-burst
    event-qps eviction-hard eviction-max-pod-grace-period eviction-minimum-reclaim
    eviction-pressure-transition-period eviction-soft eviction-soft-grace-period exit-on-lock-contention
    experimental-allocatable-ignore-eviction experimental-mounter-path fail-cgroupv1 fail-swap-on feature-gates
    file-check-frequency hairpin-mode healthz-bind-address healthz-port help hostname-override
    http-check-frequency image-credential-provider-bin-dir image-credential-provider-config
    image-gc-high-threshold image-gc-low-threshold image-service-endpoint kernel-memcg-notification kube-api-burst
    kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubeconfig kubelet-cgroups
    local-storage-capacity-isolation lock-file log-flush-frequency log-json-info-buffer-size log-json-split-stream
    log-text-info-buffer-size log-text-split-stream logging-format make-iptables-util-chains manifest-url
    manifest-url-header max-open-files max-pods maximum-dead-containers maximum-dead-containers-per-container
    memory-manager-policy minimum-container-ttl-duration minimum-image-ttl-duration node-ip node-labels
    node-status-max-images node-status-update-frequency oom-score-adj pod-cidr pod-manifest-path pod-max-pids
    pods-per-core port protect-kernel-defaults provider-id qos-reserved read-only-port register-node
    register-with-taints registry-burst registry-qps reserved-cpus reserved-memory resolv-conf root-dir
    rotate-certificates rotate-server-certificates runonce runtime-cgroups runtime-request-timeout seccomp-default
    serialize-image-pulls streaming-connection-idle-timeout sync-frequency system-cgroups system-reserved
    system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file
    topology-manager-policy topology-manager-policy-options topology-manager-scope v version vmodule
    volume-plugin-dir volume-stats-agg-period windows-priorityclass windows-service
  `
    .trim()
    .split(/\s+/),
);

/** Flags that only this agent has, and fields that Kubernetes takes from its configuration file alone. */
const OWN_FLAGS = new Set(["max-concurrent-starts", "local-api-socket", "max-parallel-image-pulls", "pod-logs-dir"]);

const entries: [string, Option<unknown>][] = Object.entries(agentOptions);

for (const [name, entry] of entries) {
  test(`option ${name} has a known flag, help and a valid default`, () => {
    const flag = entry.flag ?? "";
    assert.ok(KUBERNETES_FLAGS.has(flag) !== OWN_FLAGS.has(flag), `--${flag} is in exactly one of the lists`);
    assert.match(entry.help, /^[A-Z].*\.$/, "help is a sentence");
    assert.equal(entry.validate?.(entry.default), undefined);
    const shown = entry.kind.show(entry.default);
    if (shown !== "")
      assert.deepEqual(entry.kind.parse(shown, undefined), entry.default, "help shows the default as it is typed");
  });
}

test("no two options share a flag or a letter", () => {
  const names = entries.flatMap(([, entry]) => [`--${entry.flag}`, ...(entry.short ? [`-${entry.short}`] : [])]);
  assert.deepEqual(names, [...new Set(names)]);
});

test("help stays within 80 columns and names each flag once", () => {
  const lines = optionHelp(agentOptions);
  assert.deepEqual(
    lines.filter((line) => line.length > 80),
    [],
  );
  for (const [, entry] of entries) {
    assert.equal(
      lines.filter((line) => new RegExp(`^  (-., )?--${entry.flag}( |$)`).test(line)).length,
      1,
      `--${entry.flag}`,
    );
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

test("defaults that follow from others", () => {
  assert.equal(parseAgentOptions([]).values.serializeImagePulls, true);
  assert.equal(parseAgentOptions(["--max-parallel-image-pulls=4"]).values.serializeImagePulls, false);
  assert.equal(parseAgentOptions(["--root-dir=/x"]).values.localApiSocket, "/x/kubelet.sock");
  assert.equal(parseAgentOptions(["--local-api-socket=/y.sock"]).values.localApiSocket, "/y.sock");
  assert.equal(parseAgentOptions(["--address="]).values.address, "0.0.0.0");
  assert.equal(parseAgentOptions(["--hostname-override", " Node-A "]).values.hostnameOverride, "node-a");
});
