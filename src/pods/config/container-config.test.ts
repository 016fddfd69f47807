import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../test/support/limits.ts";
import { pod } from "../../../test/support/pods.ts";
import type { ContainerConfig } from "../../adapters/runtime/port.ts";
import { containerHash } from "../../model/container-hash.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { type ContainerFacts, containerConfig } from "./container-config.ts";

const image = { id: "sha256:1", tags: ["app:1"], digests: [], sizeBytes: 1, username: "www", pinned: false };
const facts: ContainerFacts = {
  ...{
    attempt: 3,
    image,
    imageRef: "sha256:1",
    mounts: [],
    seccompRoot: "/root/seccomp",
    extraMaskedPaths: ["/extra"],
    seccompDefault: false,
  },
  ...{ limits: LIMITS, podIps: ["10.0.0.5"], hostIps: ["192.0.2.1"], allocatable: {} },
};

function build(more: Partial<Container> = {}, change: (of: Pod) => Pod = (of) => of): ContainerConfig {
  const of = change(pod("web", "uid-1").container("app", more).build());
  return containerConfig(of, of.spec.containers[0] ?? { name: "" }, facts);
}

describe("the container", () => {
  test("is made from the image's id and still says what the user wrote", () => {
    assert.deepEqual(build().image, { ref: "sha256:1", userSpecified: "app:1" });
  });

  test("says whose it is, which attempt, and where its log goes", () => {
    const got = build();
    assert.deepEqual([got.name, got.attempt, got.logPath], ["app", 3, "app/3.log"]);
    assert.deepEqual(got.labels, {
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "uid-1",
      "io.kubernetes.container.name": "app",
    });
  });

  test("command and arguments see the variables; what is empty is left to the image", () => {
    const env = [{ name: "PORT", value: "80" }];
    const got = build({ env, command: ["/srv", "-p=$(PORT)"], args: ["$(NONE)", "$$(PORT)"] });
    assert.deepEqual(
      [got.command, got.args],
      [
        ["/srv", "-p=80"],
        ["$(NONE)", "$(PORT)"],
      ],
    );
    assert.deepEqual(got.envs, [{ name: "PORT", value: "80" }]);
    assert.deepEqual([build().command, build().args, build().workingDir], [[], [], ""]);
  });

  test("has the mounts that were made for it", () => {
    const mounts = [{ containerPath: "/data", hostPath: "/v", readonly: true, propagation: "private" } as const];
    const of = pod("web").container("app").build();
    assert.deepEqual(containerConfig(of, { name: "app" }, { ...facts, mounts }).mounts, mounts);
  });

  test("standard input, terminal and directory are as asked", () => {
    const { stdin, stdinOnce, tty, workingDir } = build({ stdin: true, stdinOnce: true, tty: true, workingDir: "/w" });
    assert.deepEqual([stdin, stdinOnce, tty, workingDir], [true, true, true, "/w"]);
    const none = build();
    assert.deepEqual([none.stdin, none.stdinOnce, none.tty], [false, false, false]);
  });

  test("its security context comes from the image and from the machine too", () => {
    const { runAsUsername, maskedPaths } = build().linux.security;
    assert.equal(runAsUsername, "www");
    assert.equal(maskedPaths.at(-1), "/extra");
  });
});

describe("annotations, which tell the next agent what the spec said", () => {
  test("hash, restart count, message path and policy, grace", () => {
    const message = { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" };
    assert.deepEqual(build(message).annotations, {
      "io.kubernetes.container.hash": containerHash({ name: "app", image: "app:1" }),
      "io.kubernetes.container.restartCount": "3",
      "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
      "io.kubernetes.container.terminationMessagePolicy": "File",
      "io.kubernetes.pod.terminationGracePeriod": "30",
    });
  });

  test("ports and the preStop hook, as JSON", () => {
    const ports = [{ containerPort: 80, protocol: "TCP" }];
    const preStop = { exec: { command: ["bye"] } };
    const { annotations } = build({ ports, lifecycle: { preStop } });
    assert.deepEqual(JSON.parse(annotations["io.kubernetes.container.ports"] ?? ""), ports);
    assert.deepEqual(JSON.parse(annotations["io.kubernetes.container.preStopHandler"] ?? ""), preStop);
  });

  test("the grace of a deletion that was asked for already, also 0", () => {
    const { annotations } = build({}, (of) => ({ ...of, metadata: { ...of.metadata, deletionGracePeriodSeconds: 0 } }));
    assert.equal(annotations["io.kubernetes.pod.deletionGracePeriod"], "0");
  });

  test("no ports: no annotation of them", () => {
    assert.equal("io.kubernetes.container.ports" in build({ ports: [] }).annotations, false);
  });

  test("is stopped with the signal that its lifecycle names", () => {
    assert.equal(build({ lifecycle: { stopSignal: "SIGUSR1" } }).stopSignal, "SIGUSR1");
    assert.equal("stopSignal" in build(), false);
  });
});
