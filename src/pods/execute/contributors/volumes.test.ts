import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { creation } from "../../../../test/support/creation.ts";
import { pod } from "../../../../test/support/pods.ts";
import { MemoryFiles } from "../../../../test/support/ring.ts";
import type { ContainerMount } from "../../../adapters/runtime/port.ts";
import { FakeClock } from "../../../lib/clock.ts";
import { silent } from "../../../lib/log.ts";
import { ConfigError } from "../../../model/config-error.ts";
import type { Container, VolumeMount } from "../../../model/generated/types.ts";
import { Journal } from "../../journal.ts";
import type { ExecuteDeps, PodRun, VolumeSource } from "../context.ts";
import { mergeContributions } from "./merge.ts";
import { pullImageVolumes, volumes } from "./volumes.ts";

const sources: Record<string, VolumeSource> = {
  data: { kind: "path", path: "/data", readonly: false },
  theirs: { kind: "path", path: "/theirs", readonly: false, isUsers: true },
  config: { kind: "path", path: "/config", readonly: true },
  disk: { kind: "device", path: "/dev/sda", readonly: false },
  content: { kind: "image", reference: "content:1", pullPolicy: "Always" },
};

interface Scene {
  readonly mounts: readonly ContainerMount[];
  readonly pulled: readonly string[];
  readonly bound: readonly unknown[];
}

interface Options {
  readonly env?: Container["env"];
  readonly recursive?: boolean;
  /** Of the pod's RuntimeClass. */
  readonly handler?: string;
  readonly selinux?: boolean;
  readonly fault?: Error;
}

/** The mounts that a container with these volumeMounts gets, without those of its own files. */
async function mount(volumeMounts: readonly VolumeMount[], options: Options = {}): Promise<Scene> {
  const web = pod()
    .container("app", { volumeMounts, env: options.env ?? [], terminationMessagePath: "" })
    .build();
  const [container = { name: "" }] = web.spec.containers;
  const pulled: string[] = [];
  const bound: unknown[] = [];
  // reason: only these parts are used for mounts
  const deps = {
    node: {
      paths: { rootDir: "/root", podLogsDir: "/logs", containerLogsDir: "/links" },
      hasSelinux: options.selinux === true,
    },
    files: new MemoryFiles(),
    log: silent,
    images: {
      ensure: ({ container: { image, imagePullPolicy } }: { container: Container }) => {
        pulled.push(`${image} ${imagePullPolicy}`);
        return Promise.resolve({ ref: `sha256:${image}` });
      },
    },
    runtime: {
      status: () =>
        Promise.resolve({
          handlers: [
            { name: "", recursiveReadOnlyMounts: options.recursive === true },
            { name: "sandboxed", recursiveReadOnlyMounts: options.recursive !== true },
          ],
        }),
    },
    ...(options.handler !== undefined && { cluster: { handlerOf: () => Promise.resolve(options.handler) } }),
    volumes: {
      source: (_pod: unknown, name: string) => sources[name],
      subPath: (_pod: unknown, place: { volume: string; subPath: string }) => {
        bound.push(place);
        return options.fault === undefined
          ? Promise.resolve(`/bound/${place.volume}/${place.subPath}`)
          : Promise.reject(options.fault);
      },
    },
  } as unknown as ExecuteDeps;
  const { signal } = new AbortController();
  const journal = new Journal({ clock: new FakeClock() }).of({ uid: "u", name: "web", namespace: "default" });
  // reason: nothing here asks for a slot or a sandbox
  const run = { pod: web, journal, interrupt: signal, finish: signal, sandbox: undefined } as unknown as PodRun;
  const imageVolumes = await pullImageVolumes(deps, run, container);
  const env = (options.env ?? []).map(({ name, value = "" }) => ({ name, value }));
  const before = mergeContributions([[{ name: "environment" }, { env }]]);
  const { mounts = [] } = await volumes(deps).contribute(creation(web, { imageVolumes }), before);
  return { mounts, pulled, bound };
}

