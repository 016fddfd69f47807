import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { Rejection } from "../model/rejection.ts";
import {
  type HintProvider,
  type Hints,
  nodesOf,
  numaMask,
  TooManyNodesError,
  type TopologyHint,
} from "../model/topology.ts";
import type { MergeRules } from "./merge-hints.ts";
import { topologyMetrics } from "./metrics.ts";
import { TopologyAllocator, type TopologyRules } from "./topology-allocator.ts";

const NODES = [0, 1];
const { signal } = new AbortController();

/** Cards on NUMA nodes; each container takes one of those that are free. */
class Cards implements HintProvider {
  readonly name = "cards";
  readonly taken = new Map<string, number>();
  readonly asked: string[] = [];

  constructor(private readonly cards: readonly number[]) {}

  hints(_pod: Pod, { name }: Container): Hints {
    this.asked.push(`hints ${name}`);
    return this.all();
  }

  podHints(): Hints {
    this.asked.push("hints of the pod");
    return this.all();
  }

  reserve({ metadata }: Pod, { name }: Container, affinity: TopologyHint): Rejection | undefined {
    const allowed = affinity.numa === undefined ? NODES : nodesOf(affinity.numa);
    this.asked.push(`allocate ${name} on ${allowed.join()}`);
    const card = this.free("cards");
    const [node] = [...card].find(([at, count]) => count > 0 && allowed.includes(at)) ?? [];
    if (node === undefined) return { reason: "NoCard", message: "no card is free" };
    this.taken.set(`${metadata.uid}/${name}`, node);
    return undefined;
  }

  commit(): Promise<void> {
    return Promise.resolve();
  }

  release(uid: string): void {
    for (const key of [...this.taken.keys()]) if (key.startsWith(`${uid}/`)) this.taken.delete(key);
  }

  free(_resource: string): ReadonlyMap<number, number> {
    const used = [...this.taken.values()];
    return new Map(this.cards.map((count, node) => [node, count - used.filter((at) => at === node).length]));
  }

  needs(): ReadonlyMap<string, number> {
    return new Map([["example.com/card", 1]]);
  }

  private all(): Hints {
    const list = [...this.free("cards")].filter(([, count]) => count > 0);
    return new Map([["example.com/card", list.map(([node]) => ({ numa: numaMask([node]), isPreferred: true }))]]);
  }
}

const single: MergeRules = { policy: "single-numa-node", nodes: NODES };

function allocatorOf(providers: readonly HintProvider[], rules: TopologyRules) {
  const metrics = new Metrics();
  const deps = { providers, clock: new FakeClock(), counted: topologyMetrics(metrics) };
  const text = async (): Promise<string> => (await metrics.expose()).body;
  return { allocator: new TopologyAllocator(deps, rules), text };
}

const web = pod("web").init("setup").container("app").container("proxy").build();

describe("the readmission of a pod", () => {
  const waits = { waits: "for a plugin" };
  const provider = (readmit?: HintProvider["readmit"]): HintProvider =>
    Object.assign(new Cards([0, 0]), readmit === undefined ? {} : { readmit });
  const fails = (): never => {
    throw new Error("no plugin");
  };
  const message = "Allocate failed due to no plugin, which is unexpected";
  const rejection = { reason: "UnexpectedAdmissionError", message };
  const cases = [
    {
      name: "needs nothing of providers that ask for nothing",
      of: [provider(), provider(() => undefined)],
      want: undefined,
    },
    {
      name: "waits while one provider has it wait",
      of: [provider(() => undefined), provider(() => waits)],
      want: waits,
    },
    { name: "fails if one provider refuses", of: [provider(() => waits), provider(fails)], want: { rejection } },
  ];
  for (const { name, of, want } of cases) {
    test(name, () => {
      const { allocator } = allocatorOf(of, { merge: single, scope: "container" });
      assert.deepEqual(allocator.readmit(web), want);
    });
  }
});

