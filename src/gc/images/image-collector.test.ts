import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeRuntime } from "../../adapters/runtime/fake.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { GuardedImages } from "./guarded-images.ts";
import { ImageCollector } from "./image-collector.ts";
import type { HeldReference } from "./image-holds.ts";
import type { ImageGcPolicy } from "./plan-image-gc.ts";

const MINUTE = 60_000;
const MB = 1_000_000;

/** A node whose image filesystem holds `capacity` bytes, of which others use some. */
class Node {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly images = new GuardedImages(this.runtime);
  readonly policy: LiveValue<ImageGcPolicy>;
  readonly events: string[] = [];
  readonly stop = manyListeners();
  readonly removed: string[] = [];
  readonly collector: ImageCollector;
  capacity = 100 * MB;
  othersUse = 0;
  /** Bytes of an image that its removal does not free, because others share them. */
  sharedBytes = 0;
  wanted: HeldReference[] = [];
  isComplete = true;

  constructor(policy: Partial<ImageGcPolicy> = {}) {
    this.policy = new LiveValue({ highPercent: 85, lowPercent: 80, minAgeMs: 2 * MINUTE, maxAgeMs: 0, ...policy });
    this.collector = new ImageCollector(
      {
        images: this.images,
        guard: this.images,
        runtime: this.runtime,
        clock: this.clock,
        log: silent,
        statFilesystem: () => this.stat(),
        wanted: () => this.wanted,
        mounted: () => [],
        pulling: () => this.images.pulling,
        localImages: async () => () => false,
        byHandler: () => false,
        isComplete: () => this.isComplete,
        event: (type, reason, message) => void this.events.push(`${type} ${reason} ${message}`),
      },
      this.policy,
    );
    this.images.onPulled = () => this.collector.wake();
    const { signal } = this.stop;
    this.collector.onRemoved((id) => void this.removed.push(id), { signal });
  }

  add(name: string, megabytes: number): void {
    this.runtime.image(name, { state: "present", sizeBytes: megabytes * MB });
  }

  start(): void {
    void this.collector.run(this.stop.signal);
  }

  async names(): Promise<string[]> {
    return (await this.runtime.listImages(this.stop)).flatMap(({ tags }) => tags);
  }

  measureError: Error | undefined;
  /** What the disk shows, if not what follows from the images. */
  statBytes: { capacityBytes: number; availableBytes: number } | undefined;

  private async stat(): Promise<{ capacityBytes: number; availableBytes: number }> {
    if (this.measureError !== undefined) throw this.measureError;
    if (this.statBytes !== undefined) return this.statBytes;
    const { images } = await this.runtime.imageFilesystems(this.stop);
    const used = this.othersUse + (images[0]?.usedBytes ?? 0) + this.sharedBytes * this.removed.length;
    return { capacityBytes: this.capacity, availableBytes: this.capacity - used };
  }
}

