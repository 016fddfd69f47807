import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { meteredEmptyDirs } from "./local-storage.ts";
import { type Usage, type UsageHost, UsageMeter } from "./usage-meter.ts";

const { signal } = new AbortController();

/** Trees that take one millisecond a file, and one byte each. */
class SlowTrees implements UsageHost {
  readonly clock = new FakeClock();
  readonly files = new Map<string, number>();
  readonly broken = new Set<string>();
  /** What the filesystem counts by itself. */
  readonly counted = new Map<string, Usage>();
  asked = 0;
  open = 0;

  async measure(path: string): ReturnType<UsageHost["measure"]> {
    this.open++;
    let done = 0;
    return {
      get soFar() {
        return { bytes: done, inodes: done };
      },
      advance: async (budgetMs): Promise<Usage | undefined> => {
        if (this.broken.has(path)) throw new Error("gone");
        const total = this.files.get(path) ?? 0;
        const now = Math.min(total - done, Math.floor(budgetMs));
        done += now;
        await this.clock.advance(now);
        return done === total ? { bytes: total, inodes: total } : undefined;
      },
      close: async () => void this.open--,
    };
  }

  async countedUsage(path: string): Promise<Usage | undefined> {
    this.asked++;
    return this.counted.get(path);
  }

  filesystemUsage(): Promise<Usage> {
    return Promise.resolve({ bytes: 4096, inodes: 1 });
  }
}

interface Scene {
  readonly trees: SlowTrees;
  readonly meter: UsageMeter;
  /** Spends so many milliseconds on all trees; `since` is when this round began. */
  readonly spend: (ms: number, since?: number) => Promise<boolean>;
}

function setup(files: Record<string, number>): Scene {
  const trees = new SlowTrees();
  for (const [path, count] of Object.entries(files)) trees.files.set(path, count);
  const meter = new UsageMeter({ host: trees, clock: trees.clock, log: silent });
  const spend = (budgetMs: number, since = 0): Promise<boolean> =>
    meter.advance(
      [...trees.files.keys()].map((path) => ({ path })),
      { signal, budgetMs, since },
    );
  return { trees, meter, spend };
}

