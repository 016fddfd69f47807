import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AbortedError } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { Lane } from "../../lib/lane.ts";
import { fixed } from "../../lib/live.ts";
import { StartSlot } from "./start-slot.ts";

const never = new AbortController().signal;

function lane(limit: number): Lane {
  return new Lane(fixed(limit), { signal: never });
}

function slot(of: Lane, critical = false): StartSlot {
  return new StartSlot(of, { critical });
}

const settle = (): Promise<void> => new FakeClock().advance(0);

describe("a pod's slot in the start lane", () => {
  test("is held until it is released, and then the next pod's", async () => {
    const one = lane(1);
    const [first, second] = [slot(one), slot(one)];
    await first.hold(never);
    const next = second.hold(never);
    await settle();
    assert.deepEqual([first.isHeld, second.isHeld], [true, false]);
    first.release();
    await next;
    assert.deepEqual([first.isHeld, second.isHeld], [false, true]);
  });

  test("held twice is one slot, and one release frees it", async () => {
    const one = lane(1);
    const first = slot(one);
    await first.hold(never);
    await first.hold(never);
    assert.equal(one.running, 1);
    first.release();
    await settle();
    assert.equal(one.running, 0);
  });

  test("releasing twice, or what was never held, frees no slot of another pod", async () => {
    const one = lane(1);
    const [first, second] = [slot(one), slot(one)];
    second.release();
    await first.hold(never);
    first.release();
    first.release();
    await second.hold(never);
    first.release();
    assert.equal(second.isHeld, true);
    assert.equal(one.running, 1);
  });

  test("can be taken again after a pause, behind those who wait", async () => {
    const one = lane(1);
    const [first, second] = [slot(one), slot(one)];
    await first.hold(never);
    const next = second.hold(never);
    first.release();
    const again = first.hold(never);
    await next;
    await settle();
    assert.equal(first.isHeld, false);
    second.release();
    await again;
    assert.equal(first.isHeld, true);
  });

  test("of a critical pod comes first", async () => {
    const one = lane(1);
    const [holder, plain, critical] = [slot(one), slot(one), slot(one, true)];
    await holder.hold(never);
    void plain.hold(never);
    const first = critical.hold(never);
    holder.release();
    await first;
    assert.deepEqual([plain.isHeld, critical.isHeld], [false, true]);
  });

  test("reports its position while it waits, and 0 when it has it", async () => {
    const one = lane(1);
    const [holder, other, last] = [slot(one), slot(one), slot(one)];
    const places: number[] = [];
    await holder.hold(never);
    const next = other.hold(never);
    const held = last.hold(never, (position) => void places.push(position));
    holder.release();
    await next;
    other.release();
    await held;
    assert.deepEqual(places, [2, 1, 0]);
  });

  test("an abort while waiting leaves the queue with the abort's reason, and holds nothing", async () => {
    const one = lane(1);
    const [holder, waiting] = [slot(one), slot(one)];
    const given = new AbortController();
    await holder.hold(never);
    const held = waiting.hold(given.signal);
    given.abort(new AbortedError("planned anew"));
    await assert.rejects(held, /planned anew/);
    assert.equal(waiting.isHeld, false);
    assert.equal(one.waiting, 0);
    holder.release();
    await settle();
    assert.equal(one.running, 0);
  });

  test("an aborted signal is rejected even when there is room", async () => {
    const one = lane(1);
    await assert.rejects(slot(one).hold(AbortSignal.abort(new AbortedError())), AbortedError);
    assert.equal(one.running, 0);
  });
});
