import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../test/support/limits.ts";
import { pod } from "../../../test/support/pods.ts";
import type { SandboxConfig } from "../../adapters/runtime/port.ts";
import type { ContainerPort, Pod, PodSpec } from "../../model/generated/types.ts";
import { ConfigError } from "./config-error.ts";
import { type SandboxFacts, sandboxConfig } from "./sandbox-config.ts";

const facts: SandboxFacts = {
  attempt: 2,
  paths: { rootDir: "/root", podLogsDir: "/logs", containerLogsDir: "/links" },
  cgroupParent: "/kubepods/poduid-1",
  dns: { servers: ["10.96.0.10"], searches: ["svc.local"], options: ["ndots:5"] },
  clusterDomain: "cluster.local",
  limits: LIMITS,
};

function config(spec: Partial<PodSpec> = {}, more: Partial<SandboxFacts> = {}): SandboxConfig {
  return sandboxConfig(pod("web", "uid-1").container("app").with(spec).build(), { ...facts, ...more });
}

describe("the sandbox of a pod", () => {
  test("carries who it is, which attempt, its cgroup, its resolver settings and its log directory", () => {
    const got = config();
    assert.deepEqual(got.metadata, { name: "web", namespace: "default", uid: "uid-1", attempt: 2 });
    assert.equal(got.logDirectory, "/logs/default_web_uid-1");
    assert.equal(got.linux.cgroupParent, "/kubepods/poduid-1");
    assert.deepEqual(got.dns, facts.dns);
  });

  test("has the pod's labels and annotations, and its own labels win", () => {
    const built = pod("web", "uid-1").container("app").build();
    const labels = { app: "web", "io.kubernetes.pod.uid": "forged" };
    const of: Pod = { ...built, metadata: { ...built.metadata, labels, annotations: { note: "x" } } };
    const got = sandboxConfig(of, facts);
    assert.deepEqual(got.labels, {
      app: "web",
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "uid-1",
    });
    assert.deepEqual(got.annotations, { note: "x" });
  });

  test("is marked as ours on a runtime that others use too", () => {
    assert.deepEqual(config({}, { owner: "me" }).annotations, { "kubelet-ts/owner": "me" });
  });

  const names: [string, Partial<PodSpec>, string][] = [
    ["the pod's name", {}, "web"],
    ["the spec's", { hostname: "db-0" }, "db-0"],
    ["none of its own on the host's network", { hostNetwork: true, hostname: "db-0" }, ""],
    ["the short one, also with a subdomain", { subdomain: "db" }, "web"],
    [
      "the full one where that is asked",
      { subdomain: "db", setHostnameAsFQDN: true },
      "web.db.default.svc.cluster.local",
    ],
  ];
  for (const [name, spec, want] of names) test(`host name: ${name}`, () => assert.equal(config(spec).hostname, want));

  test("a full name of more than 64 characters keeps the sandbox from being made", () => {
    const spec = { subdomain: "d".repeat(50), setHostnameAsFQDN: true };
    assert.throws(
      () => config(spec),
      (error: Error) => error instanceof ConfigError && /^failed to construct FQDN .* is too long/.test(error.message),
    );
  });

  test("sysctls stand in the form with dots", () => {
    const sysctls = [
      { name: "net/core/somaxconn", value: "1024" },
      { name: "kernel.shm_rmid_forced", value: "1" },
    ];
    const want = { "net.core.somaxconn": "1024", "kernel.shm_rmid_forced": "1" };
    assert.deepEqual(config({ securityContext: { sysctls } }).linux.sysctls, want);
  });

  test("the pod's user, groups and SELinux label are the sandbox's; its seccomp profile is always the runtime's", () => {
    const securityContext = {
      runAsUser: 0,
      runAsGroup: 5,
      fsGroup: 7,
      supplementalGroups: [8],
      seLinuxOptions: { level: "s0" },
      seccompProfile: { type: "Unconfined" },
    };
    const { runAsUser, runAsGroup, supplementalGroups, selinux, seccomp } = config({ securityContext }).linux.security;
    assert.deepEqual([runAsUser, runAsGroup, supplementalGroups], [0, 5, [7, 8]]);
    assert.deepEqual([selinux, seccomp], [{ level: "s0" }, { type: "runtimeDefault" }]);
    const none = config().linux.security;
    assert.deepEqual(["runAsUser" in none, "runAsGroup" in none, "selinux" in none], [false, false, false]);
  });

  const privileged = { securityContext: { privileged: true } };
  const cases: [string, Pod, boolean][] = [
    ["no container", pod().container("a").container("b").build(), false],
    ["one regular container", pod().container("a").container("b", privileged).build(), true],
    ["one init container", pod().init("i", privileged).container("a").build(), true],
  ];
  for (const [who, of, want] of cases) {
    test(`${who} privileged: the sandbox is${want ? "" : " not"}`, () => {
      assert.equal(sandboxConfig(of, facts).linux.security.privileged, want);
    });
  }
});

describe("port mappings", () => {
  const mapped = (...ports: readonly ContainerPort[]): readonly object[] =>
    sandboxConfig(pod().container("app", { ports }).build(), facts).portMappings;

  test("every port, also those without a port on the host", () => {
    assert.deepEqual(
      mapped({ containerPort: 80 }, { containerPort: 53, hostPort: 5353, protocol: "UDP", hostIP: "127.0.0.1" }),
      [
        { protocol: "TCP", containerPort: 80, hostPort: 0, hostIp: "" },
        { protocol: "UDP", containerPort: 53, hostPort: 5353, hostIp: "127.0.0.1" },
      ],
    );
  });

  const counts: [string, ContainerPort[], number][] = [
    [
      "SCTP is one more protocol",
      [
        { containerPort: 1, protocol: "SCTP" },
        { containerPort: 1, protocol: "TCP" },
      ],
      2,
    ],
    ["the same port twice is one", [{ containerPort: 80 }, { containerPort: 80 }], 1],
    [
      "the same name twice is one",
      [
        { name: "web", containerPort: 80 },
        { name: "web", containerPort: 81 },
      ],
      1,
    ],
    [
      "an empty name is none",
      [
        { name: "", containerPort: 80 },
        { name: "", containerPort: 81 },
      ],
      2,
    ],
    [
      "another address is another port",
      [
        { containerPort: 80, hostPort: 8, hostIP: "127.0.0.1" },
        { containerPort: 80, hostPort: 8, hostIP: "::1" },
      ],
      2,
    ],
    [
      "another port on the host is another port",
      [
        { containerPort: 80, hostPort: 8 },
        { containerPort: 80, hostPort: 9 },
      ],
      2,
    ],
  ];
  for (const [name, ports, want] of counts) test(name, () => assert.equal(mapped(...ports).length, want));

  test("two containers may each name the same port; init containers' ports do not count", () => {
    const ports = [{ name: "web", containerPort: 80 }];
    const of = pod().init("i", { ports }).container("a", { ports }).container("b", { ports }).build();
    assert.equal(sandboxConfig(of, facts).portMappings.length, 2);
  });
});
