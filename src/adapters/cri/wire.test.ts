import assert from "node:assert/strict";
import { test } from "node:test";
import { type ContainerConfig as PortConfig, RuntimeError } from "../runtime/port.ts";
import {
  fromContainer,
  fromContainerStats,
  fromContainerStatus,
  fromImage,
  fromSandboxStatus,
  fromStatus,
  sandboxImageOf,
  toMillis,
} from "./from-wire.ts";
import {
  Container,
  ContainerConfig,
  ContainerStats,
  ContainerStatus,
  Image,
  LinuxContainerResources,
  PodSandboxStatus,
  Signal,
  StatusResponse,
} from "./generated/cri.ts";
import { toContainerConfig, toResources } from "./to-wire.ts";

const times = [
  { name: "unset", nanoseconds: 0n, want: 0 },
  { name: "Go's zero time", nanoseconds: -6795364578871345152n, want: 0 },
  { name: "a moment, cut to milliseconds", nanoseconds: 1_794_778_435_301_999_999n, want: 1_794_778_435_301 },
];
for (const { name, nanoseconds, want } of times) {
  test(`nanoseconds become milliseconds: ${name}`, () => assert.equal(toMillis(nanoseconds), want));
}

const condition = (type: string, status: boolean) => ({ type, status, reason: `${type}Why`, message: `${type} words` });
const statuses = [
  {
    name: "all well",
    given: [condition("RuntimeReady", true), condition("NetworkReady", true)],
    want: [true, true, ""],
  },
  {
    name: "no network",
    given: [condition("RuntimeReady", true), condition("NetworkReady", false)],
    want: [true, false, "NetworkReady=false reason:NetworkReadyWhy message:NetworkReady words"],
  },
  {
    name: "a condition that is not told counts as not ready",
    given: [condition("NetworkReady", true)],
    want: [false, true, "RuntimeReady is not reported"],
  },
];
for (const { name, given, want } of statuses) {
  test(`status: ${name}`, () => {
    const { ready, networkReady, message } = fromStatus(StatusResponse.fromPartial({ status: { conditions: given } }));
    assert.deepEqual([ready, networkReady, message], want);
  });
}

test("a sandbox's addresses come primary first, empty ones left out", () => {
  const network = { ip: "10.0.0.1", additionalIps: [{ ip: "fd00::1" }, { ip: "" }] };
  assert.deepEqual(fromSandboxStatus(PodSandboxStatus.fromPartial({ network })).ips, ["10.0.0.1", "fd00::1"]);
  assert.deepEqual(fromSandboxStatus(PodSandboxStatus.fromPartial({ network: { ip: "" } })).ips, []);
});

test("an image without a numeric user has no uid, and user 0 is one", () => {
  assert.equal("uid" in fromImage(Image.fromPartial({ id: "x" })), false);
  assert.equal(fromImage(Image.fromPartial({ id: "x", uid: { value: 0n } })).uid, 0);
});

test("limits survive the wire, negative and large ones too", () => {
  const wire = LinuxContainerResources.fromPartial(
    toResources({ cpuQuota: -1, memoryLimitBytes: 2 ** 52, oomScoreAdj: -997, unified: { "memory.high": "1" } }),
  );
  const back = LinuxContainerResources.decode(LinuxContainerResources.encode(wire).finish());
  assert.deepEqual([back.cpuQuota, back.memoryLimitInBytes, back.oomScoreAdj], [-1n, 2n ** 52n, -997n]);
  assert.deepEqual(back.unified, { "memory.high": "1" });
});

const config = (stopSignal?: string) => ({
  name: "c",
  attempt: 2,
  image: { ref: "sha256:1", userSpecified: "web:1" },
  command: ["/bin/sh"],
  args: ["-c", "x"],
  workingDir: "/w",
  envs: [{ name: "A", value: "ü" }],
  mounts: [{ containerPath: "/c", hostPath: "/h", readonly: true, propagation: "bidirectional" as const }],
  devices: [],
  cdiDevices: ["vendor.com/gpu=0"],
  labels: { l: "1" },
  annotations: { "vendor.com/card": "0" },
  logPath: "l",
  stdin: false,
  stdinOnce: false,
  tty: true,
  ...(stopSignal !== undefined && { stopSignal }),
  linux: {
    resources: {},
    security: {
      namespaces: { network: "node" as const, pid: "target" as const, ipc: "pod" as const, targetId: "t" },
      privileged: false,
      readonlyRootfs: true,
      noNewPrivs: true,
      addCapabilities: ["NET_ADMIN"],
      dropCapabilities: ["ALL"],
      runAsUser: 0,
      supplementalGroups: [5],
      maskedPaths: [],
      readonlyPaths: [],
      seccomp: { type: "localhost" as const, localhostRef: "/p.json" },
    },
  },
});

test("a container's configuration survives the wire", () => {
  const wire = ContainerConfig.fromPartial(toContainerConfig(config("SIGUSR1")));
  const back = ContainerConfig.decode(ContainerConfig.encode(wire).finish());
  assert.equal(back.envs[0]?.value.toString(), "ü");
  assert.equal(back.mounts[0]?.propagation, 2);
  assert.equal(back.stopSignal, 29);
  assert.deepEqual(back.CDIDevices, [{ name: "vendor.com/gpu=0" }]);
  assert.deepEqual({ ...back.annotations }, { "vendor.com/card": "0" });
  const security = back.linux?.securityContext;
  assert.deepEqual(security?.runAsUser, { value: 0n }, "user 0 is told, not left out");
  assert.equal(security?.runAsGroup, undefined);
  assert.deepEqual([security?.namespaceOptions?.network, security?.namespaceOptions?.pid], [2, 3]);
  assert.deepEqual(security?.seccomp, { profileType: 2, localhostRef: "/p.json" });
});

