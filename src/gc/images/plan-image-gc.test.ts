import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type ImageGcFacts, type ImageGcPolicy, type ImageRecord, planImageGc, usageOf } from "./plan-image-gc.ts";

const MINUTE = 60_000;
const now = 1000 * MINUTE;
const POLICY: ImageGcPolicy = { highPercent: 85, lowPercent: 80, minAgeMs: 2 * MINUTE, maxAgeMs: 0 };
const FULL = { capacityBytes: 1000, availableBytes: 100 };

function image(key: string, more: { detected?: number; used?: number; size?: number } = {}): ImageRecord {
  const { detected = 500, used, size = 50 } = more;
  return {
    key,
    image: { id: key, tags: [`${key}:1`], digests: [], sizeBytes: size, username: "", pinned: false },
    firstDetected: detected * MINUTE,
    lastUsed: used === undefined ? undefined : used * MINUTE,
  };
}

function plan(facts: Partial<ImageGcFacts>, policy: Partial<ImageGcPolicy> = {}): ReturnType<typeof planImageGc> {
  const all: ImageGcFacts = { images: [], holds: new Map(), filesystem: FULL, startedAt: 0, ...facts };
  return planImageGc(all, { ...POLICY, ...policy }, now);
}

function verdicts(...of: Parameters<typeof plan>): string[] {
  return plan(...of).images.map(({ key, remove, keep }) => `${key} ${remove ?? keep}`);
}

describe("for space", () => {
  const three = [image("a", { used: 700 }), image("b", { used: 600 }), image("c", { used: 800 })];
  const cases: readonly {
    name: string;
    facts: Partial<ImageGcFacts>;
    policy?: Partial<ImageGcPolicy>;
    want: string[];
  }[] = [
    {
      name: "below the high threshold nothing is removed",
      facts: { images: three, filesystem: { capacityBytes: 1000, availableBytes: 160 } },
      want: ["b spare", "a spare", "c spare"],
    },
    {
      name: "at the high threshold the least recently used go, down to the low one",
      facts: { images: three, filesystem: { capacityBytes: 1000, availableBytes: 150 } },
      want: ["b space", "a spare", "c spare"],
    },
    {
      name: "as many as are needed",
      facts: { images: three },
      want: ["b space", "a space", "c spare"],
    },
    {
      name: "one that was never used goes before all others",
      facts: { images: [...three, image("d")] },
      want: ["d space", "b space", "a spare", "c spare"],
    },
    {
      name: "of those that were never used, the one that was detected first, then the largest",
      facts: {
        images: [image("a", { detected: 2 }), image("b"), image("c", { size: 60 }), image("d", { detected: 1 })],
      },
      want: ["d space", "a space", "c spare", "b spare"],
    },
    {
      name: "of equals the one whose key comes first",
      facts: { images: [image("b"), image("a"), image("c")] },
      want: ["a space", "b space", "c spare"],
    },
    {
      name: "those that are spare come before young ones, for when a removal fails",
      facts: {
        images: [image("young", { detected: 999 }), ...three],
        filesystem: { capacityBytes: 1000, availableBytes: 150 },
      },
      want: ["b space", "a spare", "c spare", "young young"],
    },
    {
      name: "a high threshold of 100 turns it off",
      facts: { images: three, filesystem: { capacityBytes: 1000, availableBytes: 0 } },
      policy: { highPercent: 100 },
      want: ["b spare", "a spare", "c spare"],
    },
    {
      name: "nothing without a measurement, and nothing of a filesystem without capacity",
      facts: { images: [image("a")], filesystem: undefined },
      want: ["a spare"],
    },
    {
      name: "images that are held stay, whatever the disk looks like",
      facts: { images: three, holds: new Map([["b", { keep: "wanted" }]]) },
      want: ["a space", "c space", "b wanted"],
    },
    {
      name: "under disk pressure all that is unused and old enough",
      facts: {
        images: [...three, image("young", { detected: 999 })],
        filesystem: { capacityBytes: 1000, availableBytes: 900 },
        everything: true,
      },
      want: ["b space", "a space", "c space", "young young"],
    },
  ];
  for (const { name, facts, policy, want } of cases) {
    test(name, () => assert.deepEqual(verdicts(facts, policy), want));
  }

  test("the bytes to free are those up to the low threshold", () => {
    assert.equal(plan({ images: three }).bytesToFree, 100);
    assert.equal(plan({ images: three, filesystem: { capacityBytes: 1000, availableBytes: 160 } }).bytesToFree, 0);
  });

  test("a young image stays, and is looked at again when it is old enough", () => {
    const young = plan({ images: [image("a", { detected: 999 })] });
    assert.deepEqual([young.images[0]?.keep, young.afterMs], ["young", MINUTE]);
    const exactly = plan({ images: [image("a", { detected: 998 })] });
    assert.deepEqual([exactly.images[0]?.remove, exactly.afterMs], ["space", undefined]);
  });
});

