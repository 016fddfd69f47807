import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { requestedMs, type ShutdownPeriod, shutdownGroups, shutdownPeriods } from "./plan.ts";

type Options = Parameters<typeof shutdownPeriods>[0];
const NONE: Options = {
  shutdownGracePeriod: 0,
  shutdownGracePeriodCriticalPods: 0,
  shutdownGracePeriodByPodPriority: [],
  featureGates: {},
};
const by = (priority: number, shutdownGracePeriodSeconds: number) => ({ priority, shutdownGracePeriodSeconds });

describe("the times of a shutdown", () => {
  const rows: { name: string; options: Partial<Options>; want: [number, number][] }[] = [
    { name: "none without a configuration", options: {}, want: [] },
    {
      name: "two: the last part is for critical pods",
      options: { shutdownGracePeriod: 30_000, shutdownGracePeriodCriticalPods: 10_000 },
      want: [
        [0, 20],
        [2_000_000_000, 10],
      ],
    },
    {
      name: "nothing left for critical pods",
      options: { shutdownGracePeriod: 30_000 },
      want: [
        [0, 30],
        [2_000_000_000, 0],
      ],
    },
    {
      name: "all of it for critical pods",
      options: { shutdownGracePeriod: 30_000, shutdownGracePeriodCriticalPods: 30_000 },
      want: [
        [0, 0],
        [2_000_000_000, 30],
      ],
    },
    {
      name: "none if critical pods would have more than all of it",
      options: { shutdownGracePeriod: 10_000, shutdownGracePeriodCriticalPods: 30_000 },
      want: [],
    },
    {
      name: "by priority, the lowest first",
      options: { shutdownGracePeriodByPodPriority: [by(1000, 5), by(0, 10), by(100_000, 1)] },
      want: [
        [0, 10],
        [1000, 5],
        [100_000, 1],
      ],
    },
    {
      name: "none where the feature is off",
      options: { shutdownGracePeriod: 30_000, featureGates: { GracefulNodeShutdown: false } },
      want: [],
    },
    {
      name: "times by priority do not count where theirs is off",
      options: {
        shutdownGracePeriodByPodPriority: [by(0, 10)],
        featureGates: { GracefulNodeShutdownBasedOnPodPriority: false },
      },
      want: [],
    },
  ];
  for (const { name, options, want } of rows) {
    test(name, () => {
      const periods = shutdownPeriods({ ...NONE, ...options });
      assert.deepEqual(
        periods.map(({ priority, seconds }) => [priority, seconds]),
        want,
      );
      assert.equal(
        requestedMs(periods),
        want.reduce((sum, [, seconds]) => sum + seconds * 1000, 0),
      );
    });
  }
});

describe("who is ended when", () => {
  const periods: ShutdownPeriod[] = [
    { priority: 0, seconds: 20 },
    { priority: 1000, seconds: 10 },
    { priority: 2_000_000_000, seconds: 5 },
  ];
  const rows: { name: string; priority?: number; grace?: number; want: [number, number] }[] = [
    { name: "a pod without a priority", want: [0, 20] },
    { name: "one below the lowest", priority: -5, want: [0, 20] },
    { name: "one between two", priority: 999, want: [0, 20] },
    { name: "one at the border", priority: 1000, want: [1000, 10] },
    { name: "one above the highest", priority: 2_000_001_000, want: [2_000_000_000, 5] },
    { name: "a shorter grace period of its own", priority: 1000, grace: 3, want: [1000, 3] },
    { name: "a longer one", priority: 1000, grace: 300, want: [1000, 10] },
    { name: "none at all", priority: 1000, grace: 0, want: [1000, 0] },
  ];
  for (const { name, priority, grace, want } of rows) {
    test(name, () => {
      const of = pod("web")
        .container("app")
        .with({
          ...(priority !== undefined && { priority }),
          ...(grace !== undefined && { terminationGracePeriodSeconds: grace }),
        })
        .build();
      const { terminationGracePeriodSeconds: _, ...bare } = of.spec;
      const made = grace === undefined ? { ...of, spec: bare } : of;
      const groups = shutdownGroups(periods, [made]);
      assert.deepEqual(
        groups.map((group) => [group.priority, group.pods[0]?.graceSeconds]),
        [want],
      );
    });
  }

  test("lower priorities go first, and a group without pods does not wait", () => {
    const named = (name: string, priority: number) => pod(name).container("app").with({ priority }).build();
    const groups = shutdownGroups(periods, [named("c", 2_000_000_000), named("a", 0), named("b", 5)]);
    assert.deepEqual(
      groups.map(({ priority, pods }) => [priority, ...pods.map((each) => each.pod.metadata.name)]),
      [
        [0, "a", "b"],
        [2_000_000_000, "c"],
      ],
    );
  });
});
