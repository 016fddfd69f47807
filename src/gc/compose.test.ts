import assert from "node:assert/strict";
import { test } from "node:test";
import { pod, seen } from "../../test/support/pods.ts";
import { FakeRuntime } from "../adapters/runtime/fake.ts";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Pod } from "../model/generated/types.ts";
import { composeGc, type GarbageCollection } from "./index.ts";

interface Known {
  readonly pod: Pod;
  readonly source?: string;
  /** What the API server has under its name by now, if it is not this pod. */
  readonly copy?: Pod;
  readonly isFinished?: boolean;
}

/** Garbage collection of a node with these pods, each with one terminated container. */
function node(pods: readonly Known[], flags: readonly string[] = []): GcNode {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock });
  const stop = manyListeners();
  const discarded: string[] = [];
  const known = pods.map(({ pod: of, source = "api" }) => ({ uid: of.metadata.uid ?? "", pod: of, source }));
  const finished = new Set(pods.filter(({ isFinished }) => isFinished).map(({ pod: of }) => of.metadata.uid));
  const gc = composeGc(
    {
      clock,
      log: silent,
      metrics: new Metrics(),
      store: new OptionStore(agentOptions, parseAgentOptions(["--pod-logs-dir=/nowhere", ...flags]).values),
      images: runtime,
      runtime,
      host: {
        removeTree: async () => undefined,
        mountTmpfs: async () => undefined,
        unmount: async () => undefined,
        isMountPoint: () => false,
        kindOf: async () => undefined,
      },
      desired: {
        isComplete: true,
        onComplete: () => undefined,
        get: (uid) => known.find((one) => one.uid === uid),
        list: () => known,
      },
      observer: {
        list: () =>
          known.map(({ uid, pod: of }) => ({
            uid,
            name: of.metadata.name ?? "",
            namespace: "default",
            sandboxes: [],
            containers: [
              seen(
                { name: "app" },
                { state: "exited", mounts: [{ containerPath: "/d", hostPath: "", image: "volume:1" }] },
              ),
            ],
            readAt: 0,
          })),
      },
      apiPod: (namespace, name) => {
        const named = ({ metadata }: Pod): boolean => metadata.namespace === namespace && metadata.name === name;
        const found = pods.find(({ pod: of }) => named(of));
        return found?.copy ?? found?.pod;
      },
      pool: () => ({
        isFinished: (uid) => finished.has(uid),
        worker: () => undefined,
        discard: async (uid, what) => void discarded.push(`${uid} ${what === "all" ? what : [...what].join()}`),
        onStatus: () => undefined,
      }),
      statFilesystem: async () => ({ capacityBytes: 1000, availableBytes: 900 }),
      event: () => undefined,
    },
    { containerLogsDir: "/nowhere" },
    stop.signal,
  );
  return { gc, runtime, discarded, stop };
}

interface GcNode {
  readonly gc: GarbageCollection;
  readonly runtime: FakeRuntime;
  readonly discarded: readonly string[];
  readonly stop: AbortController;
}

const ended = (name: string, phase: string): Pod => ({ ...pod(name).container(name).build(), status: { phase } });

test("under disk pressure only pods lose their containers whose final status the API server has", async () => {
  const { gc, discarded, stop } = node([
    { pod: ended("done", "Succeeded"), isFinished: true },
    { pod: ended("failed", "Failed"), isFinished: true },
    // Its end is not written yet.
    { pod: ended("unwritten", "Running"), isFinished: true },
    { pod: ended("stopping", "Failed") },
    { pod: ended("static", "Succeeded"), source: "file", isFinished: true },
  ]);
  await gc.deleteAllUnusedContainers(stop);
  assert.deepEqual(discarded, ["uid-of-done all", "uid-of-failed all"]);
});

test("the status that counts is the one that the API server has now, not that of when the pod was published", async () => {
  const published = ended("done", "Pending");
  const other = {
    ...ended("recreated", "Succeeded"),
    metadata: { ...ended("recreated", "").metadata, uid: "another" },
  };
  const { gc, discarded, stop } = node([
    { pod: published, copy: { ...published, status: { phase: "Succeeded" } }, isFinished: true },
    { pod: ended("recreated", "Pending"), copy: other, isFinished: true },
  ]);
  await gc.deleteAllUnusedContainers(stop);
  assert.deepEqual(discarded, ["uid-of-done all"]);
});

test("pods that may still start hold the images that they name, and containers those that they mount", async () => {
  const waiting = pod("waiting").init("first").container("waiting").build();
  const { gc, runtime, stop } = node([{ pod: waiting }, { pod: ended("done", "Succeeded"), isFinished: true }]);
  for (const name of ["first:1", "waiting:1", "done:1", "volume:1"]) runtime.image(name);
  const { images } = await gc.report(stop);
  const found = images.map(({ names, keep, by }) => `${names[0]} ${keep} ${by}`);
  assert.deepEqual(found, [
    "done:1 young undefined",
    "first:1 wanted default/waiting",
    "waiting:1 wanted default/waiting",
    "volume:1 inUse default/waiting",
  ]);
});

test("with --keep-local-images only images that were pulled may go", async () => {
  const { gc, runtime, stop } = node(
    [],
    ["--keep-local-images", "--minimum-image-ttl-duration=0s", "--root-dir=/nowhere"],
  );
  runtime.image("imported:1");
  runtime.image("pulled:1", { state: "pullable" });
  await gc.images.pullImage("pulled:1", {}, stop);
  const removed: string[] = [];
  gc.onImageRemoved((id) => void removed.push(id), stop);
  const { images } = await gc.report(stop);
  assert.deepEqual(
    images.map(({ names, keep }) => `${names[0]} ${keep}`),
    ["pulled:1 spare", "imported:1 local"],
  );
  assert.equal(await gc.deleteUnusedImages(stop), 1_000_000);
  assert.deepEqual(removed, [images[0]?.id]);
});
