import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import type { FilesystemSpace } from "../model/usage.ts";
import { FilesystemSampler, type RuntimeFilesystem, type RuntimeFilesystems } from "./filesystems.ts";

const { signal } = new AbortController();
const never = new Promise<never>(() => undefined);
const image: RuntimeFilesystem = { mountpoint: "/images", usedBytes: 7, inodesUsed: 8 };

function space(device: number): FilesystemSpace {
  return { device, capacityBytes: 100, availableBytes: 50, usedBytes: 50, inodes: 10, inodesFree: 5 };
}

test("both filesystems, and what images take up; a sample that is young enough is used again", async () => {
  const clock = new FakeClock();
  await clock.advance(1_000_000);
  let asked = 0;
  const read = async (path: string): Promise<FilesystemSpace> => {
    asked++;
    return space(path === "/r" ? 1 : 2);
  };
  const sampler = new FilesystemSampler(
    { clock, space: read, imageFilesystems: async () => ({ images: [image], containers: [] }) },
    { rootDir: "/r" },
  );
  const { node, image: images, imageBytes, imageInodes } = await sampler.sample({ signal, maxAgeMs: 1000 });
  assert.deepEqual([node?.device, images?.device, imageBytes, imageInodes], [1, 2, 7, 8]);
  await sampler.sample({ signal, maxAgeMs: 1000 });
  assert.equal(asked, 3);
  await clock.advance(1000);
  await sampler.sample({ signal, maxAgeMs: 1000 });
  assert.equal(asked, 6);
});

test("a filesystem that hangs is missing, and does not delay the other for long", async () => {
  const clock = new FakeClock();
  const sampler = new FilesystemSampler(
    {
      clock,
      space: (path) => (path === "/r" ? never : Promise.resolve(space(2))),
      imageFilesystems: async () => ({ images: [image], containers: [] }),
    },
    { rootDir: "/r" },
  );
  const sampling = sampler.sample({ signal, maxAgeMs: 0 });
  await clock.advance(200);
  const { node, image: images } = await sampling;
  assert.deepEqual([node, images?.device], [undefined, 2]);
});

test("a filesystem that is slow for once counts with its last measurement and its time, one that goes on hanging is missing", async () => {
  const clock = new FakeClock();
  await clock.advance(1_000_000);
  let answers: Promise<FilesystemSpace> = Promise.resolve(space(1));
  const sampler = new FilesystemSampler(
    { clock, space: () => answers, imageFilesystems: async () => ({ images: [], containers: [] }) },
    { rootDir: "/r" },
  );
  const sample = async (): Promise<unknown[]> => {
    const sampling = sampler.sample({ signal, maxAgeMs: 0 });
    await clock.advance(200);
    const { at, node } = await sampling;
    return [at.mono, node?.device];
  };
  const first = clock.now().mono;
  assert.deepEqual(await sample(), [first, 1]);
  let answer = (_space: FilesystemSpace): void => undefined;
  answers = new Promise((resolve) => {
    answer = resolve;
  });
  const second = clock.now().mono;
  assert.deepEqual(await sample(), [first, 1]);
  answer(space(2));
  answers = never;
  await clock.advance(0);
  assert.deepEqual(await sample(), [second, 2]);
  await clock.advance(60_000);
  assert.equal((await sample())[1], undefined);
});

test("a runtime that stops answering is not waited for: its last answer counts", async () => {
  const clock = new FakeClock();
  let answer: Promise<RuntimeFilesystems> = Promise.resolve({ images: [image], containers: [] });
  let asked = 0;
  const sampler = new FilesystemSampler(
    {
      clock,
      space: async () => space(1),
      imageFilesystems: () => {
        asked++;
        return answer;
      },
    },
    { rootDir: "/r" },
  );
  await sampler.sample({ signal, maxAgeMs: 0 });
  answer = never;
  await clock.advance(30_000);
  assert.equal((await sampler.sample({ signal, maxAgeMs: 0 })).imageBytes, 7);
  await sampler.sample({ signal, maxAgeMs: 0 });
  assert.equal(asked, 2);
});

test("writable layers may have a filesystem of their own", async () => {
  const layers = { ...image, mountpoint: "/layers" };
  const sampler = new FilesystemSampler(
    {
      clock: new FakeClock(),
      space: async (path) => space(["/r", "/images", "/layers"].indexOf(path)),
      imageFilesystems: async () => ({ images: [image], containers: [layers] }),
    },
    { rootDir: "/r" },
  );
  const found = await sampler.sample({ signal, maxAgeMs: 0 });
  assert.deepEqual([found.node?.device, found.image?.device, found.container?.device], [0, 1, 2]);
});

test("a runtime that counts nothing yet is asked again soon; layers that it reports apart count for themselves", async () => {
  const clock = new FakeClock();
  let images: RuntimeFilesystem = { ...image, usedBytes: 0 };
  const layers: RuntimeFilesystem = { mountpoint: "/layers", usedBytes: 3, inodesUsed: 4 };
  let asked = 0;
  const imageFilesystems = async () => {
    asked++;
    return { images: [images], containers: [layers] };
  };
  const sampler = new FilesystemSampler({ clock, space: async () => space(1), imageFilesystems }, { rootDir: "/r" });
  const sampled = async (): Promise<unknown[]> => {
    const { imageBytes, containerBytes, containerInodes } = await sampler.sample({ signal, maxAgeMs: 0 });
    return [imageBytes, containerBytes, containerInodes];
  };
  assert.deepEqual(await sampled(), [0, 3, 4]);
  images = image;
  await clock.advance(900);
  await sampled();
  assert.equal(asked, 1, "not sooner than a second");
  await clock.advance(100);
  await sampled();
  await clock.advance(0);
  assert.deepEqual(await sampled(), [7, 3, 4]);
});

test("a runtime that reports no filesystem of images has none, whatever it reports of layers", async () => {
  const sampler = new FilesystemSampler(
    {
      clock: new FakeClock(),
      space: async () => space(1),
      imageFilesystems: async () => ({ images: [{ ...image, mountpoint: "" }], containers: [image] }),
    },
    { rootDir: "/r" },
  );
  const found = await sampler.sample({ signal, maxAgeMs: 0 });
  assert.deepEqual([found.node?.device, found.image, found.container], [1, undefined, undefined]);
});
