import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import type { Pod } from "../../model/generated/types.ts";
import { NodeShutdown, type ShutdownBus } from "./node-shutdown.ts";
import type { ShutdownPeriod } from "./plan.ts";
import type { ShutdownState } from "./state.ts";

const PERIODS: readonly ShutdownPeriod[] = [
  { priority: 0, seconds: 20 },
  { priority: 2_000_000_000, seconds: 10 },
];
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A machine with a login manager and two pods, of which the test decides when they stop. */
class Scene {
  readonly clock = new FakeClock();
  readonly status = new LiveValue(false);
  readonly periods = new LiveValue(PERIODS);
  readonly calls: string[] = [];
  readonly events: string[] = [];
  readonly saved: ShutdownState[] = [];
  readonly recorded: ShutdownState[] = [];
  warnings = 0;
  closes = 0;
  held = 0;
  delayMs = 60_000;
  raisesTo = 60_000;
  isShuttingDown = false;
  isAway = false;
  /** Calls of the login manager that fail. */
  readonly failing = new Set<"inhibit" | "onShutdown">();
  /** Resolves when the disk has taken a state. */
  written: Promise<void> = Promise.resolve();
  announce: (isActive: boolean) => void = () => undefined;
  lose: (error: Error) => void = () => undefined;
  /** Resolves when the agent knows the pods that it takes over. */
  known: Promise<void> = Promise.resolve();
  private readonly stopping = new Map<string, () => void>();
  private readonly stop = new AbortController();
  private running: Promise<void> = Promise.resolve();
  readonly pods: Pod[] = [
    pod("web").container("app").with({ priority: 0, terminationGracePeriodSeconds: 30 }).build(),
    pod("dns").container("app").with({ priority: 2_000_000_000, terminationGracePeriodSeconds: 5 }).build(),
  ];

  async start(state?: ShutdownState): Promise<NodeShutdown> {
    const shutdown = new NodeShutdown(
      {
        clock: this.clock,
        log: { ...silent, warn: () => void this.warnings++ },
        status: this.status,
        bootId: "boot",
        state: { load: () => state, save: (each) => this.written.then(() => void this.saved.push(each)) },
        event: (_type, reason, message) => void this.events.push(`${reason} ${message}`),
        connect: async () => {
          if (this.isAway) throw new Error("no bus");
          return this.bus();
        },
        known: () => this.known,
        recorded: (each) => void this.recorded.push(each),
        pods: {
          active: () => this.pods,
          terminate: ({ metadata }, grace) => void this.calls.push(`terminate ${metadata.name} ${grace}s`),
          stopped: (pods, { signal }) => this.stopped(pods, signal),
        },
      },
      this.periods,
    );
    this.running = shutdown.run(this.stop.signal);
    await settled();
    return shutdown;
  }

  podsStop(name: string): void {
    this.stopping.get(name)?.();
  }

  async end(): Promise<void> {
    this.stop.abort();
    await this.running;
    assert.equal(this.held, 0, "no lock is left");
  }

  private stopped(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      for (const { metadata } of pods) this.stopping.set(metadata.name ?? "", resolve);
    });
  }

  private bus(): ShutdownBus {
    this.calls.push("connect");
    const closed = new Promise<never>((_, reject) => {
      this.lose = reject;
    });
    closed.catch(() => undefined);
    return {
      closed,
      close: () => void this.closes++,
      inhibitDelayMs: async () => this.delayMs,
      isShuttingDown: async () => this.isShuttingDown,
      raiseInhibitDelay: async (ms) => {
        this.calls.push(`raise ${ms}`);
        this.delayMs = this.raisesTo;
      },
      onShutdown: async (fn) => {
        if (this.failing.has("onShutdown")) throw new Error("access denied");
        this.announce = fn;
      },
      inhibit: async () => {
        if (this.isShuttingDown) throw new Error("the operation is already running");
        if (this.failing.has("inhibit")) throw new Error("access denied");
        let isHeld = true;
        this.held++;
        this.calls.push("lock");
        return {
          release: () => {
            if (isHeld) this.held--;
            isHeld = false;
          },
        };
      },
    };
  }
}

