import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { type ImageAuth, RuntimeError } from "../adapters/runtime/port.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { fixed } from "../lib/live.ts";
import type { PullCredential } from "../model/pull-credential.ts";
import { ImagePuller } from "./puller.ts";

const image = { id: "sha256:1", tags: [], digests: [], sizeBytes: 1, username: "", pinned: false };
const good: PullCredential = { auth: { username: "good" }, hash: "g" };
const bad: PullCredential = { auth: { username: "bad" }, hash: "b" };

/** A registry that takes `good`, a node that has the image, and what the records are told. */
function site({
  mustPull,
  credentials = [] as readonly PullCredential[],
  hasStatus = true,
}: {
  mustPull: boolean;
  credentials?: readonly PullCredential[];
  hasStatus?: boolean;
}) {
  const told: unknown[] = [];
  const events: string[] = [];
  let isPulled = false;
  const puller = new ImagePuller(
    {
      // The fake pulls and looks; nothing else is asked of it here.
      images: {
        imageStatus: async () => (isPulled && !hasStatus ? undefined : image),
        pullImage: async (_name: string, { auth }: { auth?: ImageAuth }) => {
          if (auth?.username !== "good") throw new RuntimeError("Unknown", "unauthorized");
          isPulled = true;
          return image.id;
        },
      } as never,
      clock: new FakeClock(),
      credentials: async () => credentials,
      access: {
        mustPull: async (present) => {
          told.push(["check", present]);
          return mustPull;
        },
        begin: async (name) => void told.push(["begin", name]),
        record: async () => undefined,
        pulled: async (present, credential) => void told.push(["pulled", present, credential]),
        failed: async (name) => void told.push(["failed", name]),
        unfinished: async (name, before) => void told.push(["unfinished", name, before]),
        removed: () => undefined,
        run: async () => undefined,
      },
    },
    fixed({ parallel: 0, qps: 0, burst: 0 }),
    manyListeners().signal,
  );
  const ensure = (imagePullPolicy: string): Promise<string> => {
    const of = pod().container("app", { image: "r.example.com/a", imagePullPolicy }).build();
    const [container = { name: "" }] = of.spec.containers;
    const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
    const event = (_type: string, _reason: string, what: string | { message: string }): void =>
      void events.push(typeof what === "string" ? what : what.message);
    const journal = { begin: () => step, event };
    const request = { pod: of, container, journal, slot: { release: () => undefined } };
    return puller.ensure(request, manyListeners()).then(() => "ok", messageOf);
  };
  return { told, events, ensure };
}

const present = { image: "r.example.com/a", ref: "sha256:1" };

test("an image that the pod may use is not pulled", async () => {
  for (const policy of ["IfNotPresent", "Never"]) {
    const { told, events, ensure } = site({ mustPull: false });
    assert.equal(await ensure(policy), "ok");
    assert.deepEqual(told, [["check", present]]);
    const text = 'Container image "r.example.com/a" already present on machine and can be accessed by the pod';
    assert.deepEqual(events, [text]);
  }
});

test("an image that the pod may not use is pulled, and the credential that was accepted is recorded", async () => {
  const { told, ensure } = site({ mustPull: true, credentials: [bad, good] });
  assert.equal(await ensure("IfNotPresent"), "ok");
  assert.deepEqual(told, [
    ["check", present],
    ["begin", "r.example.com/a"],
    ["pulled", present, good],
  ]);
});

test("a pod without a right credential does not get a private image that is there", async () => {
  const { told, ensure } = site({ mustPull: true, credentials: [bad] });
  assert.equal(await ensure("IfNotPresent"), "unauthorized");
  assert.deepEqual(told.at(-1), ["failed", "r.example.com/a"]);
});

test("with policy Never it is not told that the image is there", async () => {
  const { told, ensure } = site({ mustPull: true, credentials: [good] });
  assert.match(await ensure("Never"), /is not present with pull policy of Never/);
  assert.deepEqual(told, [["check", present]]);
});

test("policy Always asks the registry, and records it", async () => {
  const { told, ensure } = site({ mustPull: false, credentials: [good] });
  assert.equal(await ensure("Always"), "ok");
  assert.deepEqual(told, [
    ["begin", "r.example.com/a"],
    ["pulled", present, good],
  ]);
});

test("a pull counts as such also if the image cannot be inspected afterwards", async () => {
  const { told, ensure } = site({ mustPull: true, credentials: [good], hasStatus: false });
  assert.match(await ensure("Always"), /not found/);
  assert.deepEqual(told.at(-1), ["pulled", present, good]);
});

