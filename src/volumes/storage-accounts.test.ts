import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Volume } from "../model/generated/types.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import { type LayerUsage, type ReadOptions, StorageAccounts } from "./storage-accounts.ts";
import type { Usage, UsageHost } from "./usage-meter.ts";

const VOLUMES: readonly Volume[] = [
  { name: "disk", emptyDir: { sizeLimit: "1Mi" } },
  { name: "fast", emptyDir: { medium: "Memory" } },
];
const DISK = "/root/pods/uid-of-web/volumes/kubernetes.io~empty-dir/disk";
const LOG = "/logs/default_web_uid-of-web/app";

/** A machine whose trees are walked at one file a millisecond, of one byte each. */
class Site implements UsageHost {
  readonly clock = new FakeClock();
  readonly stop = manyListeners();
  readonly files = new Map<string, number>();
  layersOf: (uid: string | undefined, signal: AbortSignal) => readonly LayerUsage[] | Promise<readonly LayerUsage[]> =
    () => [];
  readonly paths = new Map<string, string>();
  open = 0;
  walked = 0;
  web = pod().container("app").with({ volumes: VOLUMES }).build();
  readonly accounts = new StorageAccounts(
    {
      host: this,
      clock: this.clock,
      log: silent,
      pathOf: (_, volume) => {
        const path = this.paths.get(volume);
        return path === undefined ? undefined : { path, isRemote: path.endsWith("~nfs/far") };
      },
      layers: async (uid, { signal }) => this.layersOf(uid, signal),
    },
    { rootDir: "/root", podLogsDir: "/logs" },
    this.stop.signal,
  );

  async measure(path: string): ReturnType<UsageHost["measure"]> {
    this.open++;
    let done = 0;
    return {
      get soFar() {
        return { bytes: done, inodes: done };
      },
      advance: async (budgetMs): Promise<Usage | undefined> => {
        const total = this.files.get(path) ?? 0;
        const now = Math.min(total - done, Math.floor(budgetMs));
        done += now;
        this.walked += now;
        await this.clock.advance(now);
        return done === total ? { bytes: total, inodes: total } : undefined;
      },
      close: async () => void this.open--,
    };
  }

  /** What the filesystem counts by itself. */
  readonly counted = new Map<string, Usage>();

  async countedUsage(path: string): Promise<Usage | undefined> {
    return this.counted.get(path);
  }

  filesystemUsage(): Promise<Usage> {
    return Promise.resolve({ bytes: 4096, inodes: 1 });
  }

  /** Reads the pod, with the clock running until there is an answer. */
  async read(options: Omit<ReadOptions, "signal"> = {}): Promise<PodStorage> {
    let isDone = false;
    const reading = this.accounts.read([this.web], { signal: this.stop.signal, ...options }).finally(() => {
      isDone = true;
    });
    while (!isDone) await this.clock.advance(1);
    const found = (await reading).get("uid-of-web");
    assert.ok(found);
    return found;
  }
}

const layer = (uid: string, bytes: number, isTerminated = false): LayerUsage => ({
  uid,
  container: "app",
  isTerminated,
  bytes,
  inodes: 2,
  at: 5,
});