describe("measuring", () => {
  test("a large tree is measured over several rounds, each within its budget", async () => {
    const { trees, meter, spend } = setup({ "/large": 250 });
    assert.deepEqual([await spend(100), await spend(100)], [false, false]);
    assert.equal(trees.clock.now().mono, 200);
    assert.deepEqual(meter.usage("/large"), { bytes: 200, inodes: 200, at: trees.clock.now().wall, by: "walk" });
    assert.equal(meter.isDone("/large", 0), false);
    assert.equal(await spend(100), true);
    assert.deepEqual(meter.usage("/large"), { bytes: 250, inodes: 250, at: trees.clock.now().wall, by: "walk" });
    assert.equal(trees.open, 0);
  });

  test("places take turns: a large one does not keep the rest from being measured", async () => {
    const { meter, spend } = setup({ "/a": 5, "/large": 100_000, "/b": 15, "/c": 5 });
    assert.equal(await spend(100), false);
    assert.deepEqual(
      ["/a", "/b", "/c", "/large"].map((path) => meter.usage(path)?.bytes),
      [5, 15, 5, 75],
    );
  });

  test("the last whole measurement counts until the next is whole, or has counted more", async () => {
    const { trees, meter, spend } = setup({ "/a": 50 });
    await spend(100);
    trees.files.set("/a", 500);
    const since = trees.clock.now().mono + 1;
    await trees.clock.advance(1);
    assert.equal(await spend(40, since), false);
    assert.equal(meter.usage("/a")?.bytes, 50);
    assert.equal(await spend(60, since), false);
    assert.equal(meter.usage("/a")?.bytes, 100);
    assert.deepEqual([meter.isDone("/a", 0), meter.isDone("/a", since)], [true, false]);
    assert.equal(await spend(1000, since), true);
    assert.equal(meter.usage("/a")?.bytes, 500);
  });

  test("what is new enough is not measured again", async () => {
    const { trees, spend } = setup({ "/a": 50 });
    await spend(100);
    const { mono } = trees.clock.now();
    assert.equal(await spend(100), true);
    assert.equal(trees.clock.now().mono, mono);
  });

  test("a place that cannot be measured does not stop the others, and is not tried again in the same round", async () => {
    const { trees, meter, spend } = setup({ "/broken": 10, "/a": 10 });
    trees.broken.add("/broken");
    assert.equal(await spend(100), true);
    assert.deepEqual([meter.usage("/broken"), meter.usage("/a")?.bytes], [undefined, 10]);
    assert.equal(trees.open, 0);
  });

  test("a place that fails the same way each time is warned of once, and again after it could be measured", async () => {
    const lines: unknown[] = [];
    const { trees } = setup({ "/a": 10 });
    const log = { ...silent, warn: (_message: string, fields?: object) => void lines.push(fields) };
    const meter = new UsageMeter({ host: trees, clock: trees.clock, log });
    const round = async (): Promise<void> => {
      await trees.clock.advance(10);
      await meter.advance([{ path: "/a" }], { signal, budgetMs: 100, since: trees.clock.now().mono });
    };
    trees.broken.add("/a");
    for (let at = 0; at < 3; at++) await round();
    assert.deepEqual(lines, [{ path: "/a", error: "gone" }]);
    trees.broken.delete("/a");
    await round();
    trees.broken.add("/a");
    await round();
    assert.equal(lines.length, 2);
  });

  test("what nobody asks for is forgotten, its walk closed", async () => {
    const { trees, meter, spend } = setup({ "/a": 10, "/large": 500 });
    await spend(100);
    assert.equal(trees.open, 1);
    await meter.forget(trees.clock.now().mono + 1);
    assert.deepEqual([trees.open, meter.usage("/a")], [0, undefined]);
  });

  test("a filesystem of its own is asked and not walked", async () => {
    const { trees, meter } = setup({});
    await meter.advance([{ path: "/memory", isFilesystem: true }], { signal, budgetMs: 10, since: 0 });
    assert.deepEqual([meter.usage("/memory")?.bytes, meter.usage("/memory")?.by], [4096, "filesystem"]);
    assert.deepEqual([trees.open, trees.asked], [0, 0]);
  });

  test("what the filesystem counts is asked and not walked, however large it is", async () => {
    const { trees, meter } = setup({ "/counted": 1_000_000 });
    trees.counted.set("/counted", { bytes: 7, inodes: 3 });
    const places = [{ path: "/counted", mayBeCounted: true }];
    assert.equal(await meter.advance(places, { signal, budgetMs: 1, since: 0 }), true);
    const { wall, mono } = trees.clock.now();
    assert.deepEqual(meter.usage("/counted"), { bytes: 7, inodes: 3, at: wall, by: "quota" });
    assert.deepEqual([mono, trees.open], [0, 0]);
  });

  test("what the filesystem could count and does not is walked, and asked about once a walk", async () => {
    const { trees, meter } = setup({ "/plain": 100 });
    const places = [{ path: "/plain", mayBeCounted: true }];
    assert.equal(await meter.advance(places, { signal, budgetMs: 1000, since: 0 }), true);
    assert.deepEqual([meter.usage("/plain")?.bytes, meter.usage("/plain")?.by, trees.asked], [100, "walk", 1]);
  });

  test("what cannot be counted is not asked about", async () => {
    const { trees, spend } = setup({ "/log": 10 });
    trees.counted.set("/log", { bytes: 7, inodes: 3 });
    await spend(100);
    assert.equal(trees.asked, 0);
  });
});

test("a pod's emptyDirs are known with their limits", () => {
  const volumes = [
    { name: "disk", emptyDir: { sizeLimit: "1Gi" } },
    { name: "free", emptyDir: { sizeLimit: "0" } },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "host", hostPath: { path: "/" } },
  ];
  const base = "/root/pods/uid-of-web/volumes/kubernetes.io~empty-dir";
  assert.deepEqual(meteredEmptyDirs(pod().container("app").with({ volumes }).build(), "/root"), [
    { volume: "disk", path: `${base}/disk`, isFilesystem: false, mayBeCounted: false, sizeLimit: 2 ** 30 },
    { volume: "free", path: `${base}/free`, isFilesystem: false, mayBeCounted: false },
    { volume: "memory", path: `${base}/memory`, isFilesystem: true, mayBeCounted: false },
  ]);
  const own = pod().container("app").with({ volumes, hostUsers: false }).build();
  assert.deepEqual(
    meteredEmptyDirs(own, "/root").map(({ volume, mayBeCounted }) => [volume, mayBeCounted]),
    [
      ["disk", true],
      ["free", true],
      ["memory", false],
    ],
  );
});