describe("for age", () => {
  const room = { capacityBytes: 1000, availableBytes: 900 };
  const old = [image("old", { used: 800 }), image("new", { used: 950 }), image("never", { detected: 700 })];

  test("images that were unused for longer than the maximum go, whatever the disk looks like", () => {
    const want = ["never age", "old age", "new spare"];
    assert.deepEqual(verdicts({ images: old, filesystem: room }, { maxAgeMs: 100 * MINUTE }), want);
  });

  test("0 turns it off", () => {
    const want = ["never spare", "old spare", "new spare"];
    assert.deepEqual(verdicts({ images: old, filesystem: room }, { maxAgeMs: 0 }), want);
  });

  test("ages count from the start of the agent, at the earliest", () => {
    const facts = { images: old, filesystem: room, startedAt: 900 * MINUTE };
    assert.deepEqual(verdicts(facts, { maxAgeMs: 100 * MINUTE }), ["never spare", "old spare", "new spare"]);
  });

  test("an image that was never used counts from when it was detected", () => {
    const facts = { images: [image("new", { detected: 990 })], filesystem: room };
    assert.deepEqual(verdicts(facts, { maxAgeMs: 100 * MINUTE }), ["new spare"]);
  });

  test("a held image is never too old", () => {
    const facts = { images: old, filesystem: room, holds: new Map([["old", { keep: "inUse" } as const]]) };
    assert.deepEqual(verdicts(facts, { maxAgeMs: 100 * MINUTE }), ["never age", "new spare", "old inUse"]);
  });

  test("what goes for its age counts towards the space", () => {
    const facts = { images: [...old, image("other", { used: 940, size: 100 })], filesystem: FULL };
    const want = ["never age", "old age", "other spare", "new spare"];
    assert.deepEqual(verdicts(facts, { maxAgeMs: 100 * MINUTE }), want);
  });
});

test("usage is rounded up, and a capacity of 0 is no usage", () => {
  assert.equal(usageOf({ capacityBytes: 1000, availableBytes: 155 }), 85);
  assert.equal(usageOf({ capacityBytes: 1000, availableBytes: 2000 }), 0);
  assert.equal(usageOf({ capacityBytes: 0, availableBytes: 0 }), 0);
});

const anyImage = fc.record({
  detected: fc.integer({ min: 0, max: 1000 }),
  used: fc.option(fc.integer({ min: 0, max: 1000 }), { nil: undefined }),
  size: fc.integer({ min: 0, max: 400 }),
  isHeld: fc.boolean(),
});

test("whatever the node looks like: nothing that is held, no more than needed, and every image gets a verdict", () => {
  const facts = fc.record({
    found: fc.array(anyImage, { maxLength: 30 }),
    available: fc.integer({ min: 0, max: 1000 }),
    low: fc.integer({ min: 0, max: 99 }),
    maxAge: fc.constantFrom(0, 100, 500),
    everything: fc.boolean(),
  });
  fc.assert(
    fc.property(facts, ({ found, available, low, maxAge, everything }) => {
      const images = found.map((of, index) => image(`i${index}`, of));
      const holds = new Map(
        found.flatMap(({ isHeld }, index) => (isHeld ? [[`i${index}`, { keep: "inUse" } as const]] : [])),
      );
      const policy = { ...POLICY, lowPercent: low, highPercent: low + 1, maxAgeMs: maxAge * MINUTE };
      const filesystem = { capacityBytes: 1000, availableBytes: available };
      const made = planImageGc({ images, holds, filesystem, startedAt: 0, everything }, policy, now);
      assert.equal(made.images.length, images.length);
      assert.ok(made.images.every(({ remove, keep }) => (remove === undefined) !== (keep === undefined)));
      const removed = made.images.filter(({ remove }) => remove !== undefined);
      assert.ok(removed.every(({ key }) => !holds.has(key)));
      const forSpace = removed.filter(({ remove }) => remove === "space");
      assert.ok(forSpace.every(({ firstDetected }) => now - firstDetected >= POLICY.minAgeMs));
      // Without the last one it would not have been enough.
      const before = removed.slice(0, -1).reduce((sum, { image: of }) => sum + of.sizeBytes, 0);
      if (forSpace.length > 0) assert.ok(before < made.bytesToFree);
      const enough = removed.reduce((sum, { image: of }) => sum + of.sizeBytes, 0) >= made.bytesToFree;
      assert.ok(enough || made.images.every(({ keep }) => keep !== "spare"));
    }),
  );
});
