import assert from "node:assert/strict";
import { test } from "node:test";
import { CriServer } from "../../../test/support/cri-server.ts";
import { GrpcChannel } from "../grpc/channel.ts";
import type { PullProgress } from "../runtime/port.ts";
import { Info, Status } from "./generated/containerd-content.ts";
import { contentService as rpc } from "./methods.ts";
import { ContainerdPullProgress, partSizes, sourceOf } from "./pull-progress.ts";

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;
const [manifest, config, base, layer] = ["a", "b", "c", "d"].map(digest) as [string, string, string, string];
const BEGAN = Date.parse("2026-01-02T03:04:05Z");
const at = (ms: number): Date => new Date(BEGAN + ms);

/** A content store that answers by its lists, and keeps the filters that it was asked with. */
class Store {
  ingests: Status[] = [];
  blobs: Info[] = [];
  readonly contents = new Map<string, string>();
  readonly filters: string[][] = [];
  readonly namespaces: unknown[] = [];
  readonly aborted: string[] = [];
  readonly server = new CriServer()
    .unary(rpc.listStatuses, (call, callback) => {
      this.namespaces.push(call.metadata.get("containerd-namespace")[0]);
      callback(null, { statuses: this.ingests });
    })
    .unary(rpc.abort, ({ request }, callback) => {
      this.aborted.push(request.ref);
      callback(null, {});
    })
    .stream(rpc.list, (call) => {
      const { filters } = call.request;
      this.filters.push(filters);
      const isWanted = (info: Info): boolean =>
        filters.some((filter) => filter.startsWith("labels.") || filter === `digest=="${info.digest}"`);
      call.write({ info: this.blobs.filter(isWanted) });
      call.end();
    })
    .stream(rpc.read, (call) => {
      const data = Buffer.from(this.contents.get(call.request.digest) ?? "");
      const half = Math.floor(data.length / 2);
      call.write({ offset: 0n, data: data.subarray(0, half) });
      call.write({ offset: BigInt(half), data: data.subarray(half) });
      call.end();
    });

  blob(of: string, created: number, labels: Record<string, string> = {}): void {
    this.blobs.push(Info.fromPartial({ digest: of, size: 1000n, createdAt: at(created), labels }));
  }

  ingest(of: string, bytes: number, updated: number): void {
    this.ingests.push(Status.fromPartial({ ref: `layer-${of}`, offset: BigInt(bytes), updatedAt: at(updated) }));
  }

  /** The manifest of an image of r.example.com/app. */
  manifest(created: number): void {
    this.blob(manifest, created, {
      "containerd.io/distribution.source.r.example.com": "app,other",
      "containerd.io/gc.ref.content.config": config,
      "containerd.io/gc.ref.content.l.0": base,
      "containerd.io/gc.ref.content.l.1": layer,
    });
    const layers = [base, layer].map((of) => ({ digest: of, size: 1000 }));
    this.contents.set(manifest, JSON.stringify({ config: { digest: config, size: 10 }, layers }));
  }
}

async function withStore(
  work: (store: Store, read: (...images: string[]) => Read, progress: ContainerdPullProgress) => Promise<void>,
): Promise<void> {
  const store = new Store();
  await store.server.start();
  const channel = new GrpcChannel(store.server.socket);
  const progress = new ContainerdPullProgress(channel, { namespace: "k8s.io" });
  const { signal } = new AbortController();
  try {
    const pulls = (images: string[]) => images.map((image) => ({ image, since: BEGAN }));
    await work(store, (...images) => progress.read(pulls(images), { signal }), progress);
  } finally {
    channel.close();
    await store.server.stop();
  }
}
type Read = Promise<ReadonlyMap<string, PullProgress> | undefined>;

const IMAGE = "r.example.com:5000/app:1";

test("before the manifest is there nothing is known but that it has begun", () =>
  withStore(async (store, read) => {
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 0, isTransferring: false });
    assert.deepEqual(store.namespaces, ["k8s.io"]);
    assert.deepEqual(store.filters, [['labels."containerd.io/distribution.source.r.example.com"~="app"']]);
  }));

test("a pull counts its own layers: what is complete, and what is being received", () =>
  withStore(async (store, read) => {
    store.manifest(5);
    store.blob(config, 10);
    store.ingest(base, 400, 20);
    store.ingest(digest("e"), 777, 20);
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 410, totalBytes: 2010, isTransferring: true });
    store.ingests = [];
    store.blob(base, 30);
    store.ingest(layer, 1, 40);
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 1011, totalBytes: 2010, isTransferring: true });
    store.ingests = [];
    store.blob(layer, 50);
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 2010, totalBytes: 2010, isTransferring: false });
  }));

test("layers that were there before the pull are not transferred and do not count", () =>
  withStore(async (store, read) => {
    store.blob(base, -1000);
    store.manifest(5);
    store.ingest(layer, 100, 20);
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 100, totalBytes: 1010, isTransferring: true });
  }));

test("the manifest of an earlier pull counts only if its layers arrive", () =>
  withStore(async (store, read) => {
    store.manifest(-1000);
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 0, isTransferring: false });
    store.ingest(layer, 100, -500);
    assert.equal((await read(IMAGE))?.get(IMAGE)?.totalBytes, undefined, "left behind by the earlier pull");
    store.ingests = [];
    store.ingest(layer, 200, 10);
    assert.deepEqual((await read(IMAGE))?.get(IMAGE), { doneBytes: 200, totalBytes: 2010, isTransferring: true });
  }));

