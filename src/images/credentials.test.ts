import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { type ImageAuth, RuntimeError } from "../adapters/runtime/port.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { ImagePuller } from "./puller.ts";

const image = { id: "sha256:1", tags: [], digests: [], sizeBytes: 1, username: "", pinned: false };

/** A registry that takes one user, and pods with the credentials that a test gives them. */
function site(
  accepted: string | undefined,
  given: readonly ImageAuth[],
  refusal: (user: string | undefined) => string = () => "unauthorized",
) {
  const tried: (string | undefined)[] = [];
  let isPulled = false;
  const images = {
    imageStatus: async () => (isPulled ? image : undefined),
    pullImage: async (_name: string, { auth }: { auth?: ImageAuth }) => {
      tried.push(auth?.username);
      if (auth?.username !== accepted) throw new RuntimeError("Unknown", refusal(auth?.username));
      isPulled = true;
      return image.id;
    },
  };
  const puller = new ImagePuller(
    // The fake pulls and looks; nothing else is asked of it here.
    {
      images: images as never,
      clock: new FakeClock(),
      credentials: async () => given.map((auth) => ({ auth, hash: "" })),
    },
    fixed({ parallel: 0, qps: 0, burst: 0 }),
    manyListeners().signal,
  );
  const of = pod().container("app", { image: "r.example.com/a:1", imagePullPolicy: "IfNotPresent" }).build();
  const [container = { name: "" }] = of.spec.containers;
  const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
  const journal = { begin: () => step, event: () => undefined };
  const request = { pod: of, container, journal, slot: { release: () => undefined } };
  return { tried, ensure: () => puller.ensure(request, manyListeners()) };
}

test("a pod's credentials are tried in their order until one is taken", async () => {
  const { tried, ensure } = site("second", [{ username: "first" }, { username: "second" }, { username: "third" }]);
  assert.equal((await ensure()).ref, image.id);
  assert.deepEqual(tried, ["first", "second"]);
});

test("a pod without credentials pulls without any", async () => {
  const { tried, ensure } = site(undefined, []);
  await ensure();
  assert.deepEqual(tried, [undefined]);
});

test("credentials that are all refused fail the pull with the registry's words, said once", async () => {
  const { tried, ensure } = site("nobody", [{ username: "first" }, { username: "second" }]);
  await assert.rejects(ensure(), { message: "unauthorized" });
  assert.deepEqual(tried, ["first", "second"]);
});

test("credentials that are refused for different reasons fail the pull with the errors of all", async () => {
  const given = [{ username: "first" }, { username: "second" }];
  const { ensure } = site("nobody", given, (user) => (user === "first" ? "denied" : "expired"));
  await assert.rejects(ensure(), { message: "[denied, expired]" });
});

test("other pods start while a credential plugin is asked", async () => {
  let answer: (credentials: readonly never[]) => void = () => undefined;
  let released = 0;
  const puller = new ImagePuller(
    {
      images: { imageStatus: async () => image } as never,
      clock: new FakeClock(),
      providers: { check: async () => undefined, forImage: () => new Promise((resolve) => (answer = resolve)) },
      access: {
        mustPull: async (_present, credentials) => (await credentials()).length > 0,
        begin: async () => undefined,
        record: async () => undefined,
        pulled: async () => undefined,
        failed: async () => undefined,
        unfinished: async () => undefined,
        removed: () => undefined,
        run: async () => undefined,
      },
    },
    fixed({ parallel: 0, qps: 0, burst: 0 }),
    manyListeners().signal,
  );
  const of = pod().container("app", { image: "r.example.com/a:1", imagePullPolicy: "Never" }).build();
  const [container = { name: "" }] = of.spec.containers;
  const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
  const journal = { begin: () => step, event: () => undefined };
  const request = { pod: of, container, journal, slot: { release: () => void released++ } };
  const ensured = puller.ensure(request, manyListeners());
  await new FakeClock().advance(0);
  assert.equal(released, 1, "the plugin has not answered yet");
  answer([]);
  assert.equal((await ensured).ref, image.id);
});
