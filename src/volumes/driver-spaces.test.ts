import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import type { VolumeSpace } from "../model/usage.ts";
import { DriverSpaces } from "./driver-spaces.ts";
import type { SpaceSource } from "./kind.ts";

const SPACE: VolumeSpace = {
  device: 0,
  capacityBytes: 100,
  availableBytes: 60,
  usedBytes: 40,
  inodes: 10,
  inodesFree: 6,
  inodesUsed: 4,
};
const silent = { warn: () => undefined };
const ignore = (): void => undefined;

interface Site {
  readonly clock: FakeClock;
  readonly spaces: DriverSpaces;
  readonly stop: AbortController;
  /** Calls to drivers, by their names. */
  readonly calls: string[];
  /** A volume of a driver. */
  volume(driver: string, answer: () => Promise<VolumeSpace | undefined>): SpaceSource;
}

function site(): Site {
  const clock = new FakeClock();
  const stop = new AbortController();
  const calls: string[] = [];
  return {
    clock,
    stop,
    calls,
    spaces: new DriverSpaces({ clock, log: silent }, stop.signal),
    volume: (driver, answer) => ({
      path: `/${driver}`,
      driver,
      read: () => {
        calls.push(driver);
        return answer();
      },
    }),
  };
}

const hangs = (): Promise<undefined> => new Promise(() => undefined);
const answers = async (): Promise<VolumeSpace> => SPACE;

test("a driver that hangs does not keep the health of another driver's volumes from being looked at", async () => {
  const { clock, spaces, calls, volume, stop } = site();
  spaces.add(volume("stuck", hangs), ignore);
  spaces.add(volume("well", answers), ignore);
  const watching = spaces.watch(() => 60_000, stop.signal).catch(ignore);
  for (let period = 0; period < 3; period++) await clock.advance(60_000);
  assert.deepEqual(calls, ["stuck", "well", "well", "well"]);
  stop.abort();
  await watching;
});

test("a volume that is published again while its driver hangs does not add to the calls that the driver has to answer", async () => {
  const { clock, spaces, calls, volume, stop } = site();
  let answer = (_space: VolumeSpace): void => undefined;
  const late = new Promise<VolumeSpace>((resolve) => (answer = resolve));
  const read = (): Promise<VolumeSpace | undefined> => spaces.read("/slow", { signal: stop.signal, maxAgeMs: 60_000 });
  for (let time = 0; time < 3; time++) {
    spaces.add(
      volume("slow", () => late),
      ignore,
    );
    const first = read();
    await clock.advance(60_000);
    assert.equal(await first, undefined);
  }
  assert.deepEqual(calls, ["slow"]);
  answer(SPACE);
  await clock.advance(0);
  assert.deepEqual(await read(), SPACE);
  stop.abort();
});

test("what a driver reports after its volume was published again goes to the newest listener", async () => {
  const { clock, spaces, volume, stop } = site();
  const heard: string[] = [];
  let answer = (_space: VolumeSpace): void => undefined;
  const late = new Promise<VolumeSpace>((resolve) => (answer = resolve));
  const source = volume("slow", () => late);
  spaces.add(source, (message) => heard.push(`before: ${message}`));
  const reading = spaces.read("/slow", { signal: stop.signal, maxAgeMs: 0 });
  await clock.advance(1000);
  await reading;
  spaces.add(source, (message) => heard.push(`now: ${message}`));
  answer({ ...SPACE, condition: { isAbnormal: true, message: "worn out" } });
  await clock.advance(0);
  assert.deepEqual(heard, ["now: worn out"]);
  stop.abort();
});
