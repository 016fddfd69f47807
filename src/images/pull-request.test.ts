import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { ImagePull, SandboxConfig } from "../adapters/runtime/port.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import type { Pod } from "../model/generated/types.ts";
import { StartError } from "../model/start-error.ts";
import { ImagePuller } from "./puller.ts";

const image = { id: "sha256:1", tags: [], digests: [], sizeBytes: 1, username: "", pinned: false };

/** A runtime that records what it is asked to pull and answers when the test says so. */
class Site {
  readonly pulls: ImagePull[] = [];
  readonly events: string[] = [];
  /** Handlers that images were inspected for. */
  readonly inspected: (string | undefined)[] = [];
  private answer: Promise<unknown>;
  release: () => void = () => undefined;
  readonly puller: ImagePuller;

  constructor(error?: Error, namesHandler = false) {
    this.answer = new Promise<void>((resolve) => {
      this.release = resolve;
    });
    const images = {
      imageStatus: async (_name: string, options: { runtimeHandler?: string }) => {
        this.inspected.push(options.runtimeHandler);
        return this.pulls.length > 0 ? image : undefined;
      },
      pullImage: async (_name: string, request: ImagePull) => {
        this.pulls.push(request);
        await this.answer;
        if (error !== undefined) throw error;
        return image.id;
      },
    };
    this.puller = new ImagePuller(
      {
        // The fake pulls and inspects; nothing else is asked of it here.
        images: images as never,
        clock: new FakeClock(),
        namesHandler,
        credentials: async () => [{ auth: { username: "pod" }, hash: "" }],
        nodeCredentials: { forImage: async (name) => [{ auth: { username: `node for ${name}` }, hash: "" }] },
      },
      fixed({ parallel: 0, qps: 0, burst: 0 }),
      manyListeners().signal,
    );
  }

  ensure(of: Pod): ReturnType<ImagePuller["ensure"]> {
    const [container = { name: "" }] = of.spec.containers;
    const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
    const journal = {
      begin: () => step,
      event: (_type: string, reason: string, what: string | { message: string }) =>
        void this.events.push(`${reason} ${typeof what === "string" ? what : what.message}`),
    };
    // Only handed through.
    const sandbox = async (): Promise<SandboxConfig> => ({ hostname: of.metadata.name }) as SandboxConfig;
    return this.puller.ensure(
      { pod: of, container, journal, slot: { release: () => undefined }, sandbox, runtimeHandler: async () => "kata" },
      manyListeners(),
    );
  }
}

function wanting(namespace: string, name = "web", annotations: Record<string, string> = {}): Pod {
  const built = pod(name, `uid-${name}`).container("app", { image: "r.example.com/a:1", imagePullPolicy: "Always" });
  const of = built.build();
  return { ...of, metadata: { ...of.metadata, namespace, annotations } };
}

const settle = (): Promise<void> => new FakeClock().advance(0);

test("the runtime gets the pod's annotations and sandbox configuration with a pull", async () => {
  const site = new Site();
  site.release();
  await site.ensure(wanting("default", "web", { "example.com/snapshotter": "stargz" }));
  assert.deepEqual(site.pulls, [
    {
      auth: { username: "pod" },
      annotations: { "example.com/snapshotter": "stargz" },
      sandbox: { hostname: "web" },
    },
  ]);
});

for (const namesHandler of [true, false]) {
  test(`the pod's runtime handler is ${namesHandler ? "" : "not "}named in image calls with RuntimeClassInImageCriApi ${namesHandler ? "on" : "off"}`, async () => {
    const site = new Site(undefined, namesHandler);
    site.release();
    const of = wanting("default");
    const [container = { name: "" }] = of.spec.containers;
    await site.ensure({ ...of, spec: { ...of.spec, containers: [{ ...container, imagePullPolicy: "IfNotPresent" }] } });
    const handler = namesHandler ? "kata" : undefined;
    assert.deepEqual(site.inspected, [handler, handler]);
    assert.equal(site.pulls[0]?.runtimeHandler, handler);
  });
}

const sharing = [
  { name: "pods of one namespace share a pull", pods: [wanting("a"), wanting("a", "other")], pulls: 1 },
  { name: "pods of two namespaces do not", pods: [wanting("a"), wanting("b")], pulls: 2 },
  {
    name: "pods with different annotations do not",
    pods: [wanting("a"), wanting("a", "web", { "example.com/snapshotter": "stargz" })],
    pulls: 2,
  },
  {
    name: "annotations of the kubelet itself do not count",
    pods: [
      wanting("a", "web", { "kubernetes.io/config.seen": "1" }),
      wanting("a", "web", { "kubernetes.io/config.seen": "2" }),
    ],
    pulls: 1,
  },
];
for (const { name, pods, pulls } of sharing) {
  test(name, async () => {
    const site = new Site();
    const all = Promise.all(pods.map((of) => site.ensure(of)));
    await settle();
    site.release();
    await all;
    assert.equal(site.pulls.length, pulls);
  });
}

test("the node's credentials are tried after the pod's", async () => {
  const site = new Site(new RuntimeError("Unknown", "unauthorized"));
  site.release();
  await assert.rejects(site.ensure(wanting("a")), /unauthorized/);
  assert.deepEqual(
    site.pulls.map(({ auth }) => auth?.username),
    ["pod", "node for r.example.com/a:1"],
  );
});

const failures = [
  {
    error: "RegistryUnavailable: connection refused",
    reason: "RegistryUnavailable",
    message: "image pull failed for r.example.com/a:1 because the registry is unavailable: connection refused",
  },
  {
    error: "SignatureValidationFailed: no signature",
    reason: "SignatureValidationFailed",
    message: "image pull failed for r.example.com/a:1 because the signature validation failed: no signature",
  },
  { error: "not found", reason: "ErrImagePull", message: "not found" },
];
for (const { error, reason, message } of failures) {
  test(`a pull that fails with "${error}" has the waiting reason ${reason}`, async () => {
    const site = new Site(new RuntimeError("Unknown", error));
    site.release();
    const failed = await site.ensure(wanting("a")).catch((thrown: unknown) => thrown);
    assert.ok(failed instanceof StartError);
    assert.deepEqual([failed.reason, failed.message], [reason, message]);
    assert.equal(failed.retry.message, `Back-off pulling image "r.example.com/a:1": ${reason}: ${message}`);
    assert.deepEqual(
      site.events.filter((event) => event.startsWith("Failed")),
      [
        `Failed Failed to pull image "r.example.com/a:1": ${error}`,
        `Failed Error: ${reason}`,
        "Failed Error: ImagePullBackOff",
      ],
    );
  });
}