test("a blob of which more arrives than it has is named", () =>
  withStore(async (store, read, progress) => {
    store.manifest(5);
    store.ingest(layer, 1001, 20);
    const found = (await read(IMAGE))?.get(IMAGE);
    assert.deepEqual([found?.oversized, found?.doneBytes], [layer, 1000]);
    await progress.discardBroken(new Error("cancelled"));
    await progress.discardBroken(new Error("cancelled"));
    assert.deepEqual(store.aborted, [`layer-${layer}`], "removed once");
  }));

test("a manifest that names a blob of another pull with a smaller size does not end that pull's transfer", () =>
  withStore(async (store, read, progress) => {
    const [other, hostile] = ["evil.example.com/app:1", digest("f")];
    store.manifest(5);
    store.blob(hostile, 5, {
      "containerd.io/distribution.source.evil.example.com": "app",
      "containerd.io/gc.ref.content.l.0": layer,
    });
    store.contents.set(hostile, JSON.stringify({ layers: [{ digest: layer, size: 1 }] }));
    store.ingest(layer, 900, 20);
    const found = await read(IMAGE, other);
    assert.deepEqual([found?.get(IMAGE)?.oversized, found?.get(other)?.oversized], [undefined, undefined]);
    await progress.discardBroken(new Error("cancelled"));
    assert.deepEqual(store.aborted, []);
  }));

test("a blob with wrong content is removed after the pull, so that the next one receives it anew", () =>
  withStore(async (store, _read, progress) => {
    await progress.discardBroken(new Error("not found"));
    const ref = `layer-${layer}`;
    const said = `failed to pull and unpack image "${IMAGE}": failed commit on ref "${ref}": unexpected commit digest x, expected y`;
    await progress.discardBroken(new Error(said));
    assert.deepEqual(store.aborted, [ref]);
  }));

test("what a registry answers does not choose the blob that is removed", () =>
  withStore(async (store, _read, progress) => {
    const text = `failed commit on ref "layer-${layer}": unexpected commit digest`;
    const head = `failed to pull and unpack image "${IMAGE}": failed to resolve reference "${IMAGE}"`;
    await progress.discardBroken(new Error(`${head}: unexpected status from HEAD request: 403 Forbidden: ${text}`));
    assert.deepEqual(store.aborted, []);
  }));

test("two tags of one repository that are pulled at once are counted together, once each has its manifest apart", () =>
  withStore(async (store, read, progress) => {
    const [other, second, part] = ["r.example.com:5000/app:2", digest("e"), digest("f")];
    store.manifest(5);
    store.ingest(layer, 300, 20);
    const shared = { doneBytes: 300, totalBytes: 2010, isTransferring: true, isShared: true };
    assert.deepEqual([...((await read(IMAGE, other))?.values() ?? [])], [shared, shared]);
    store.blob(second, 30, {
      "containerd.io/distribution.source.r.example.com": "app",
      "containerd.io/gc.ref.content.l.0": part,
    });
    store.contents.set(second, JSON.stringify({ layers: [{ digest: part, size: 500 }] }));
    const both = { ...shared, totalBytes: 2510 };
    assert.deepEqual([...((await read(IMAGE, other))?.values() ?? [])], [both, both]);
    // The second one began after the manifest of the first had arrived.
    const pulls = [
      { image: IMAGE, since: BEGAN },
      { image: other, since: BEGAN + 10 },
    ];
    const apart = await progress.read(pulls, { signal: new AbortController().signal });
    assert.deepEqual(apart?.get(IMAGE), { doneBytes: 300, totalBytes: 2010, isTransferring: true });
    assert.deepEqual(apart?.get(other), { doneBytes: 0, totalBytes: 500, isTransferring: false });
  }));

test("a manifest that has arrived before another tag is pulled stays that of its pull", () =>
  withStore(async (store, read) => {
    store.manifest(5);
    await read(IMAGE);
    const found = await read(IMAGE, "r.example.com:5000/app:2");
    assert.deepEqual(found?.get(IMAGE), { doneBytes: 0, totalBytes: 2010, isTransferring: false });
    assert.deepEqual(found?.get("r.example.com:5000/app:2"), { doneBytes: 0, isTransferring: false });
  }));

test("a runtime without a content store reports nothing", async () => {
  const server = await new CriServer().start();
  const channel = new GrpcChannel(server.socket);
  const progress = new ContainerdPullProgress(channel, { namespace: "k8s.io" });
  const { signal } = new AbortController();
  assert.equal(await progress.read([{ image: IMAGE, since: BEGAN }], { signal }), undefined);
  channel.close();
  await server.stop();
});

const sources = [
  ["busybox", "docker.io", "library/busybox"],
  ["me/app:1", "docker.io", "me/app"],
  ["docker.io/busybox", "docker.io", "library/busybox"],
  ["localhost:5000/a/b:1", "localhost", "a/b"],
  ["[::1]:5000/a", "::1", "a"],
  ["r.example.com/a@sha256:" + "0".repeat(64), "r.example.com", "a"],
] as const;
for (const [image, host, repository] of sources) {
  test(`the blobs of ${image.slice(0, 30)} are labelled ${host} ${repository}`, () =>
    assert.deepEqual(sourceOf(image), { host, repository }));
}

const hostile = [
  "",
  "null",
  "[]",
  '{"layers":7}',
  '{"layers":[null,7,{}]}',
  `{"layers":[{"digest":"x\\"","size":1}]}`,
  `{"layers":[{"digest":"${base}","size":-1}]}`,
  `{"layers":[{"digest":"${base}","size":1e300}]}`,
];
for (const text of hostile) {
  test(`a manifest ${JSON.stringify(text).slice(0, 60)} has no parts`, () => assert.equal(partSizes(text).size, 0));
}