describe("a volumeMount", () => {
  const at = (name: string, more: Partial<VolumeMount> = {}): VolumeMount => ({ name, mountPath: "/m", ...more });
  const plain = { containerPath: "/m", hostPath: "/data", readonly: false, propagation: "private" };
  const cases: [string, VolumeMount, object][] = [
    ["is the volume's directory", at("data"), plain],
    ["may be read-only", at("data", { readOnly: true }), { ...plain, readonly: true }],
    [
      "of a volume that is read-only is, whatever it says itself",
      at("config", { readOnly: false }),
      { ...plain, hostPath: "/config", readonly: true },
    ],
    [
      "passes mounts on as it says",
      at("data", { mountPropagation: "HostToContainer" }),
      { ...plain, propagation: "hostToContainer" },
    ],
    ["both ways", at("data", { mountPropagation: "Bidirectional" }), { ...plain, propagation: "bidirectional" }],
    ["of a part is that part, mounted", at("data", { subPath: "a/b" }), { ...plain, hostPath: "/bound/data/a/b" }],
    [
      "of a part with variables is the part that they name",
      at("data", { subPathExpr: "x/$(WHO)/$$(WHO)" }),
      { ...plain, hostPath: "/bound/data/x/me/$(WHO)" },
    ],
    [
      "of an image is the runtime's to mount, read-only, with its part",
      at("content", { subPath: "docs" }),
      { ...plain, hostPath: "", readonly: true, image: { ref: "sha256:content:1", subPath: "docs" } },
    ],
  ];
  for (const [name, volumeMount, want] of cases) {
    test(name, async () => {
      const { mounts } = await mount([volumeMount], { env: [{ name: "WHO", value: "me" }] });
      assert.deepEqual(mounts, [want]);
    });
  }

  test("with SELinux is labelled for the pod, unless it is the user's or an image; without it nothing is", async () => {
    const mounts = [at("data"), at("data", { subPath: "s" }), at("theirs"), at("content")];
    const labels = async (selinux: boolean): Promise<unknown[]> =>
      (await mount(mounts, { selinux })).mounts.map(({ selinuxRelabel }) => selinuxRelabel);
    assert.deepEqual(await labels(true), [true, true, undefined, undefined]);
    assert.deepEqual(await labels(false), [undefined, undefined, undefined, undefined]);
  });

  test("each subPath is mounted apart, by the index of its mount", async () => {
    const { bound } = await mount([at("data"), { name: "data", mountPath: "/n", subPath: "s" }]);
    assert.deepEqual(bound, [{ volume: "data", container: "app", index: 1, subPath: "s" }]);
  });

  test("an image is pulled once by its own policy", async () => {
    const { pulled } = await mount([at("content"), { name: "content", mountPath: "/n" }]);
    assert.deepEqual(pulled, ["content:1 Always"]);
  });

  const refused: [string, VolumeMount, Options, string][] = [
    ["an unknown variable", at("data", { subPathExpr: "$(GONE)" }), {}, "missing value for GONE"],
    [
      "a variable that is empty",
      at("data", { subPathExpr: "a/$(E)" }),
      { env: [{ name: "E", value: "" }] },
      "missing value for E",
    ],
    [
      "a variable that leads out",
      at("data", { subPathExpr: "$(E)/x" }),
      { env: [{ name: "E", value: "../.." }] },
      `must not contain '..'`,
    ],
    [
      "variables that make a longer path than there can be",
      at("data", { subPathExpr: "$(E)".repeat(1000) }),
      { env: [{ name: "E", value: "x".repeat(1_000_000) }] },
      "take more than 4096 bytes",
    ],
    [
      "a variable that is a path",
      at("data", { subPathExpr: "$(E)" }),
      { env: [{ name: "E", value: "/etc" }] },
      "absolute",
    ],
    [
      "a part that cannot be mounted, without a word about the host",
      at("data", { subPath: "s" }),
      { fault: new Error("/root/pods/secret-path: EXDEV") },
      'failed to prepare subPath for volumeMount "data" of container "app"',
    ],
    ["a block device", at("disk"), {}, 'volume "disk" is in volumeMounts, but it is a block device'],
    [
      "recursive read-only where the runtime cannot",
      at("data", { readOnly: true, recursiveReadOnly: "Enabled" }),
      {},
      'volume "data" requested recursive read-only mode, but it is not supported by the runtime',
    ],
  ];
  for (const [name, volumeMount, options, words] of refused) {
    test(`${name} is a configuration error`, async () => {
      await assert.rejects(mount([volumeMount], options), (error: Error) => {
        assert.ok(error instanceof ConfigError);
        assert.ok(error.message.includes(words), error.message);
        assert.doesNotMatch(error.message, /secret-path/);
        return true;
      });
    });
  }

  const recursive: [string, boolean, true | undefined][] = [
    ["Enabled", true, true],
    ["IfPossible", true, true],
    ["IfPossible", false, undefined],
    ["Disabled", true, undefined],
  ];
  for (const [mode, isAble, want] of recursive) {
    test(`recursive read-only ${mode} on a runtime that ${isAble ? "can" : "cannot"}`, async () => {
      const { mounts } = await mount([at("data", { readOnly: true, recursiveReadOnly: mode })], { recursive: isAble });
      assert.equal(mounts[0]?.recursiveReadOnly, want);
    });
  }

  test("recursive read-only is what the handler of the pod's RuntimeClass can, not the default one", async () => {
    const volumeMount = at("data", { readOnly: true, recursiveReadOnly: "Enabled" });
    const { mounts } = await mount([volumeMount], { recursive: false, handler: "sandboxed" });
    assert.equal(mounts[0]?.recursiveReadOnly, true);
    await assert.rejects(mount([volumeMount], { recursive: true, handler: "sandboxed" }), ConfigError);
  });
});