describe("the adoption of a pod of an earlier agent", () => {
  const app = pod("web").container("app").build();
  const lacked = (cards: Cards): Cards =>
    Object.assign(cards, { isLackedBy: ({ metadata }: Pod) => !cards.taken.has(`${metadata.uid}/app`) });

  for (const scope of ["container", "pod"] as const) {
    test(`gives it what it lacks, where the rest of it is: scope ${scope}`, async () => {
      const [near, given] = [lacked(new Cards([1, 1])), new Cards([0, 1])];
      const { allocator } = allocatorOf([given, near], { merge: single, scope });
      assert.equal(await allocator.adopt(app, { signal }), undefined);
      assert.deepEqual([...near.taken], [["uid-of-web/app", 1]]);
      assert.deepEqual([...given.taken], []);
      const before = near.asked.length;
      assert.equal(await allocator.adopt(app, { signal }), undefined);
      assert.equal(near.asked.length, before);
    });
  }

  test("says why it cannot be had, and keeps what the pod has of others", async () => {
    const [none, given] = [lacked(new Cards([0, 0])), new Cards([2, 0])];
    given.taken.set("uid-of-web/app", 0);
    const { allocator } = allocatorOf([given, none], { scope: "container" });
    assert.deepEqual(await allocator.adopt(app, { signal }), { reason: "NoCard", message: "no card is free" });
    assert.deepEqual([...given.taken], [["uid-of-web/app", 0]]);
  });

  test("keeps nothing that cannot be persisted", async () => {
    const cards = lacked(new Cards([1, 1]));
    cards.commit = () => Promise.reject(new Error("disk full"));
    const { allocator } = allocatorOf([cards], { scope: "container" });
    await assert.rejects(allocator.adopt(app, { signal }), /^Error: disk full$/);
    assert.deepEqual([...cards.taken], []);
    assert.equal(allocator.isLackedBy(app), true);
    assert.equal(allocatorOf([new Cards([1, 1])], { scope: "container" }).allocator.isLackedBy(app), false);
  });
});

describe("the counters of alignment", () => {
  const restricted: MergeRules = { ...single, policy: "restricted" };
  const cases: readonly {
    name: string;
    rules: TopologyRules;
    cards: readonly number[];
    want: { aligned?: number; misaligned?: number; rejected?: number };
  }[] = [
    {
      name: "of each container that is aligned",
      rules: { merge: single, scope: "container" },
      cards: [3, 0],
      want: { aligned: 3 },
    },
    { name: "of a pod that is aligned", rules: { merge: single, scope: "pod" }, cards: [3, 0], want: { aligned: 1 } },
    {
      name: "of a pod that is not",
      rules: { merge: single, scope: "pod" },
      cards: [0, 0],
      want: { misaligned: 1, rejected: 1 },
    },
    {
      name: "of a container that is not, after others that were",
      rules: { merge: single, scope: "container" },
      cards: [2, 0],
      want: { aligned: 2, misaligned: 1, rejected: 1 },
    },
    {
      name: "only where one node is promised",
      rules: { merge: restricted, scope: "container" },
      cards: [3, 0],
      want: {},
    },
    {
      name: "only where one node is promised, also of a rejection",
      rules: { merge: restricted, scope: "container" },
      cards: [0, 0],
      want: { rejected: 1 },
    },
    { name: "never without a policy", rules: { scope: "container" }, cards: [3, 0], want: {} },
    { name: "never without a policy, also of a rejection", rules: { scope: "container" }, cards: [0, 0], want: {} },
  ];
  for (const { name, rules, cards, want } of cases) {
    for (const call of ["allocate", "problem"] as const) {
      test(`count ${name}: ${call}`, async () => {
        const { allocator, text } = allocatorOf([new Cards(cards)], rules);
        await allocator[call](web, { signal });
        const lines = new Map(
          (await text()).split("\n").map((line) => [line.replace(/ \d+$/, ""), line.split(" ").at(-1)]),
        );
        const read = (metric: string): number => Number(lines.get(metric) ?? 0);
        const labels = `{scope="${rules.scope}",boundary="numa_node"}`;
        const found = {
          aligned: read(`kubelet_container_aligned_compute_resources_count${labels}`),
          misaligned: read(`kubelet_container_aligned_compute_resources_failure_count${labels}`),
          rejected: read("kubelet_topology_manager_admission_errors_total"),
        };
        // What is only tried counts container by container, and never as a pod.
        const aligned = call === "problem" && rules.scope === "pod" ? 0 : (want.aligned ?? 0);
        assert.deepEqual(found, { misaligned: 0, rejected: 0, ...want, aligned });
        assert.equal(read("kubelet_topology_manager_admission_requests_total"), 1);
      });
    }
  }
});

