import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import { FakeRuntime } from "../src/adapters/runtime/fake.ts";
import { GuardedImages } from "../src/gc/images/guarded-images.ts";
import { ImageCollector } from "../src/gc/images/image-collector.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { fixed } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import type { Row } from "./table.ts";
import { watchLoop } from "./watch-loop.ts";

const IMAGES = 500;
const PODS = 110;
const LIMIT_MS = 50;
const CAPACITY = IMAGES * 2_000_000;

/** The longest time for which nothing else runs while 500 images are collected beside 110 pods, and the time in all. */
export async function measureImageGc(): Promise<readonly Row[]> {
  const clock = new SystemClock();
  const runtime = new FakeRuntime({ clock });
  for (let index = 0; index < IMAGES; index++) {
    const name = createHash("sha256").update(String(index)).digest("hex").slice(0, 12);
    runtime.image(`registry.test/team/${name}:1`, { state: "present", sizeBytes: 1_000_000 });
  }
  // As long as a runtime takes at the least: the loop is free meanwhile, as it is in the agent.
  runtime.control.delay("removeImage", 1);
  const images = new GuardedImages(runtime);
  const wanted = Array.from({ length: PODS * 3 }, (_, index) => ({
    reference: `registry.test/team/wanted-${index}:1`,
    by: `default/pod-${index}`,
  }));
  const collector = new ImageCollector(
    {
      images,
      guard: images,
      runtime,
      clock,
      log: silent,
      statFilesystem: () => Promise.resolve({ capacityBytes: CAPACITY, availableBytes: 0 }),
      wanted: () => wanted,
      mounted: () => [],
      pulling: () => images.pulling,
      localImages: () => Promise.resolve(() => false),
      byHandler: () => false,
      isComplete: () => true,
      event: () => undefined,
    },
    fixed({ highPercent: 85, lowPercent: 80, minAgeMs: 0, maxAgeMs: 0 }),
  );
  const delays = watchLoop();
  const began = performance.now();
  await collector.deleteUnusedImages({ signal: new AbortController().signal });
  const tookMs = performance.now() - began;
  return [
    {
      what: `${IMAGES} images collected: longest event loop delay`,
      measured: delays.stop(),
      limit: LIMIT_MS,
      unit: "ms",
    },
    { what: `${IMAGES} images collected, in all`, measured: tookMs, limit: 10_000, unit: "ms" },
  ];
}