describe("a shutdown of the node", () => {
  test("ends pods by priority, each group after the one before, and then lets the machine go", async () => {
    const scene = new Scene();
    await scene.start();
    assert.deepEqual([scene.calls, scene.held], [["connect", "lock"], 1]);
    await scene.clock.advance(5000);
    const began = scene.clock.now().wall;
    scene.announce(true);
    await settled();
    assert.equal(scene.status.current, true);
    assert.deepEqual(scene.calls.splice(0), ["connect", "lock", "terminate web 20s"]);
    assert.deepEqual(scene.events, ["Shutdown Shutdown manager detected shutdown event"]);
    scene.podsStop("web");
    await settled();
    assert.deepEqual(scene.calls, ["terminate dns 5s"]);
    assert.equal(scene.held, 1);
    scene.podsStop("dns");
    await settled();
    assert.equal(scene.held, 0);
    assert.equal(scene.saved.length, 2);
    assert.deepEqual(scene.saved, [
      { bootId: "boot", startedAt: began },
      { bootId: "boot", startedAt: began, endedAt: began },
    ]);
    assert.deepEqual(scene.recorded, scene.saved, "the metrics have what was saved");
    await scene.end();
  });

  test("ends no pod before its beginning is saved", async () => {
    const scene = new Scene();
    await scene.start();
    let isWritten = (): void => undefined;
    scene.written = new Promise((resolve) => {
      isWritten = resolve;
    });
    scene.announce(true);
    await settled();
    assert.deepEqual(scene.calls, ["connect", "lock"]);
    isWritten();
    await settled();
    assert.equal(scene.calls.at(-1), "terminate web 20s");
    await scene.end();
  });

  test("does not wait longer for a group than its time", async () => {
    const scene = new Scene();
    await scene.start();
    scene.announce(true);
    await settled();
    await scene.clock.advance(19_999);
    assert.ok(!scene.calls.includes("terminate dns 5s"));
    await scene.clock.advance(1);
    await settled();
    assert.ok(scene.calls.includes("terminate dns 5s"));
    await scene.clock.advance(10_000);
    await settled();
    assert.equal(scene.held, 0);
    await scene.end();
  });

  test("that is cancelled makes the node ready again, with a new lock", async () => {
    const scene = new Scene();
    await scene.start();
    scene.announce(true);
    await settled();
    for (const name of ["web", "dns"]) {
      scene.podsStop(name);
      await settled();
    }
    scene.announce(false);
    await settled();
    assert.deepEqual([scene.status.current, scene.held], [false, 1]);
    assert.equal(scene.events.at(-1), "Shutdown Shutdown manager detected shutdown cancellation");
    await scene.end();
  });

  test("that is cancelled twice holds one lock", async () => {
    const scene = new Scene();
    await scene.start();
    for (const isActive of [false, false]) {
      scene.announce(isActive);
      await settled();
    }
    assert.equal(scene.held, 1);
    await scene.end();
  });

  test("is finished with the times that it began with", async () => {
    const scene = new Scene();
    await scene.start();
    scene.announce(true);
    await settled();
    scene.periods.set([{ priority: 0, seconds: 1 }]);
    await settled();
    scene.podsStop("web");
    await settled();
    assert.deepEqual(scene.calls, ["connect", "lock", "terminate web 20s", "terminate dns 5s"]);
    assert.equal(scene.held, 1);
    await scene.end();
  });

  test("that an earlier agent did not finish is over once no times are configured", async () => {
    const scene = new Scene();
    scene.isAway = true;
    await scene.start({ bootId: "boot", startedAt: 5 });
    scene.periods.set([]);
    await scene.clock.advance(1000);
    await settled();
    assert.equal(scene.status.current, false);
    await scene.end();
  });

  test("that began before the agent is noticed at its start, without the lock that logind refuses then", async () => {
    const scene = new Scene();
    scene.isShuttingDown = true;
    await scene.start();
    assert.equal(scene.status.current, true);
    assert.ok(scene.calls.includes("terminate web 20s"));
    await scene.end();
  });

  test("waits for the pods that an agent takes over at its start before it ends them", async () => {
    const scene = new Scene();
    let isKnown = (): void => undefined;
    scene.known = new Promise((resolve) => {
      isKnown = resolve;
    });
    scene.isShuttingDown = true;
    const pods = scene.pods.splice(0);
    await scene.start();
    assert.deepEqual([scene.status.current, scene.calls], [true, ["connect"]]);
    scene.pods.push(...pods);
    isKnown();
    await settled();
    assert.ok(scene.calls.includes("terminate web 20s"));
    await scene.end();
  });

  test("that an earlier agent did not finish admits nothing until logind has answered", async () => {
    const scene = new Scene();
    scene.isAway = true;
    await scene.start({ bootId: "boot", startedAt: 5 });
    assert.equal(scene.status.current, true);
    scene.isAway = false;
    await scene.clock.advance(1000);
    await settled();
    assert.equal(scene.status.current, false, "it was cancelled meanwhile");
    await scene.end();
  });

  test("of an earlier boot, or that was finished, means nothing", async () => {
    for (const state of [
      { bootId: "earlier", startedAt: 5 },
      { startedAt: 5 },
      { bootId: "boot", startedAt: 5, endedAt: 6 },
    ]) {
      const scene = new Scene();
      scene.isAway = true;
      await scene.start(state);
      assert.equal(scene.status.current, false);
      await scene.end();
    }
  });
});

