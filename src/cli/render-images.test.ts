import assert from "node:assert/strict";
import { test } from "node:test";
import type { ImageReport, ReportedImage } from "../model/image-report.ts";
import { renderImages, renderRemovals } from "./render-images.ts";

const GI = 1024 ** 3;
const plain = { color: false };

function image(name: string, more: Partial<ReportedImage>): ReportedImage {
  return { id: "sha256:0123456789abcdef0123", names: [name], sizeBytes: GI, unusedMs: 3 * 3_600_000, ...more };
}

const report: ImageReport = {
  images: [
    image("registry.test/old:1", { remove: "age" }),
    image("registry.test/large:1", { remove: "space", sizeBytes: 2 * GI }),
    image("registry.test/next:1", { keep: "spare" }),
    image("", { names: [], keep: "young", unusedMs: 30_000 }),
    image(`registry.test/web@sha256:${"ab".repeat(32)}`, { keep: "wanted", by: "default/web", unusedMs: 0 }),
    { id: "sha256:1", names: ["registry.test/used:1"], sizeBytes: GI, keep: "inUse", by: "default/api" },
  ],
  imageFilesystem: { mountpoint: "/var/lib/containerd", capacityBytes: 100 * GI, availableBytes: 10 * GI },
  usagePercent: 90,
  highThresholdPercent: 85,
  lowThresholdPercent: 80,
  minimumAgeMs: 120_000,
  maximumAgeMs: 0,
  bytesToFree: 10 * GI,
  collected: { images: 3, bytes: 5 * GI },
};

test("images are shown below the state of the disk, with the reason why each stays", () => {
  assert.deepEqual(renderImages(report, plain).split("\n"), [
    "Image filesystem /var/lib/containerd: 90% of 100Gi used, 10Gi available",
    "Unused images are removed from 85% on, down to 80%, once 2m old",
    "To be freed now: 10Gi",
    "Removed since the agent started: 3, 5.0Gi",
    "",
    "IMAGE                                   SIZE    UNUSED FOR   STATE",
    "registry.test/old:1                     1.0Gi   3h           removed next: too old",
    "registry.test/large:1                   2.0Gi   3h           removed next: for space",
    "registry.test/next:1                    1.0Gi   3h           unused",
    "sha256:0123456789ab                     1.0Gi   30s          unused, kept until its minimum age",
    "registry.test/web@sha256:abababababab   1.0Gi   0ms          named by a pod: default/web",
    "registry.test/used:1                    1.0Gi   -            in use: default/api",
    "",
  ]);
});

test("removals are shown in their order, with what is freed up to each", () => {
  const images = report.images.slice(0, 3);
  assert.deepEqual(
    renderRemovals({ ...report, images }, plain)
      .split("\n")
      .slice(5),
    [
      "IMAGE                   SIZE    IN ALL   UNUSED FOR   WHEN",
      "registry.test/old:1     1.0Gi   1.0Gi    3h           now: age",
      "registry.test/large:1   2.0Gi   3.0Gi    3h           now: space",
      "registry.test/next:1    1.0Gi   4.0Gi    3h           when space is needed",
      "",
    ],
  );
  assert.match(renderRemovals({ ...report, images: [] }, plain), /No image may be removed\.\n$/);
});

test("what is turned off or not known is said", () => {
  const { imageFilesystem: _fs, usagePercent: _usage, ...rest } = report;
  const text = renderImages({ ...rest, images: [], highThresholdPercent: 100, maximumAgeMs: 86_400_000 }, plain);
  assert.match(text, /^Image filesystem: not reported by the runtime\n/);
  assert.match(text, /Unused images are not removed for space; and after 1d without use\n/);
  assert.match(text, /No images\.\n$/);
});