/** Two pods with credentials of their own need one image that is not on the node yet. */
async function both(second: PullCredential, mustPull: boolean) {
  const told: unknown[] = [];
  let isRecorded = false;
  let isPulled = false;
  const puller = new ImagePuller(
    {
      images: {
        imageStatus: async () => (isPulled ? image : undefined),
        pullImage: async (_name: string, { auth }: { auth?: ImageAuth }) => {
          if (auth?.username !== "good") throw new RuntimeError("Unknown", "unauthorized");
          isPulled = true;
          return image.id;
        },
      } as never,
      clock: new FakeClock(),
      credentials: async ({ pod }) => [pod.metadata.uid === "1" ? good : second],
      access: {
        mustPull: async () => mustPull || !isRecorded,
        begin: async () => undefined,
        record: async () => {
          // As long as a write to disk takes: the next pull waits for it.
          for (let turns = 0; turns < 50; turns++) await Promise.resolve();
          isRecorded = true;
        },
        pulled: async (_present, credential) => void told.push(["pulled", credential?.auth.username]),
        failed: async () => void told.push(["not recorded"]),
        unfinished: async () => void told.push(["unfinished"]),
        removed: () => undefined,
        run: async () => undefined,
      },
    },
    fixed({ parallel: 1, qps: 0, burst: 0 }),
    manyListeners().signal,
  );
  const ensure = (uid: string): Promise<string> => {
    const of = pod("web", uid).container("app", { image: "r.example.com/a", imagePullPolicy: "IfNotPresent" }).build();
    const [container = { name: "" }] = of.spec.containers;
    const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
    const journal = { begin: () => step, event: () => undefined };
    const request = { pod: of, container, journal, slot: { release: () => undefined } };
    return puller.ensure(request, manyListeners()).then(() => "ok", messageOf);
  };
  return { outcomes: await Promise.all([ensure("1"), ensure("2")]), told };
}

test("an image that another pod's pull has just brought is not free for a pod that waited for it", async () => {
  const { outcomes, told } = await both(bad, true);
  assert.deepEqual(outcomes, ["ok", "unauthorized"]);
  assert.deepEqual(told, [["pulled", "good"], ["not recorded"]]);
});

test("a pod that may use what another pull has just brought does not pull, and proves nothing", async () => {
  const { outcomes, told } = await both(bad, false);
  assert.deepEqual(outcomes, ["ok", "ok"]);
  assert.deepEqual(told, [["pulled", "good"], ["not recorded"]]);
});

/** Pulls with a runtime that does this, and aborts after a turn if asked; what the records are told, without checks. */
async function toldOf(
  pullImage: (signal: AbortSignal) => Promise<string>,
  { policy = "IfNotPresent", isAborted = false, credentials = [good] } = {},
): Promise<readonly unknown[]> {
  const told: unknown[] = [];
  const images = {
    imageStatus: async () => (policy === "Always" ? { ...image, id: "sha256:0" } : undefined),
    pullImage: (_name: string, _pull: unknown, { signal }: { signal: AbortSignal }) => pullImage(signal),
  };
  const puller = new ImagePuller(
    {
      images: images as never,
      clock: new FakeClock(),
      credentials: async () => credentials,
      access: {
        mustPull: async () => true,
        begin: async () => undefined,
        record: async () => undefined,
        pulled: async () => void told.push("pulled"),
        failed: async () => void told.push("failed"),
        unfinished: async (name, before) => void told.push("unfinished", name, before),
        removed: () => undefined,
        run: async () => undefined,
      },
    },
    fixed({ parallel: 1, qps: 0, burst: 0 }),
    manyListeners().signal,
  );
  const of = pod().container("app", { image: "r.example.com/a", imagePullPolicy: policy }).build();
  const [container = { name: "" }] = of.spec.containers;
  const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
  const request = {
    pod: of,
    container,
    journal: { begin: () => step, event: () => undefined },
    slot: { release: () => undefined },
  };
  const caller = manyListeners();
  const done = puller.ensure(request, caller).catch(() => undefined);
  await new FakeClock().advance(0);
  if (isAborted) caller.abort(new Error("the pod is gone"));
  await done;
  return told;
}

const untilAborted = (signal: AbortSignal): Promise<string> =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
const failing = (code: "Unknown" | "Unavailable" | "Timeout", text: string = code) => {
  return (): Promise<string> => Promise.reject(new RuntimeError(code, text));
};

test("a pull that is cancelled may have brought the image: its intent is not removed", async () => {
  assert.deepEqual(await toldOf(untilAborted, { isAborted: true }), ["unfinished", "r.example.com/a", undefined]);
});

test("of an image that was there before a cancelled pull its id is known", async () => {
  const told = await toldOf(untilAborted, { isAborted: true, policy: "Always" });
  assert.deepEqual(told, ["unfinished", "r.example.com/a", "sha256:0"]);
});

test("a pull that the runtime did not answer may have brought the image", async () => {
  for (const code of ["Unavailable", "Timeout"] as const)
    assert.deepEqual((await toldOf(failing(code)))[0], "unfinished");
  let calls = 0;
  const first = (): Promise<string> => failing(calls++ === 0 ? "Timeout" : "Unknown")();
  assert.deepEqual((await toldOf(first, { credentials: [bad, good] }))[0], "unfinished", "with one of the credentials");
});

test("a pull of which the runtime says that it failed brought nothing", async () => {
  assert.deepEqual(await toldOf(failing("Unknown")), ["failed"]);
  let calls = 0;
  const each = (): Promise<string> => failing("Unknown", `answer ${calls++}`)();
  assert.deepEqual(await toldOf(each, { credentials: [bad, good] }), ["failed"]);
});