test("a stop signal that CRI does not know is refused", () => {
  for (const name of ["SIGNOPE", "toString"]) {
    assert.throws(
      () => toContainerConfig(config(name)),
      (error) => error instanceof RuntimeError && error.code === "InvalidArgument",
    );
  }
});

const namespaces = { network: "pod", pid: "container", ipc: "pod" } as const;
const bare: PortConfig = {
  name: "c",
  attempt: 0,
  image: { ref: "r", userSpecified: "r" },
  command: [],
  args: [],
  workingDir: "",
  envs: [],
  mounts: [],
  devices: [],
  cdiDevices: [],
  labels: {},
  annotations: {},
  logPath: "c/0.log",
  stdin: false,
  stdinOnce: false,
  tty: false,
  linux: {
    resources: {},
    security: {
      namespaces,
      privileged: false,
      readonlyRootfs: false,
      noNewPrivs: false,
      supplementalGroups: [],
      addCapabilities: [],
      dropCapabilities: [],
      maskedPaths: [],
      readonlyPaths: [],
      seccomp: { type: "unconfined" },
    },
  },
};

test("a user namespace goes to the namespaces and to every mount, for users and groups", () => {
  const users = { hostId: 65_536, containerId: 0, length: 65_536 };
  const wire = toContainerConfig({
    ...bare,
    mounts: [{ containerPath: "/a", hostPath: "/b", readonly: false, propagation: "private", users }],
    linux: { ...bare.linux, security: { ...bare.linux.security, namespaces: { ...namespaces, users } } },
  });
  const back = ContainerConfig.decode(ContainerConfig.encode(ContainerConfig.fromPartial(wire)).finish());
  const options = back.linux?.securityContext?.namespaceOptions?.usernsOptions;
  assert.deepEqual([options?.mode, options?.uids, options?.gids], [0, [users], [users]]);
  assert.deepEqual([back.mounts[0]?.uidMappings, back.mounts[0]?.gidMappings], [[users], [users]]);
  const plain = ContainerConfig.fromPartial(toContainerConfig(bare));
  assert.equal(plain.linux?.securityContext?.namespaceOptions?.usernsOptions, undefined);
});

test("who a container runs as, and its stop signal, are told where the runtime tells them", () => {
  const user = { linux: { uid: 5n, gid: 6n, supplementalGroups: [7n] } };
  const told = fromContainerStatus(ContainerStatus.fromPartial({ id: "x", user, stopSignal: Signal.SIGUSR1 }));
  assert.deepEqual([told.user, told.stopSignal], [{ uid: 5, gid: 6, groups: [7] }, "SIGUSR1"]);
  const untold = fromContainerStatus(ContainerStatus.fromPartial({ id: "x" }));
  assert.equal("user" in untold || "stopSignal" in untold, false);
});

test("a writable layer is told once the runtime has measured it", () => {
  const attributes = { id: "c1", metadata: { name: "main" }, labels: { a: "b" } };
  const told = (writableLayer?: object): ReturnType<typeof fromContainerStats> =>
    fromContainerStats(ContainerStats.fromPartial({ attributes, ...(writableLayer && { writableLayer }) }));
  assert.equal(told(), undefined);
  assert.equal(told({ timestamp: 5n }), undefined);
  assert.equal(
    told({ usedBytes: { value: 0n }, inodesUsed: { value: 0n } }),
    undefined,
    "containerd before it measured",
  );
  assert.deepEqual(told({ timestamp: 7_000_000n, usedBytes: { value: 4096n }, inodesUsed: { value: 3n } }), {
    id: "c1",
    name: "main",
    labels: { a: "b" },
    bytes: 4096,
    inodes: 3,
    at: 7,
  });
});

test("a container's reason and message are clipped", () => {
  const huge = "x".repeat(1024 * 1024);
  const told = fromContainerStatus(ContainerStatus.fromPartial({ id: "x", reason: huge, message: huge }));
  assert.equal(Buffer.byteLength(told.reason), 4096);
  assert.equal(Buffer.byteLength(told.message), 4096);
});

test("an image's runtime handler, a container's image and image volumes are told where the runtime tells them", () => {
  const image = Image.fromPartial({ id: "x", spec: { image: "x", runtimeHandler: "kata" } });
  assert.equal(fromImage(image).runtimeHandler, "kata");
  assert.equal("runtimeHandler" in fromImage(Image.fromPartial({ id: "x" })), false);
  const summary = fromContainer(Container.fromPartial({ id: "c", imageId: "x", image: { runtimeHandler: "kata" } }));
  assert.deepEqual([summary.imageId, summary.imageHandler], ["x", "kata"]);
  const status = fromContainerStatus(
    ContainerStatus.fromPartial({
      mounts: [{ containerPath: "/data", image: { image: "x" } }, { containerPath: "/v" }],
    }),
  );
  assert.deepEqual(
    status.mounts.map(({ image: of }) => of),
    ["x", undefined],
  );
});

test("the sandbox image is read from containerd's configuration, and anything else is no answer", () => {
  assert.equal(sandboxImageOf('{"sandboxImage":"registry.test/pause:1"}'), "registry.test/pause:1");
  for (const other of [undefined, "", "{", "null", "[]", '"x"', '{"sandboxImage":7}']) {
    assert.equal(sandboxImageOf(other), undefined);
  }
});
