import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeAllocator } from "../../../test/support/allocator.ts";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Pod } from "../../model/generated/types.ts";

const needs = (name: string, cpu: string): Pod =>
  pod(name)
    .container("app", { resources: { requests: { cpu } } })
    .build();
const asStatic = (of: Pod): Pod => ({
  ...of,
  metadata: { ...of.metadata, annotations: { "kubernetes.io/config.source": "file" } },
});
const one = needs("one", "1500m");
const two = needs("two", "1");

describe("a pod that does not fit", () => {
  test("is Failed with the reason, and gets no worker", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    assert.equal(ring.status("one")?.phase, "Running");
    const { phase, reason, message, qosClass } = ring.status("two") ?? {};
    assert.deepEqual([phase, reason, qosClass], ["Failed", "OutOfcpu", "Burstable"]);
    const numbers = "requested: 1000, used: 1500, capacity: 2000";
    assert.equal(message, `Pod was rejected: Node didn't have enough resource: cpu, ${numbers}`);
    assert.equal(ring.pool.worker("uid-of-two"), undefined);
  });

  test("is decided anew after a restart of the agent: a static pod runs once the reason is gone", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    assert.equal(ring.status("two")?.phase, "Failed");
    await ring.want(two);
    await ring.restartAgent();
    await ring.want(two);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("has the time of its rejection and the generation that was rejected", async () => {
    const ring = new FakeRing();
    await ring.want(one, { ...two, metadata: { ...two.metadata, generation: 3 } });
    const { startTime, observedGeneration } = ring.status("two") ?? {};
    assert.equal(startTime, `${new Date(ring.clock.now().wall).toISOString().slice(0, 19)}Z`);
    assert.equal(observedGeneration, 3);
  });

  test("is decided anew when the node is another one", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    ring.node = { ...ring.node, allocatable: { ...ring.node.allocatable, cpu: "4" } };
    await ring.restartAgent();
    await ring.want(one, two);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("is rejected once, and the pod that took its room is not asked again", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    for (const other of ["three", "four"]) {
      await ring.want(one, two, needs(other, "1"));
      ring.pool.wake("uid-of-two");
    }
    const of = (name: string) => ring.journal.events(0).filter(({ pod }) => pod.name === name);
    assert.deepEqual(
      of("two").map(({ reason }) => reason),
      ["OutOfcpu"],
    );
    assert.equal(ring.pool.isFinished("uid-of-two"), true);
    const steps = ring.journal.of({ uid: "uid-of-one", name: "one", namespace: "default" }).history;
    assert.ok(!steps.some(({ detail }) => detail?.startsWith("for the end of")));
  });

  test("is forgotten when it is removed", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    await ring.want(one);
    assert.equal(ring.status("two"), undefined);
    await ring.want();
    await ring.clock.advance(60_000);
    await ring.want(two);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("waits instead when the room it needs is just becoming free", async () => {
    const ring = new FakeRing({ app: { termMs: 5000 } });
    await ring.want(one);
    await ring.want(two);
    assert.equal(ring.status("two"), undefined);
    await ring.clock.advance(5000);
    assert.equal(ring.status("two")?.phase, "Running");
  });
});

describe("a killed pod whose volumes cannot be unmounted", () => {
  const deleted: Pod = {
    ...one,
    metadata: { ...one.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 5 },
  };
  const faults = {
    "the teardown hangs": () => new Promise<void>(() => undefined),
    "the teardown fails": () => Promise.reject(new Error("device busy")),
  };
  for (const [name, tearDown] of Object.entries(faults)) {
    test(`does not count against the node's room: ${name}`, async () => {
      const ring = new FakeRing({ app: { termMs: 3000 } });
      await ring.want(one);
      ring.tearDownVolumes = tearDown;
      await ring.want(deleted, two);
      await ring.clock.advance(2999);
      assert.equal(ring.status("two"), undefined, "it waits while the other runs");
      await ring.clock.advance(1);
      assert.equal(ring.status("two")?.phase, "Running");
      assert.equal(ring.pool.isFinished("uid-of-one"), false, "the object stays as long as its volumes");
    });
  }

  test("leaves its room to a deferred resize", async () => {
    const ring = new FakeRing();
    await ring.want(one, needs("half", "500m"));
    ring.tearDownVolumes = () => new Promise<void>(() => undefined);
    await ring.want(one, needs("half", "1"));
    const pending = (): boolean =>
      ring.status("half")?.conditions?.some(({ type }) => type === "PodResizePending") === true;
    assert.equal(pending(), true);
    await ring.want(deleted, needs("half", "1"));
    await ring.clock.advance(1000);
    assert.equal(pending(), false);
  });
});

describe("a pod that runs", () => {
  test("was admitted, and is not asked again after a restart of the agent", async () => {
    const ring = new FakeRing();
    await ring.want(one);
    const before = await ring.containers();
    ring.node = { ...ring.node, allocatable: { cpu: "1" } };
    await ring.restartAgent();
    await ring.want(one);
    assert.equal(ring.status("one")?.phase, "Running");
    assert.deepEqual(await ring.containers(), before);
  });
});

describe("a critical pod", () => {
  test("preempts another, which ends as Failed with reason Preempting", async () => {
    const ring = new FakeRing({ app: { termMs: 3000 } });
    await ring.want(one);
    await ring.want(one, asStatic(two));
    assert.equal(ring.status("two"), undefined, "it waits for the end of the other");
    assert.equal(ring.status("one")?.phase, "Running", "which is not over before it has stopped");
    await ring.clock.advance(3000);
    assert.deepEqual([ring.status("one")?.phase, ring.status("one")?.reason], ["Failed", "Preempting"]);
    const disruption = ring.status("one")?.conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual([disruption?.status, disruption?.reason], ["True", "TerminationByKubelet"]);
    assert.equal(ring.status("two")?.phase, "Running");
    assert.ok(ring.journal.events(0).some(({ reason }) => reason === "Preempting"));
    assert.deepEqual(ring.counted, ["preempted OutOfcpu"]);
  });

  test("preempts another, which has not failed if it ends well", async () => {
    const ring = new FakeRing({ app: { termMs: 3000, termCode: 0 } });
    const job = { ...one, spec: { ...one.spec, restartPolicy: "Never" } };
    await ring.want(job);
    await ring.want(job, asStatic(two));
    await ring.clock.advance(3000);
    assert.equal(ring.status("one")?.phase, "Succeeded");
    assert.equal(ring.status("two")?.phase, "Running");
  });

  const others = { "one that could be preempted": one, "none that could be preempted": asStatic(one) };
  for (const [name, other] of Object.entries(others)) {
    test(`is rejected with the reason of an allocator, beside ${name}`, async () => {
      const ring = new FakeRing();
      const cards = new FakeAllocator(["card-0", "card-1"]);
      cards.unmet = { reason: "TopologyAffinityError", message: "on no NUMA node" };
      ring.allocators = () => [cards];
      await ring.restartAgent();
      await ring.want(other);
      await ring.want(other, asStatic(two));
      await ring.clock.advance(60_000);
      assert.deepEqual([ring.status("two")?.phase, ring.status("two")?.reason], ["Failed", "TopologyAffinityError"]);
      assert.equal(ring.status("one")?.phase, "Running");
    });
  }
});

describe("a pod that completed", () => {
  const job = pod("job")
    .container("job", { resources: { requests: { cpu: "1500m" } } })
    .restart("Never")
    .build();

  test("has nothing allocated when its final phase is seen, also while its sandbox is being stopped", async () => {
    const ring = new FakeRing({ job: { exitAfterMs: 100 } });
    const released: string[] = [];
    ring.allocators = () => [
      {
        name: "test",
        allocate: () => Promise.resolve({ allocation: "one" }),
        release: (uid) => released.push(uid),
        restore: () => undefined,
      },
    ];
    await ring.restartAgent();
    await ring.want(job);
    ring.runtime.control.delay("stopSandbox", 60_000);
    await ring.clock.advance(99);
    assert.deepEqual(released, []);
    await ring.clock.advance(1);
    assert.equal(ring.status("job")?.phase, "Succeeded");
    assert.deepEqual(released, ["uid-of-job"]);
    await ring.want(job, two);
    assert.equal(ring.status("two")?.phase, "Running");
  });
});

describe("completed pods after a restart of the agent", () => {
  const job = (name: string): Pod =>
    pod(name)
      .container("job", { resources: { requests: { cpu: "2" } } })
      .restart("Never")
      .build();

  test("do not count against the node's room: static pods, whose state only the runtime knows", async () => {
    const ring = new FakeRing({ job: { exitAfterMs: 100 } });
    await ring.want(job("done"));
    await ring.clock.advance(200);
    assert.equal(ring.status("done")?.phase, "Succeeded");
    await ring.restartAgent();
    await ring.want(job("done"), two);
    await ring.clock.advance(1000);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("do not count against the node's room: API pods, whose phase the server has", async () => {
    const ring = new FakeRing({ job: { exitAfterMs: 100 } });
    ring.source = "api";
    await ring.restartAgent();
    await ring.want(job("done"));
    await ring.clock.advance(200);
    const done = { ...job("done"), status: { ...ring.status("done") } };
    assert.equal(done.status.phase, "Succeeded");
    await ring.restartAgent();
    await ring.want(done, two);
    await ring.clock.advance(1000);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("are not started again if the runtime has nothing of them any more", async () => {
    const ring = new FakeRing({ job: { exitAfterMs: 100 } });
    ring.source = "api";
    await ring.restartAgent();
    await ring.want(job("done"));
    await ring.clock.advance(200);
    const done = { ...job("done"), status: { ...ring.status("done") } };
    ring.stopAgent();
    const { signal } = new AbortController();
    for (const { id } of await ring.runtime.listSandboxes({}, { signal }))
      await ring.runtime.removeSandbox(id, { signal });
    const starts = ring.runtime.control.count("startContainer");
    await ring.restartAgent();
    await ring.want(two, done);
    await ring.clock.advance(60_000);
    assert.equal(ring.runtime.control.count("startContainer"), starts + 1);
    assert.deepEqual([ring.status("two")?.phase, ring.status("done")?.phase], ["Running", "Succeeded"]);
  });

  test("nobody is preempted for room that a completed pod left", async () => {
    const ring = new FakeRing({ job: { exitAfterMs: 100 } });
    await ring.want(job("done"));
    await ring.clock.advance(200);
    const half = needs("half", "500m");
    await ring.want(job("done"), half);
    await ring.restartAgent();
    await ring.want(job("done"), half, asStatic(two));
    await ring.clock.advance(1000);
    assert.deepEqual([ring.status("half")?.phase, ring.status("two")?.phase], ["Running", "Running"]);
  });

  test("pods that do run still count", async () => {
    const ring = new FakeRing();
    await ring.want(one);
    await ring.restartAgent();
    await ring.want(one, two);
    assert.equal(ring.status("two")?.reason, "OutOfcpu");
  });
});

describe("a pod of an earlier run that cannot be read", () => {
  /** Restarts the agent with the given pods beside one that the runtime does not answer for. */
  const restart = async (...others: readonly [Pod, ...Pod[]]): Promise<FakeRing> => {
    const odd = needs("odd", "100m");
    const ring = new FakeRing();
    const { signal } = new AbortController();
    await ring.restartAgent();
    await ring.want(odd);
    const [sandbox] = await ring.runtime.listSandboxes({}, { signal });
    await ring.want(odd, one);
    ring.stopAgent();
    const own = ring.runtime.sandboxStatus.bind(ring.runtime);
    ring.runtime.sandboxStatus = (id, options) =>
      id === sandbox?.id ? Promise.reject(new Error("no such task")) : own(id, options);
    await ring.restartAgent();
    await ring.want(odd, one, ...others);
    await ring.clock.advance(60_000);
    return ring;
  };

  test("counts as one that runs: what does not fit beside it is rejected", async () => {
    const ring = await restart(needs("new", "450m"));
    assert.deepEqual([ring.status("new")?.phase, ring.status("new")?.reason], ["Failed", "OutOfcpu"]);
  });

  test("keeps no critical pod from preempting another", async () => {
    const ring = await restart({ ...two, spec: { ...two.spec, priority: 2_000_000_000 } });
    assert.deepEqual([ring.status("one")?.reason, ring.status("two")?.phase], ["Preempting", "Running"]);
  });
});

describe("the order of admission", () => {
  test("is the order of creation, whatever the order of the list", async () => {
    const ring = new FakeRing();
    const at = (of: Pod, creationTimestamp: string): Pod => ({
      ...of,
      metadata: { ...of.metadata, creationTimestamp },
    });
    await ring.want(at(two, "2026-01-01T00:00:02Z"), at(one, "2026-01-01T00:00:01Z"));
    assert.deepEqual([ring.status("one")?.phase, ring.status("two")?.phase], ["Running", "Failed"]);
  });

  test("is that of the list for pods of the same second", async () => {
    const ring = new FakeRing();
    const at = (name: string, second: number): Pod => {
      const of = needs(name, "1");
      return { ...of, metadata: { ...of.metadata, creationTimestamp: `2026-01-01T00:00:0${second}Z` } };
    };
    await ring.want(at("late", 3), at("first", 1), at("b", 2), at("a", 2));
    const running = ["late", "first", "b", "a"].filter((name) => ring.status(name)?.phase === "Running");
    assert.deepEqual(running, ["first", "b"]);
  });
});

describe("pods of one name", () => {
  const hung = { app: { termMs: 60_000 } };
  const version = (uid: string): ReturnType<typeof pod> => pod("db-0", uid).container("app");

  test("an API pod does not wait for an earlier one of its name, as a force-deleted StatefulSet pod", async () => {
    const ring = new FakeRing(hung);
    await ring.want(version("uid-1").build());
    await ring.want(version("uid-2").build());
    assert.equal(ring.pool.status("uid-2")?.phase, "Running");
    assert.equal(ring.pool.worker("uid-1")?.life.phase, "stopping", "which still ends");
  });

  test("an API pod does not wait for one that only the runtime knows", async () => {
    const ring = new FakeRing(hung);
    await ring.want(version("uid-1").build());
    await ring.restartAgent();
    await ring.want(version("uid-2").build());
    assert.equal(ring.pool.status("uid-2")?.phase, "Running");
  });

  test("a static pod does not wait for static pods of another name or namespace", async () => {
    const ring = new FakeRing(hung);
    const other = pod("db-1", "uid-1").container("app").fromFile().build();
    const elsewhere = version("uid-2").fromFile().metadata({ namespace: "other" }).build();
    await ring.want(other, elsewhere);
    // They take long to end.
    await ring.want(version("uid-3").fromFile().build());
    assert.equal(ring.pool.status("uid-3")?.phase, "Running");
  });

  test("a static pod waits for the earlier static pod, not for an API pod of its name", async () => {
    const ring = new FakeRing(hung);
    await ring.want(version("uid-1").fromFile().build());
    await ring.want(version("uid-2").fromFile().build());
    assert.equal(ring.pool.status("uid-2"), undefined);
    await ring.clock.advance(60_000);
    assert.equal(ring.pool.status("uid-2")?.phase, "Running");
    const other = new FakeRing(hung);
    await other.want(version("uid-1").build());
    await other.want(version("uid-2").fromFile().build());
    assert.equal(other.pool.status("uid-2")?.phase, "Running");
  });
});

describe("deferred resizes", () => {
  test("of a higher priority are granted first, whoever asked first", async () => {
    const ring = new FakeRing();
    const sized = (name: string, cpu: string, priority: number): Pod =>
      pod(name)
        .container("app", { resources: { requests: { cpu } } })
        .with({ priority })
        .build();
    const pending = (name: string): string | undefined =>
      ring.status(name)?.conditions?.find(({ type }) => type === "PodResizePending")?.reason;
    const other = needs("other", "1");
    await ring.want(sized("low", "500m", 0), sized("high", "500m", 5), other);
    await ring.want(sized("low", "1500m", 0), sized("high", "500m", 5), other);
    await ring.want(sized("low", "1500m", 0), sized("high", "1500m", 5), other);
    assert.deepEqual([pending("low"), pending("high")], ["Deferred", "Deferred"]);
    await ring.want(sized("low", "1500m", 0), sized("high", "1500m", 5));
    await ring.clock.advance(60_000);
    assert.deepEqual([pending("low"), pending("high")], ["Deferred", undefined]);
  });
});