describe("the loop", () => {
  test("removes unused images once they are old enough, down to the low threshold", async () => {
    const node = new Node();
    for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
    node.start();
    await node.clock.advance(MINUTE);
    assert.deepEqual(await node.names(), ["a:1", "b:1", "c:1"]);
    await node.clock.advance(2 * MINUTE);
    assert.deepEqual(await node.names(), ["b:1", "c:1"]);
    assert.equal(node.removed.length, 1);
    node.stop.abort();
  });

  test("never removes what a pod in back-off names, and reports that it is not enough", async () => {
    const node = new Node();
    for (const name of ["a:1", "b:1"]) node.add(name, 45);
    node.wanted = ["a:1", "b:1"].map((reference) => ({ reference, by: "default/web" }));
    node.start();
    await node.clock.advance(20 * MINUTE);
    assert.deepEqual(await node.names(), ["a:1", "b:1"]);
    const message =
      "Insufficient free disk space on the node's image filesystem (90% of 95.4 MiB used). Failed to free sufficient " +
      "space by deleting unused images (freed 0 bytes). Investigate disk usage, as it could be used by active images, " +
      "logs, volumes, or other data.";
    assert.equal(node.events[0], `Warning FreeDiskSpaceFailed ${message}`);
    assert.ok(node.events.includes(`Warning ImageGCFailed ${message}`));
    node.stop.abort();
  });

  test("a pod that comes while images are removed keeps its image", async () => {
    const node = new Node({ minAgeMs: 0, lowPercent: 10 });
    for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
    node.runtime.control.delay("removeImage", 1000);
    node.start();
    await node.clock.advance(5500);
    node.wanted = [{ reference: "b:1", by: "default/web" }];
    await node.clock.advance(5000);
    assert.deepEqual(await node.names(), ["b:1"]);
    node.stop.abort();
  });

  test("waits for the pods of all sources, but not for ever", async () => {
    const node = new Node({ minAgeMs: 0 });
    node.isComplete = false;
    node.add("a:1", 90);
    node.start();
    await node.clock.advance(9 * MINUTE);
    assert.deepEqual(await node.names(), ["a:1"]);
    await node.clock.advance(6 * MINUTE);
    assert.deepEqual(await node.names(), []);
    node.stop.abort();
  });

  test("a pull is followed by a check, not only the next interval", async () => {
    const node = new Node({ minAgeMs: 0 });
    node.add("a:1", 50);
    node.runtime.image("big:1", { state: "pullable", sizeBytes: 40 * MB });
    node.wanted = [{ reference: "big:1", by: "default/web" }];
    node.start();
    await node.clock.advance(MINUTE);
    await node.images.pullImage("big:1", {}, node.stop);
    await node.clock.advance(15_000);
    assert.deepEqual(await node.names(), ["big:1"]);
    node.stop.abort();
  });

  test("stops as soon as the disk shows that it is enough", async () => {
    const node = new Node({ minAgeMs: 0, lowPercent: 50 });
    for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
    // The sizes count compressed layers: a removal frees three times as much.
    node.sharedBytes = -60 * MB;
    node.start();
    await node.clock.advance(5000);
    assert.equal(node.removed.length, 1);
    node.stop.abort();
  });

  test("checks again soon if the disk shows less than the sizes promised", async () => {
    const node = new Node({ minAgeMs: 0 });
    for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
    node.sharedBytes = 30 * MB;
    node.start();
    await node.clock.advance(5000);
    assert.equal(node.removed.length, 1);
    await node.clock.advance(MINUTE);
    assert.equal(node.removed.length, 3);
    node.stop.abort();
  });

  test("removes no more in a pass once the sizes promise exactly enough", async () => {
    const node = new Node({ minAgeMs: 0 });
    for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 10);
    node.othersUse = 60 * MB;
    node.sharedBytes = 10 * MB;
    node.start();
    await node.clock.advance(5000);
    assert.equal(node.removed.length, 1);
    node.stop.abort();
  });

  test("an image that cannot be removed is made up for by the next, and reported", async () => {
    const node = new Node({ minAgeMs: 0 });
    for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
    node.runtime.control.fail("removeImage", new RuntimeError("Unknown", "busy"));
    node.start();
    await node.clock.advance(5000);
    assert.deepEqual(await node.names(), ["a:1", "c:1"]);
    assert.deepEqual(node.events, []);
    node.stop.abort();
  });

  test("reports a runtime that fails twice in a row, once it is no start-up", async () => {
    const node = new Node();
    node.runtime.control.fail("listImages", new RuntimeError("Unavailable", "gone"), 2);
    node.start();
    await node.clock.advance(5 * MINUTE);
    assert.deepEqual(node.events, []);
    await node.clock.advance(MINUTE);
    assert.deepEqual(node.events, ["Warning ImageGCFailed gone"]);
    node.stop.abort();
  });

  test("does not report failures with a success between them", async () => {
    const node = new Node();
    const gone = new RuntimeError("Unavailable", "gone");
    node.runtime.control.fail("listImages", gone);
    node.start();
    await node.clock.advance(11 * MINUTE);
    node.runtime.control.fail("listImages", gone);
    await node.clock.advance(8 * MINUTE);
    assert.deepEqual(node.events, []);
    node.stop.abort();
  });

  test("an image that comes back soon after its removal is young again", async () => {
    const node = new Node({ highPercent: 85, lowPercent: 80 });
    node.add("a:1", 90);
    node.start();
    await node.clock.advance(3 * MINUTE);
    assert.deepEqual(await node.names(), []);
    node.add("a:1", 90);
    node.collector.wake();
    await node.clock.advance(MINUTE);
    assert.deepEqual(await node.names(), ["a:1"]);
    await node.clock.advance(2 * MINUTE);
    assert.deepEqual(await node.names(), []);
    node.stop.abort();
  });

  test("a filesystem without capacity is reported", async () => {
    const node = new Node();
    node.capacity = 0;
    node.start();
    await node.clock.advance(5000);
    assert.deepEqual(node.events, ["Warning InvalidDiskCapacity invalid capacity 0 on image filesystem"]);
    node.stop.abort();
  });

  test("an image that is too old goes at the next interval", async () => {
    const node = new Node({ maxAgeMs: MINUTE, minAgeMs: 1000 });
    node.add("a:1", 1);
    node.start();
    await node.clock.advance(5 * MINUTE);
    assert.deepEqual(await node.names(), ["a:1"]);
    await node.clock.advance(5000);
    assert.deepEqual(await node.names(), []);
    node.stop.abort();
  });

  test("costs three calls each five minutes while nothing happens", async () => {
    const node = new Node();
    node.add("a:1", 1);
    node.start();
    await node.clock.advance(5000);
    const before = node.runtime.control.count("listImages");
    await node.clock.advance(60 * MINUTE);
    assert.equal(node.runtime.control.count("listImages") - before, 12);
    node.stop.abort();
  });
});

