import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { ContainerConfig } from "../../adapters/runtime/port.ts";
import type { Container } from "../../model/generated/types.ts";
import { ConfigError } from "./config-error.ts";
import { type ContainerFacts, containerConfig } from "./container-config.ts";

const image = { id: "sha256:1", tags: ["app:1"], digests: [], sizeBytes: 1, username: "www", pinned: false };
const facts: ContainerFacts = {
  attempt: 3,
  image,
  imageRef: "sha256:1",
  envs: [],
  mounts: [],
  devices: [],
  cdiDevices: [],
  annotations: {},
  resources: {},
  seccompRoot: "/root/seccomp",
  extraMaskedPaths: ["/extra"],
  seccompDefault: false,
};

function build(more: Partial<Container> = {}, given: Partial<ContainerFacts> = {}): ContainerConfig {
  const of = pod("web", "uid-1").container("app", more).build();
  return containerConfig(of, of.spec.containers[0] ?? { name: "" }, { ...facts, ...given });
}

describe("the container", () => {
  for (const field of ["command", "args"]) {
    test(`with variables that make its ${field} longer than 4 MiB is a configuration error`, () => {
      const envs = [{ name: "V", value: "x".repeat(2 ** 20) }];
      assert.throws(() => build({ [field]: Array.from({ length: 10_000 }, () => "$(V)") }, { envs }), ConfigError);
      assert.deepEqual(build({ [field]: ["$(V)"] }, { envs }).envs, envs);
    });
  }

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
    const envs = [{ name: "PORT", value: "80" }];
    const got = build({ command: ["/srv", "-p=$(PORT)"], args: ["$(NONE)", "$$(PORT)"] }, { envs });
    assert.deepEqual(
      [got.command, got.args],
      [
        ["/srv", "-p=80"],
        ["$(NONE)", "$(PORT)"],
      ],
    );
    assert.deepEqual(got.envs, envs);
    assert.deepEqual([build().command, build().args, build().workingDir], [[], [], ""]);
  });

  test("has what contributors made for it", () => {
    const given = {
      mounts: [{ containerPath: "/data", hostPath: "/v", readonly: true, propagation: "private" }],
      devices: [{ containerPath: "/dev/x", hostPath: "/dev/y", permissions: "rw" }],
      cdiDevices: ["vendor.com/gpu=0"],
      annotations: { key: "value" },
    } as const;
    const { mounts, devices, cdiDevices, annotations, linux } = build({}, { ...given, resources: { cpuShares: 2 } });
    assert.deepEqual({ mounts, devices, cdiDevices, annotations }, given);
    assert.deepEqual(linux.resources, { cpuShares: 2 });
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

  test("is stopped with the signal that its lifecycle names", () => {
    assert.equal(build({ lifecycle: { stopSignal: "SIGUSR1" } }).stopSignal, "SIGUSR1");
    assert.equal("stopSignal" in build(), false);
  });
});
