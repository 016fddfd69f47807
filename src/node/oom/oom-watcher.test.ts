import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KernelRecord } from "../../adapters/host/kernel-log.ts";
import { silent } from "../../lib/log.ts";
import { untilAborted } from "../../lib/loop.ts";
import { type OomState, OomWatcher } from "./oom-watcher.ts";

const ID = "0123456789abcdef";
const head = "oom-kill:constraint=X,nodemask=(null),cpuset=/,mems_allowed=0";
const inPod = (pid: number): string =>
  `${head},oom_memcg=/kubepods,task_memcg=/kubepods/pod1-2/${ID},task=hog,pid=${pid},uid=0`;
const ofNode = (pid: number): string => `${head},global_oom,task_memcg=/,task=hog,pid=${pid},uid=0`;
const line = (sequence: number, text: string): KernelRecord => ({
  sequence,
  bootMicros: sequence * 1e6,
  isKernel: true,
  text,
});

/** A machine whose kernel log and state outlive the watchers that are run on it. */
class Machine {
  log: KernelRecord[] = [];
  state: OomState | undefined;
  bootId = "boot-1";
  uptime = 0;
  readonly events: string[] = [];
  readonly killed: string[] = [];
  readonly scopes: string[] = [];
  warnings = 0;

  /** Runs a watcher over the log of now; it is gone afterwards. */
  async watch(meanwhile: readonly KernelRecord[] = []): Promise<OomWatcher> {
    const stop = new AbortController();
    const watcher = new OomWatcher({
      log: { ...silent, warn: () => void this.warnings++ },
      bootId: this.bootId,
      uptimeMicros: () => this.uptime,
      follow: async (handler, { signal }) => {
        for (const record of [...this.log, ...meanwhile]) handler.record(record);
        stop.abort();
        await untilAborted(signal);
      },
      state: {
        load: () => this.state,
        save: async (state) => {
          this.state = state;
        },
      },
      event: (type, reason, message) => void this.events.push(`${type} ${reason} ${message}`),
      counted: (scope) => void this.scopes.push(scope),
      killed: ({ podUid, containerId, pid }) => void this.killed.push(`${podUid} ${containerId} ${pid}`),
    });
    await watcher.run(stop.signal);
    this.log.push(...meanwhile);
    return watcher;
  }
}

describe("OOM kills", () => {
  test("of the node are an event, those of containers are told with their container", async () => {
    const machine = new Machine();
    await machine.watch([line(1, ofNode(5)), line(2, inPod(6)), line(3, inPod(7))]);
    assert.deepEqual(machine.events, ["Warning SystemOOM System OOM encountered, victim process: hog, pid: 5"]);
    assert.deepEqual(machine.killed, [`1-2 ${ID} 6`, `1-2 ${ID} 7`]);
    assert.deepEqual(machine.scopes, ["system", "container", "container"]);
  });

  test("are reported once over restarts, and those between two agents too", async () => {
    const machine = new Machine();
    await machine.watch([line(1, ofNode(1))]);
    machine.log.push(line(2, ofNode(2)));
    await machine.watch([line(3, ofNode(3))]);
    await machine.watch();
    assert.deepEqual(
      machine.events.map((event) => event.at(-1)),
      ["1", "2", "3"],
    );
  });

  test("of before the first start of all are not reported", async () => {
    const machine = new Machine();
    machine.uptime = 10e6;
    machine.log = [line(1, inPod(1))];
    await machine.watch();
    assert.deepEqual(machine.killed, []);
    machine.log.push(line(20, inPod(2)));
    machine.uptime = 30e6;
    await machine.watch();
    assert.deepEqual(machine.killed, [`1-2 ${ID} 2`], "one that came while no agent ran is");
  });

  test("after a reboot the numbers begin anew", async () => {
    const machine = new Machine();
    await machine.watch([line(50, ofNode(1))]);
    machine.bootId = "boot-2";
    machine.log = [line(2, ofNode(2))];
    machine.uptime = 100e6;
    await machine.watch();
    assert.equal(machine.events.length, 2);
  });

  test("that a process wrote into the log do not count", async () => {
    const machine = new Machine();
    await machine.watch([{ ...line(1, ofNode(1)), isKernel: false }]);
    assert.deepEqual(machine.events, []);
  });
});

test("kills that come faster than the disk takes writes are saved by one write, of the last", async () => {
  const stop = new AbortController();
  const writes: { readonly sequence: number; done(): void }[] = [];
  const watcher = new OomWatcher({
    log: silent,
    bootId: "b",
    uptimeMicros: () => 0,
    follow: async (handler, { signal }) => {
      for (let sequence = 1; sequence <= 1000; sequence++) handler.record(line(sequence, inPod(sequence)));
      await untilAborted(signal);
    },
    state: {
      load: () => ({ bootId: "b", sequence: 0, sinceMicros: 0 }),
      save: ({ sequence }) => new Promise((done) => void writes.push({ sequence, done })),
    },
    event: () => undefined,
  });
  const running = watcher.run(stop.signal);
  stop.abort();
  writes[0]?.done();
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  writes[1]?.done();
  await running;
  assert.deepEqual(
    writes.map(({ sequence }) => sequence),
    [1, 1000],
  );
});

test("each kill that comes after the write for the one before is saved", async () => {
  const stop = new AbortController();
  const saved: number[] = [];
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const watcher = new OomWatcher({
    log: silent,
    bootId: "b",
    uptimeMicros: () => 0,
    follow: async (handler, { signal }) => {
      for (const sequence of [1, 2, 3]) {
        handler.record(line(sequence, inPod(sequence)));
        await turn();
      }
      stop.abort();
      await untilAborted(signal);
    },
    state: {
      load: () => ({ bootId: "b", sequence: 0, sinceMicros: 0 }),
      save: async ({ sequence }) => void saved.push(sequence),
    },
    event: () => undefined,
  });
  await watcher.run(stop.signal);
  assert.deepEqual(saved, [1, 2, 3]);
});

test("a log that cannot be read is one warning, and no end of the agent", async () => {
  let warnings = 0;
  const stop = new AbortController();
  const watcher = new OomWatcher({
    log: { ...silent, warn: () => void warnings++ },
    bootId: "b",
    uptimeMicros: () => 0,
    follow: () => Promise.reject(new Error("EPERM")),
    state: { load: () => undefined, save: () => Promise.resolve() },
    event: () => undefined,
  });
  let isOver = false;
  const running = watcher.run(stop.signal).then(() => {
    isOver = true;
  });
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([warnings, isOver], [1, false]);
  stop.abort();
  await running;
});