describe("under disk pressure", () => {
  test("all unused images go, whatever the thresholds are, but for young and wanted ones", async () => {
    const node = new Node({ highPercent: 100 });
    for (const name of ["a:1", "b:1", "wanted:1"]) node.add(name, 1);
    node.wanted = [{ reference: "wanted:1", by: "default/web" }];
    node.start();
    await node.clock.advance(5 * MINUTE);
    node.add("young:1", 1);
    assert.equal(await node.collector.deleteUnusedImages(node.stop), 2 * MB);
    assert.deepEqual(await node.names(), ["wanted:1", "young:1"]);
    node.stop.abort();
  });

  test("an image that cannot be removed rejects, after all others were removed", async () => {
    const node = new Node({ minAgeMs: 0 });
    for (const name of ["a:1", "b:1"]) node.add(name, 1);
    node.runtime.control.fail("removeImage", new RuntimeError("Unknown", "busy"));
    await assert.rejects(
      node.collector.deleteUnusedImages(node.stop),
      /wanted to free all unused images, but freed 1000000 bytes space with errors in image deletion: busy/,
    );
    assert.deepEqual(await node.names(), ["a:1"]);
  });
});

test("the report shows what would go, in order, and what was removed", async () => {
  const node = new Node({ minAgeMs: 0 });
  for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
  node.wanted = [{ reference: "b:1", by: "default/web" }];
  const before = await node.collector.report(node.stop);
  assert.deepEqual(
    before.images.map(({ names, remove, keep, by }) => [names[0], remove ?? keep, by]),
    [
      ["a:1", "space", undefined],
      ["c:1", "spare", undefined],
      ["b:1", "wanted", "default/web"],
    ],
  );
  assert.deepEqual([before.usagePercent, before.bytesToFree, before.collected.images], [90, 10 * MB, 0]);
  node.start();
  await node.clock.advance(5000);
  const after = await node.collector.report(node.stop);
  assert.deepEqual(after.collected, { images: 1, bytes: 30 * MB });
  node.stop.abort();
});

describe("while an image is removed", () => {
  async function removing(): Promise<Node> {
    const node = new Node();
    for (const name of ["a:1", "b:1"]) node.add(name, 1);
    node.runtime.control.delay("removeImage", 1000);
    const image = await node.runtime.imageStatus("a:1", node.stop);
    assert.ok(image);
    void node.images.remove(image, node.stop);
    return node;
  }

  for (const name of ["a:1", "docker.io/library/a:1"]) {
    test(`whoever inspects it as ${name} learns that it is gone`, async () => {
      const node = await removing();
      const find = node.runtime.imageStatus.bind(node.runtime);
      node.runtime.imageStatus = (_anyName, options) => find("a:1", options);
      const status = node.images.imageStatus(name, node.stop);
      await node.clock.advance(1000);
      assert.equal(await status, undefined);
    });
  }

  test("whoever pulls it waits until it is gone", async () => {
    const node = await removing();
    const pull = node.images.pullImage("a:1", {}, node.stop);
    await node.clock.advance(999);
    assert.equal(node.runtime.control.count("pullImage"), 0);
    await node.clock.advance(1);
    await pull;
    assert.deepEqual(await node.names(), ["a:1", "b:1"]);
  });

  test("others are inspected at once", async () => {
    const node = await removing();
    assert.deepEqual((await node.images.imageStatus("b:1", node.stop))?.tags, ["b:1"]);
  });
});