describe("allocation by topology", () => {
  test("asks each container in turn, those that initialize the pod first, for its hints and then for its allocation", async () => {
    const cards = new Cards([2, 1]);
    const { allocator } = allocatorOf([cards], { merge: single, scope: "container" });
    assert.equal(await allocator.allocate(web, { signal }), undefined);
    assert.deepEqual(cards.asked, [
      ...["hints setup", "allocate setup on 0", "hints app", "allocate app on 0", "hints proxy", "allocate proxy on 1"],
    ]);
  });

  test("with the scope pod merges once, and gives every container the same affinity", async () => {
    const cards = new Cards([3, 3]);
    const { allocator } = allocatorOf([cards], { merge: single, scope: "pod" });
    assert.equal(await allocator.allocate(web, { signal }), undefined);
    assert.deepEqual(cards.asked.slice(0, 2), ["hints of the pod", "allocate setup on 0"]);
    assert.deepEqual([...cards.taken.values()], [0, 0, 0]);
  });

  test("without a policy asks for no hints", async () => {
    const cards = new Cards([1, 2]);
    const { allocator } = allocatorOf([cards], { scope: "container" });
    await allocator.allocate(web, { signal });
    assert.deepEqual(cards.asked, ["allocate setup on 0,1", "allocate app on 0,1", "allocate proxy on 0,1"]);
  });

  test("that cannot be aligned is TopologyAffinityError, and tells what each NUMA node lacks", async () => {
    const { allocator, text } = allocatorOf([new Cards([0, 0])], { merge: single, scope: "container" });
    const answer = await allocator.allocate(web, { signal });
    assert.deepEqual(answer?.rejection, {
      reason: "TopologyAffinityError",
      message:
        "Resources cannot be allocated with Topology locality: " +
        "NUMA node 0: example.com/card short by 1 (requested 1, free 0); " +
        "NUMA node 1: example.com/card short by 1 (requested 1, free 0)",
    });
    const page = await text();
    assert.match(page, /kubelet_topology_manager_admission_errors_total 1\n/);
    assert.match(page, /resources_failure_count\{scope="container",boundary="numa_node"\} 1\n/);
  });

  test("that is aborted while a provider commits rejects no pod", async () => {
    const stop = new AbortController();
    const cards = new Cards([2, 2]);
    cards.commit = () => {
      stop.abort(new Error("the agent stops"));
      return Promise.reject(new Error("the connection was closed"));
    };
    const { allocator } = allocatorOf([cards], { scope: "container" });
    await assert.rejects(allocator.allocate(web, { signal: stop.signal }), /the agent stops/);
  });

  test("passes on a provider's rejection, and everything is released again", async () => {
    const cards = new Cards([1, 1]);
    const { allocator, text } = allocatorOf([cards], { scope: "container" });
    const answer = await allocator.allocate(web, { signal });
    assert.equal(answer?.rejection.reason, "NoCard");
    allocator.release("uid-of-web");
    assert.equal(cards.taken.size, 0);
    assert.match(await text(), /kubelet_topology_manager_admission_requests_total 1\n/);
  });

  test("rejects a pod whose hints cannot be computed, and releases what it had reserved", async () => {
    const unexpected = "Allocate failed due to no such node, which is unexpected";
    const many = "Resources cannot be allocated with Topology locality: too many: set topologyManagerPolicy to none";
    for (const [error, want] of [
      [new Error("no such node"), { reason: "UnexpectedAdmissionError", message: unexpected }],
      [new TooManyNodesError("too many"), { reason: "TopologyAffinityError", message: many }],
    ] as const) {
      const fail = (): never => {
        throw error;
      };
      for (const scope of ["container", "pod"] as const) {
        const cards = new Cards([2, 2]);
        const failing = Object.assign(new Cards([2, 2]), { hints: fail, podHints: fail, isLackedBy: () => true });
        const { allocator } = allocatorOf([cards, failing], { merge: single, scope });
        assert.deepEqual(await allocator.allocate(web, { signal }), { rejection: want });
        assert.deepEqual(allocator.problem(web), want);
        assert.deepEqual(await allocator.adopt(web, { signal }), want);
        assert.deepEqual([cards.taken.size, failing.taken.size], [0, 0]);
      }
    }
  });

  test("that a pod is rejected for anyway is tried, counted and released", async () => {
    const cards = new Cards([1, 1]);
    const { allocator, text } = allocatorOf([cards], { scope: "container" });
    assert.equal(allocator.problem(web)?.reason, "NoCard");
    assert.equal(allocator.problem(pod("small").container("app").build()), undefined);
    assert.equal(cards.taken.size, 0);
    assert.match(await text(), /kubelet_topology_manager_admission_requests_total 2\n/);
  });
});
