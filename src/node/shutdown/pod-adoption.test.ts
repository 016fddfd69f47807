import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { FakeClock } from "../../lib/clock.ts";
import { PodAdoption, type PodAdoptionDeps } from "./pod-adoption.ts";
import { shutdownPods } from "./pods.ts";

const { signal } = new AbortController();
const WEB = pod("web").container("app").build();

/** An agent of which the test decides what it has listed and decided. */
class Scene {
  readonly clock = new FakeClock();
  readonly waiting = new Set<string>();
  neverRan = "";
  readonly desired = { allSourcesReady: true, list: () => [{ uid: "web" }, { uid: "next" }] };
  listed: object | undefined = {};
  isDone = false;
  private readonly listeners: ((uid: string) => void)[] = [];
  readonly adoption = new PodAdoption({
    clock: this.clock,
    listedAt: () => this.listed,
    desired: this.desired,
    pool: {
      worker: () => undefined,
      isFinished: (uid) => !this.waiting.has(uid),
      isInRuntime: (uid) => uid !== this.neverRan,
      onStatus: (fn) => void this.listeners.push(fn),
    },
  } satisfies PodAdoptionDeps);

  /** Waits for the adoption, and gives it some time. */
  async wait(ms: number): Promise<boolean> {
    void this.adoption.done({ signal }).then(() => {
      this.isDone = true;
    });
    await this.clock.advance(ms);
    return this.isDone;
  }

  published(): void {
    for (const listener of this.listeners) listener("web");
  }
}

describe("the adoption of pods", () => {
  test("is over when they have workers, which they get after their allocations were restored", async () => {
    const ring = new FakeRing();
    await ring.want(WEB);
    let restore = (): void => undefined;
    const list = ring.files.list.bind(ring.files);
    const read = new Promise<void>((resolve) => {
      restore = resolve;
    });
    ring.files.list = (path) => read.then(() => list(path));
    ring.allocators = () => [
      { name: "none", allocate: () => Promise.resolve(undefined), release: () => undefined, restore: () => undefined },
    ];
    await ring.restartAgent();
    ring.publish(WEB);
    const { pool, clock } = ring;
    const desired = { allSourcesReady: true, list: () => [{ uid: "uid-of-web" }] };
    let isDone = false;
    const adoption = new PodAdoption({ clock, pool, desired, listedAt: () => ({}) });
    const done = adoption.done({ signal }).then(() => {
      isDone = true;
    });
    await clock.advance(5000);
    assert.deepEqual([isDone, shutdownPods(pool).active()], [false, []]);
    restore();
    await clock.advance(100);
    await done;
    assert.deepEqual(shutdownPods(pool).active(), [WEB]);
    ring.stopAgent();
  });

  test("needs a list of the runtime and of each source", async () => {
    const scene = new Scene();
    scene.listed = undefined;
    assert.equal(await scene.wait(500), false);
    scene.listed = {};
    scene.desired.allSourcesReady = false;
    assert.equal(await scene.wait(500), false);
    scene.desired.allSourcesReady = true;
    assert.equal(await scene.wait(100), true);
  });

  test("is waited for no longer than 10 s", async () => {
    const scene = new Scene();
    scene.waiting.add("web");
    assert.equal(await scene.wait(9900), false);
    await scene.clock.advance(100);
    assert.equal(scene.isDone, true);
  });

  test("does not wait for a pod that never ran", async () => {
    const scene = new Scene();
    scene.waiting.add("next");
    scene.neverRan = "next";
    assert.equal(await scene.wait(0), true);
  });

  test("stays over when a later pod waits for its admission", async () => {
    const scene = new Scene();
    scene.adoption.follow({ signal });
    scene.published();
    scene.waiting.add("next");
    assert.equal(await scene.wait(0), true);
  });
});