describe("the login manager", () => {
  test("is asked to wait longer where it would not", async () => {
    const scene = new Scene();
    scene.delayMs = 5000;
    await scene.start();
    assert.deepEqual(scene.calls, ["connect", "raise 30000", "lock"]);
    await scene.end();
  });

  test("that waits exactly as long as the pods may take is not asked for more", async () => {
    const scene = new Scene();
    scene.delayMs = 30_000;
    await scene.start();
    assert.deepEqual(scene.calls, ["connect", "lock"]);
    await scene.end();
    assert.equal(scene.closes, 1);
  });

  test("that is lost, found and lost again is warned of each time", async () => {
    const scene = new Scene();
    await scene.start();
    for (let time = 1; time <= 2; time++) {
      scene.lose(new Error("gone"));
      await settled();
      assert.equal(scene.warnings, time);
      await scene.clock.advance(1000);
      await settled();
      assert.equal(scene.held, 1);
    }
    await scene.end();
  });

  test("that does not wait as long as asked is one warning, and asked again", async () => {
    const scene = new Scene();
    scene.delayMs = 5000;
    scene.raisesTo = 5000;
    await scene.start();
    await scene.clock.advance(3100);
    await scene.clock.advance(10_000);
    assert.equal(scene.warnings, 1);
    assert.ok(scene.calls.filter((call) => call === "connect").length > 1);
    await scene.end();
  });

  for (const call of ["inhibit", "onShutdown"] as const) {
    test(`that refuses ${call} is one warning, and connected to again`, async () => {
      const scene = new Scene();
      scene.failing.add(call);
      await scene.start();
      assert.deepEqual([scene.warnings, scene.held, scene.closes], [1, 0, 1]);
      scene.failing.clear();
      await scene.clock.advance(1000);
      await settled();
      assert.deepEqual([scene.warnings, scene.held], [1, 1]);
      await scene.end();
    });
  }

  test("that refuses a new lock after a cancellation is connected to again", async () => {
    const scene = new Scene();
    await scene.start();
    scene.failing.add("inhibit");
    scene.announce(false);
    await settled();
    assert.deepEqual([scene.warnings, scene.held, scene.closes], [1, 0, 1]);
    scene.failing.clear();
    await scene.clock.advance(1000);
    await settled();
    assert.equal(scene.held, 1);
    await scene.end();
  });

  test("that is lost is connected to again", async () => {
    const scene = new Scene();
    await scene.start();
    scene.lose(new Error("gone"));
    await settled();
    assert.equal(scene.held, 0);
    await scene.clock.advance(1000);
    await settled();
    assert.equal(scene.held, 1);
    await scene.end();
  });

  test("is not asked for without a configuration, and is once there is one", async () => {
    const scene = new Scene();
    scene.periods.set([]);
    await scene.start();
    assert.deepEqual(scene.calls, []);
    scene.periods.set(PERIODS);
    await settled();
    assert.deepEqual(scene.calls, ["connect", "lock"]);
    scene.periods.set([]);
    await settled();
    assert.equal(scene.held, 0);
    await scene.end();
  });
});
