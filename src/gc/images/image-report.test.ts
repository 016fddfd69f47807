import assert from "node:assert/strict";
import { test } from "node:test";
import { imageReport } from "./image-report.ts";
import type { ImageVerdict } from "./plan-image-gc.ts";

const policy = { highPercent: 85, lowPercent: 80, minAgeMs: 1000, maxAgeMs: 0 };
const verdict = (more: Partial<ImageVerdict>): ImageVerdict => ({
  key: "k",
  image: { id: "i", tags: ["a:1"], digests: ["a@sha256:0"], sizeBytes: 7, username: "", pinned: false },
  firstDetected: 100,
  lastUsed: undefined,
  ...more,
});
function reported(more: Partial<ImageVerdict>) {
  const plan = { usagePercent: undefined, bytesToFree: 0, images: [verdict(more)] };
  const facts = { filesystem: undefined, containerFilesystem: undefined, collected: { images: 0, bytes: 0 }, policy };
  return imageReport(plan, { ...facts, now: 1000 }).images[0];
}

test("an image is unused since a pod used it last, or since it was seen first", () => {
  assert.equal(reported({ keep: "spare" })?.unusedMs, 900);
  assert.equal(reported({ keep: "spare", lastUsed: 400 })?.unusedMs, 600);
  assert.equal(reported({ remove: "space", lastUsed: 400 })?.unusedMs, 600);
});

test("an image in use is not unused, and names who uses it", () => {
  const found = reported({ keep: "inUse", by: "default/web", lastUsed: 400 });
  assert.deepEqual([found?.unusedMs, found?.by], [undefined, "default/web"]);
});

test("an image that is kept for a runtime handler names it", () => {
  const { image } = verdict({});
  assert.equal(reported({ image: { ...image, runtimeHandler: "kata" } })?.runtimeHandler, "kata");
  assert.equal(Object.hasOwn(reported({}) ?? {}, "runtimeHandler"), false);
});

test("an image without a tag is named by its digests", () => {
  const { image } = verdict({});
  assert.deepEqual(reported({})?.names, ["a:1"]);
  assert.deepEqual(reported({ image: { ...image, tags: [] } })?.names, ["a@sha256:0"]);
});
