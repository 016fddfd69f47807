import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMISSION_NODE } from "../../../test/support/admission-node.ts";
import { pod } from "../../../test/support/pods.ts";
import type { Pod } from "../../model/generated/types.ts";
import { type AllocatedPod, ResizeQueue } from "./resize-queue.ts";

const node = { ...ADMISSION_NODE, allocatable: { cpu: "10", memory: "8Gi", pods: "110" } };

function sized(name: string, cpu: string, more: { limits?: boolean; priority?: number } = {}): Pod {
  const amounts = { cpu, memory: "1Mi" };
  const resources = { requests: amounts, ...(more.limits && { limits: amounts }) };
  return pod(name)
    .container("app", { resources })
    .with({ priority: more.priority ?? 0 })
    .build();
}

/** A pod that has 2 CPUs and asks for more. */
function growing(name: string, cpu: string, more: { limits?: boolean; priority?: number } = {}): AllocatedPod {
  return { desired: sized(name, cpu, more), allocated: sized(name, "2", more) };
}

/** Defers both in this order on a full node, then asks both in this order with room for one of them. */
function granted(pods: readonly AllocatedPod[]): string[] {
  const queue = new ResizeQueue();
  const full: AllocatedPod = { desired: sized("full", "6"), allocated: sized("full", "6") };
  const others = (of: AllocatedPod): AllocatedPod[] => pods.filter((other) => other !== of);
  for (const of of pods) assert.equal(queue.verdict(of, [...others(of), full], node)?.reason, "Deferred");
  const small: AllocatedPod = { desired: sized("full", "4"), allocated: sized("full", "4") };
  let now = pods;
  const given: string[] = [];
  for (const of of pods) {
    const rest = now.filter(({ desired }) => desired !== of.desired);
    if (queue.verdict(of, [...rest, small], node) !== undefined) continue;
    given.push(of.desired.metadata.name ?? "");
    now = [...rest, { desired: of.desired, allocated: of.desired }];
  }
  return given;
}

describe("of deferred resizes for which there is not room for all", () => {
  const cases: { name: string; pods: AllocatedPod[]; want: string[] }[] = [
    { name: "the one that waits longest goes first", pods: [growing("a", "4"), growing("b", "4")], want: ["a"] },
    {
      name: "a higher priority goes first",
      pods: [growing("a", "4"), growing("b", "4", { priority: 5 })],
      want: ["b"],
    },
    {
      name: "a guaranteed pod goes before a burstable one",
      pods: [growing("a", "4"), growing("b", "4", { limits: true })],
      want: ["b"],
    },
    {
      name: "one that does not fit holds nobody up",
      pods: [growing("a", "9"), growing("b", "4")],
      want: ["b"],
    },
  ];
  for (const { name, pods, want } of cases) test(name, () => assert.deepEqual(granted(pods), want));
});

describe("beside a deferred resize with room for one of both", () => {
  const [a, b] = [growing("a", "4"), growing("b", "4")];
  const fixedSize = (cpu: string): AllocatedPod => ({ desired: sized("full", cpu), allocated: sized("full", cpu) });
  /** A queue in which a and then b are deferred. */
  const waiting = (): ResizeQueue => {
    const queue = new ResizeQueue();
    assert.equal(queue.verdict(a, [b, fixedSize("6")], node)?.reason, "Deferred");
    assert.equal(queue.verdict(b, [a, fixedSize("6")], node)?.reason, "Deferred");
    return queue;
  };

  test("the later one waits", () => {
    assert.equal(waiting().verdict(b, [a, fixedSize("4")], node)?.reason, "Deferred");
  });

  test("the earlier one does not lose its turn by asking again", () => {
    const queue = waiting();
    for (let again = 0; again < 3; again++) {
      assert.equal(queue.verdict(a, [b, fixedSize("6")], node)?.reason, "Deferred");
    }
    assert.equal(queue.verdict(b, [a, fixedSize("4")], node)?.reason, "Deferred");
    assert.equal(queue.verdict(a, [b, fixedSize("4")], node), undefined);
  });

  test("a pod that has stopped is no longer waited for", () => {
    const queue = waiting();
    queue.delete("uid-of-a");
    assert.equal(queue.verdict(b, [a, fixedSize("4")], node), undefined);
  });

  test("the room that a pod before it gives up counts as free, also if that has a lower priority", () => {
    const shrinking: AllocatedPod = { desired: sized("a", "5"), allocated: sized("a", "6") };
    const queue = new ResizeQueue();
    assert.equal(queue.verdict(shrinking, [fixedSize("6")], node)?.reason, "Deferred");
    assert.equal(queue.verdict(growing("b", "4", { priority: 5 }), [shrinking, fixedSize("1")], node), undefined);
  });
});

test("a resize that never fits holds up nobody behind it", () => {
  const queue = new ResizeQueue();
  assert.deepEqual(queue.verdict(growing("a", "64"), [], node), {
    reason: "Deferred",
    message: "Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 10000",
  });
  assert.equal(queue.verdict(growing("b", "8"), [growing("a", "64")], node), undefined);
});

test("a resize under disk pressure is deferred, except of a critical pod", () => {
  const pressed = { ...node, pressure: ["DiskPressure"] };
  assert.deepEqual(new ResizeQueue().verdict(growing("a", "1"), [], pressed), {
    reason: "Deferred",
    message: "The node had condition: [DiskPressure]. ",
  });
  const critical = growing("b", "1", { priority: 2_000_000_000 });
  assert.equal(new ResizeQueue().verdict(critical, [], pressed), undefined);
});