describe("what a pod keeps on its node", () => {
  test("what containers write into the hosts file and termination logs counts as local storage", async () => {
    const site = new Site();
    site.files.set("/root/pods/uid-of-web/etc-hosts", 30);
    site.files.set("/root/pods/uid-of-web/containers", 12);
    const { bytes, parts } = await site.read();
    assert.equal(bytes, 42);
    const files = parts.filter(({ kind }) => kind === "file").map(({ name, usage }) => [name, usage?.bytes]);
    assert.deepEqual(files, [
      ["etc-hosts", 30],
      ["termination-log", 12],
    ]);
  });

  test("layers of many pods are listed once in ten seconds for those who take older ones, and at once for a new pod", async () => {
    const site = new Site();
    const asked: (string | undefined)[] = [];
    site.layersOf = (uid) => {
      asked.push(uid);
      return [layer("uid-of-web", 9)];
    };
    const named = (name: string) => pod(name).container("app").build();
    const read = async (names: readonly string[], maxAgeMs: number): Promise<number | undefined> => {
      const all = await site.accounts.read(names.map(named), { signal: site.stop.signal, maxAgeMs });
      return all.get("uid-of-web")?.bytes;
    };
    assert.equal(await read(["web", "other"], 60_000), 9);
    assert.equal(await read(["web", "other"], 60_000), 9);
    assert.equal(asked.length, 1);
    await read(["web", "other"], 0);
    assert.equal(asked.length, 2, "whoever takes nothing old asks");
    await read(["web", "other", "third"], 60_000);
    assert.equal(asked.length, 3, "a pod that is not known yet");
    await site.clock.advance(10_000);
    await read(["web", "other"], 60_000);
    assert.equal(asked.length, 4);
    await read(["web"], 0);
    assert.equal(asked.at(-1), "uid-of-web");
    site.stop.abort();
  });

  test("other volumes are listed with their path and not summed up: files are walked, claims have their filesystem", async () => {
    const site = new Site();
    const volumes: Volume[] = [
      { name: "config", configMap: { name: "c" } },
      { name: "claimed", persistentVolumeClaim: { claimName: "data" } },
      { name: "made", ephemeral: {} },
      { name: "host", hostPath: { path: "/srv" } },
      { name: "far", nfs: { server: "s", path: "/" } },
      { name: "later", secret: { secretName: "s" } },
    ];
    site.web = pod().container("app").with({ volumes }).build();
    const below = "/root/pods/uid-of-web/volumes";
    for (const name of ["config", "claimed", "made"]) site.paths.set(name, `${below}/kind/${name}`);
    site.paths.set("host", "/srv");
    site.paths.set("far", `${below}/kubernetes.io~nfs/far`);
    site.files.set(`${below}/kubernetes.io~nfs/far`, 7);
    site.files.set(`${below}/kind/config`, 5);
    const { parts, bytes } = await site.read();
    const shown = parts.filter(({ kind }) => kind === "volume");
    assert.deepEqual(
      shown.map(({ name, path, claim, usage }) => [name, path, claim, usage?.bytes]),
      [
        ["config", `${below}/kind/config`, undefined, 5],
        ["claimed", `${below}/kind/claimed`, "data", undefined],
        ["made", `${below}/kind/made`, "web-made", undefined],
        ["far", `${below}/kubernetes.io~nfs/far`, undefined, undefined],
      ],
    );
    assert.equal(shown.at(-1)?.isRemote, true, "a server may hang: nobody walks through it");
    assert.equal(bytes, 0);
  });

  test("emptyDirs with their limits, logs and layers; memory does not count as disk", async () => {
    const site = new Site();
    site.files.set(DISK, 100).set(LOG, 20);
    site.layersOf = (uid) => [layer(uid ?? "", 3000)];
    const { parts, ...sum } = await site.read();
    assert.deepEqual(
      parts.map(({ kind, name, isMemory, sizeLimit, usage }) => [kind, name, isMemory, sizeLimit, usage?.bytes]),
      [
        ["emptyDir", "disk", false, 2 ** 20, 100],
        ["emptyDir", "fast", true, undefined, 4096],
        ["log", "app", false, undefined, 20],
        ["file", "etc-hosts", false, undefined, 0],
        ["file", "termination-log", false, undefined, 0],
        ["layer", "app", false, undefined, 3000],
      ],
    );
    assert.deepEqual(sum, { bytes: 3120, inodes: 122, isFresh: true });
    site.stop.abort();
  });

  test("terminated instances of containers do not count against limits, and are listed after running ones", async () => {
    const site = new Site();
    site.layersOf = (uid) => [layer(uid ?? "", 500, true), layer(uid ?? "", 102), layer(uid ?? "", 600, true)];
    const { parts, bytes } = await site.read();
    const layers = parts.filter(({ kind }) => kind === "layer");
    assert.deepEqual(
      [bytes, layers.map(({ usage, isOld = false }) => [usage?.bytes, isOld])],
      [
        102,
        [
          [102, false],
          [500, true],
          [600, true],
        ],
      ],
    );
    site.stop.abort();
  });

  test("how each part was measured is told; a volume that its filesystem counts is not walked", async () => {
    const site = new Site();
    site.web = pod().container("app").with({ volumes: VOLUMES, hostUsers: false }).build();
    site.files.set(DISK, 1_000_000).set(LOG, 20);
    site.counted.set(DISK, { bytes: 5000, inodes: 4 });
    site.layersOf = (uid) => [layer(uid ?? "", 3000)];
    const { parts, ...sum } = await site.read();
    assert.deepEqual(
      parts.map(({ kind, usage }) => [kind, usage?.by]),
      [
        ["emptyDir", "quota"],
        ["emptyDir", "filesystem"],
        ["log", "walk"],
        ["file", "walk"],
        ["file", "walk"],
        ["layer", "runtime"],
      ],
    );
    assert.deepEqual([sum, site.walked], [{ bytes: 8020, inodes: 26, isFresh: true }, 20]);
    site.stop.abort();
  });

  test("a runtime that cannot tell makes it unfinished, not unknown", async () => {
    const site = new Site();
    site.files.set(DISK, 100);
    site.layersOf = () => {
      throw new Error("away");
    };
    const { bytes, isFresh } = await site.read();
    assert.deepEqual([bytes, isFresh], [100, false]);
    site.stop.abort();
  });

  test("a runtime that hangs is waited for no longer than the walk is", async () => {
    const site = new Site();
    site.files.set(DISK, 100);
    site.layersOf = (_uid, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    const began = site.clock.now().mono;
    const { bytes, isFresh } = await site.read({ limitMs: 1000 });
    assert.deepEqual([bytes, isFresh], [100, false]);
    assert.ok(site.clock.now().mono - began < 1100);
    site.stop.abort();
  });

  test("nobody is asked about no pods", async () => {
    const site = new Site();
    site.layersOf = () => assert.fail("the runtime was asked");
    assert.equal((await site.accounts.read([], site.stop)).size, 0);
  });

  test("layers of all pods are asked for once", async () => {
    const site = new Site();
    const asked: (string | undefined)[] = [];
    site.layersOf = (uid) => {
      asked.push(uid);
      return [layer("uid-of-web", 1), layer("uid-of-db", 2)];
    };
    const pods = [site.web, pod("db").container("app").build()];
    const found = await site.accounts.read(pods, site.stop);
    assert.deepEqual([found.get("uid-of-web")?.bytes, found.get("uid-of-db")?.bytes, asked], [1, 2, [undefined]]);
    site.stop.abort();
  });
});

describe("the cost", () => {
  test("nobody asks: nothing is done, and after the last reader nothing stays", async () => {
    const site = new Site();
    site.files.set(DISK, 100_000);
    await site.clock.advance(3_600_000);
    assert.equal(site.walked, 0);
    await site.read({ limitMs: 200 });
    assert.equal(site.open, 1);
    await site.clock.advance(60_000);
    assert.deepEqual([site.open, site.clock.waiting], [0, 0]);
  });

  test("a large tree: an answer within the limit, a quarter of the time at work, and the next reader goes on", async () => {
    const site = new Site();
    site.files.set(DISK, 1000).set(LOG, 20);
    const began = site.clock.now().mono;
    const first = await site.read({ limitMs: 2000 });
    const took = site.clock.now().mono - began;
    assert.ok(took <= 2100, `${took} ms`);
    assert.ok(site.walked <= took / 3, `${site.walked} of ${took} ms`);
    assert.deepEqual([first.isFresh, first.bytes], [false, site.walked], "what was walked counts already");
    let last = first;
    for (let i = 0; i < 3 && !last.isFresh; i++) last = await site.read({ limitMs: 2000, maxAgeMs: 10_000 });
    assert.deepEqual([last.isFresh, last.bytes], [true, 1020]);
    assert.equal(site.walked, 1020, "nothing was walked twice");
    site.stop.abort();
  });

  test("what another has just measured is taken", async () => {
    const site = new Site();
    site.files.set(DISK, 10);
    await site.read();
    site.files.set(DISK, 20);
    assert.equal((await site.read({ maxAgeMs: 5000 })).bytes, 10);
    assert.equal((await site.read()).bytes, 20);
    site.stop.abort();
  });

  test("a reader who gives up stops the work", async () => {
    const site = new Site();
    site.files.set(DISK, 100_000);
    const mine = manyListeners();
    const reading = assert.rejects(site.accounts.read([site.web], mine), /enough/);
    await site.clock.advance(100);
    mine.abort(new Error("enough"));
    await reading;
    const { walked } = site;
    await site.clock.advance(60_000);
    assert.equal(site.walked, walked);
  });
});
