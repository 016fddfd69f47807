import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { Rejection } from "../model/rejection.ts";
import { type HintProvider, type Hints, nodesOf, numaMask, type TopologyHint } from "../model/topology.ts";
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

  test("that a pod is rejected for anyway is tried, counted and released", async () => {
    const cards = new Cards([1, 1]);
    const { allocator, text } = allocatorOf([cards], { scope: "container" });
    assert.equal(allocator.problem(web)?.reason, "NoCard");
    assert.equal(allocator.problem(pod("small").container("app").build()), undefined);
    assert.equal(cards.taken.size, 0);
    assert.match(await text(), /kubelet_topology_manager_admission_requests_total 2\n/);
  });
});