test("an image stays while it is pulled, until the last of its pulls has ended", async () => {
  const node = new Node({ minAgeMs: 0 });
  for (const name of ["a:1", "b:1"]) node.add(name, 1);
  const ends: (() => void)[] = [];
  node.runtime.pullImage = (image) => new Promise((resolve) => ends.push(() => resolve(image)));
  const pulls = [node.images.pullImage("a:1", {}, node.stop), node.images.pullImage("a:1", {}, node.stop)];
  await node.clock.advance(0);
  assert.deepEqual(node.images.pulling, ["a:1"]);
  ends[0]?.();
  await pulls[0];
  await node.collector.deleteUnusedImages(node.stop);
  assert.deepEqual(await node.names(), ["a:1"]);
  ends[1]?.();
  await pulls[1];
  await node.collector.deleteUnusedImages(node.stop);
  assert.deepEqual([await node.names(), node.images.pulling], [[], []]);
});

test("an image that was pulled since the list stays: a pod may name it otherwise", async () => {
  const node = new Node({ minAgeMs: 0, lowPercent: 10 });
  for (const name of ["a:1", "b:1", "c:1"]) node.add(name, 30);
  node.runtime.control.delay("removeImage", 1000);
  node.start();
  await node.clock.advance(5500);
  await node.images.pullImage("b:1", {}, node.stop);
  await node.clock.advance(2000);
  assert.deepEqual(await node.names(), ["b:1"]);
  node.stop.abort();
});

test("an image that is pulled by another name while it is removed is not reported as removed", async () => {
  const node = new Node({ minAgeMs: 0, lowPercent: 10 });
  node.add("a:1", 90);
  const removed: string[] = [];
  node.collector.onRemoved((id) => removed.push(id), node.stop);
  const image = await node.runtime.imageStatus("a:1", node.stop);
  const remove = node.runtime.removeImage.bind(node.runtime);
  node.runtime.removeImage = async (id, options) => {
    await remove(id, options);
    node.runtime.pullImage = async () => image?.id ?? "";
    await node.images.pullImage("mirror.example.com/a:1", {}, node.stop);
  };
  node.start();
  await node.clock.advance(6000);
  assert.deepEqual(removed, []);
  node.stop.abort();
});

test("a runtime that reports no image filesystem is a failure, unless nothing is removed for space", async () => {
  const node = new Node();
  node.runtime.imageFilesystems = () => Promise.resolve({ images: [], containers: [] });
  node.start();
  await node.clock.advance(5 * MINUTE + 5000);
  assert.deepEqual(node.events, ["Warning ImageGCFailed measure image filesystem: the runtime reports none"]);
  node.policy.set({ ...node.policy.current, highPercent: 100 });
  await node.clock.advance(20 * MINUTE);
  assert.equal(node.events.length, 1);
  node.stop.abort();
});

test("a filesystem that cannot be measured stops neither the report nor the removal of old images", async () => {
  const node = new Node({ maxAgeMs: MINUTE, minAgeMs: 0 });
  node.add("a:1", 1);
  node.measureError = new Error("no such file");
  const report = await node.collector.report(node.stop);
  assert.deepEqual([report.imageFilesystem, report.images.length], [undefined, 1]);
  node.start();
  await node.clock.advance(5 * MINUTE + 5000);
  assert.deepEqual(await node.names(), []);
  assert.deepEqual(node.events, ["Warning ImageGCFailed no such file"]);
  node.stop.abort();
});

test("the report has a filesystem of writable layers only if it is another one", async () => {
  const node = new Node();
  const at = (mountpoint: string) => ({ mountpoint, usedBytes: 0, usedInodes: 0, measuredAt: 0 });
  const of = async (images: string, containers: string) => {
    node.runtime.imageFilesystems = async () => ({ images: [at(images)], containers: [at(containers)] }) as never;
    node.statBytes = { capacityBytes: 10, availableBytes: 5 };
    const { imageFilesystem, containerFilesystem } = await node.collector.report(node.stop);
    return [imageFilesystem?.mountpoint, containerFilesystem?.mountpoint];
  };
  assert.deepEqual(await of("/images", "/images"), ["/images", undefined]);
  assert.deepEqual(await of("/images", "/containers"), ["/images", "/containers"]);
});
