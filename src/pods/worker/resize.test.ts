import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeAllocator } from "../../../test/support/allocator.ts";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import type { Container, Pod, ResourceRequirements } from "../../model/generated/types.ts";
import { allocationOf, changedResources, needsRestart, withAllocation } from "../admission/allocation.ts";
import { PodResize } from "./resize.ts";

const MIB = 2 ** 20;
const both = (cpu: string, memory: string): ResourceRequirements => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
});

const web = (resources: ResourceRequirements, more: Partial<Container> = {}): Pod =>
  pod("web")
    .container("app", { resources, ...more })
    .container("side", { resources: both("100m", "16Mi") })
    .build();

function conditions(ring: FakeRing, name = "web"): Record<string, string | undefined> {
  const found = ring.status(name)?.conditions ?? [];
  return Object.fromEntries(
    found.filter(({ type }) => type.startsWith("PodResize")).map(({ type, reason }) => [type, reason]),
  );
}

async function idOf(ring: FakeRing, name = "app"): Promise<string> {
  return (await ring.containers()).find((one) => one.name === name && one.state === "running")?.id ?? "";
}

describe("what changed", () => {
  const cases: [string, ResourceRequirements | undefined, ResourceRequirements | undefined, string[]][] = [
    ["nothing", both("1", "1Gi"), both("1", "1Gi"), []],
    ["only the writing", both("1", "1Gi"), both("1000m", "1024Mi"), []],
    ["cpu", both("1", "1Gi"), both("2", "1Gi"), ["cpu"]],
    ["memory, in the limit alone", { limits: { memory: "1Gi" } }, { limits: { memory: "2Gi" } }, ["memory"]],
    ["both", both("1", "1Gi"), both("2", "2Gi"), ["cpu", "memory"]],
    ["one that was not there", {}, { requests: { cpu: "1" } }, ["cpu"]],
    ["what cannot be resized", { limits: { "ephemeral-storage": "1" } }, { limits: { "ephemeral-storage": "2" } }, []],
    ["none at all", undefined, {}, []],
  ];
  for (const [name, before, after, want] of cases) {
    test(name, () => assert.deepEqual(changedResources(before, after), want));
  }

  test("a restart is needed only where the changed resource asks for one", () => {
    const of: Container = {
      name: "app",
      resizePolicy: [
        { resourceName: "cpu", restartPolicy: "NotRequired" },
        { resourceName: "memory", restartPolicy: "RestartContainer" },
      ],
    };
    assert.equal(needsRestart(of, ["cpu"]), false);
    assert.equal(needsRestart(of, ["cpu", "memory"]), true);
    assert.equal(needsRestart({ name: "app" }, ["memory"]), false);
  });

  test("a pod that has what it asks for is the same pod", () => {
    const of = web(both("1", "1Gi"));
    assert.equal(withAllocation(of, allocationOf(of)), of);
    const given = withAllocation(web(both("2", "1Gi")), allocationOf(of));
    assert.deepEqual(given.spec.containers[0]?.resources, both("1", "1Gi"));
  });
});

describe("a resize", () => {
  test("changes the limits of a running container without a restart", async () => {
    const ring = new FakeRing();
    await ring.want(web(both("500m", "64Mi")));
    const id = await idOf(ring);
    await ring.want(web(both("1", "128Mi")));
    assert.equal(await idOf(ring), id);
    const { cpuQuota, memoryLimitBytes, cpuShares } = ring.runtime.limitsOf(id) ?? {};
    assert.deepEqual([cpuQuota, memoryLimitBytes, cpuShares], [100_000, 128 * MIB, 1024]);
    const status = ring.status()?.containerStatuses?.[0];
    assert.deepEqual(status?.resources, both("1", "128Mi"));
    assert.deepEqual(status?.allocatedResources, { cpu: "1", memory: "128Mi" });
    assert.equal(status?.restartCount, 0);
    assert.deepEqual(conditions(ring), {});
    const told = ring.journal.events(0).map(({ reason }) => reason);
    assert.deepEqual(
      told.filter((reason) => reason.startsWith("Resize")),
      ["ResizeStarted", "ResizeCompleted"],
    );
    const changed = ring.runtime.control.calls.filter(({ method }) => method === "updateContainerResources");
    assert.equal(changed.length, 1, "and leaves the other container alone");
  });

  test("restarts the container that asks for it", async () => {
    const ring = new FakeRing();
    const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
    await ring.want(web(both("500m", "64Mi"), { resizePolicy }));
    const id = await idOf(ring);
    await ring.want(web(both("500m", "128Mi"), { resizePolicy }));
    await ring.clock.advance(1000);
    const now = await idOf(ring);
    assert.notEqual(now, id);
    assert.equal(ring.runtime.limitsOf(now)?.memoryLimitBytes, 128 * MIB);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 1);
  });

  test("that the node has no room for is deferred, and is done when there is", async () => {
    const ring = new FakeRing();
    const other = pod("other")
      .container("app", { resources: { requests: { cpu: "1" } } })
      .build();
    await ring.want(web(both("500m", "64Mi")), other);
    const id = await idOf(ring);
    await ring.want(web(both("1500m", "64Mi")), other);
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    assert.equal(ring.runtime.limitsOf(id)?.cpuQuota, 50_000);
    assert.equal(ring.status()?.containerStatuses?.[0]?.allocatedResources?.["cpu"], "500m");
    await ring.want(web(both("1500m", "64Mi")));
    await ring.clock.advance(60_000);
    assert.deepEqual(conditions(ring), {});
    assert.equal(ring.runtime.limitsOf(id)?.cpuQuota, 150_000);
  });

  test("beyond the capacity of the node is deferred, as in Kubernetes", async () => {
    const ring = new FakeRing();
    await ring.want(web(both("500m", "64Mi")));
    await ring.want(web(both("64", "64Mi")));
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    assert.equal(ring.status()?.phase, "Running");
    const pending = ring.status()?.conditions?.find(({ type }) => type === "PodResizePending");
    assert.equal(pending?.message, "Node didn't have enough resource: cpu, requested: 64100, used: 0, capacity: 2000");
  });

  test("records events in the format of Kubernetes, and one for each size that waits", async () => {
    const ring = new FakeRing();
    const messages = (): string[] =>
      ring.journal.events(0).flatMap(({ reason, message }) => (reason.startsWith("Resize") ? [message] : []));
    const other = pod("other")
      .container("app", { resources: { requests: { cpu: "1" } } })
      .build();
    const sized = (cpu: string): Pod => {
      const made = pod("web").container("app", { resources: { requests: { cpu } } });
      return made.init("setup", { restartPolicy: "Always" }).build();
    };
    const start = { initContainers: [{ name: "setup", resources: {} }] };
    const whole = (cpu: string) => ({ ...start, containers: [{ name: "app", resources: { requests: { cpu } } }] });
    await ring.want(sized("500m"), other);
    await ring.want(sized("1500m"), other);
    const error = "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000";
    const deferred = `Pod resize Deferred: ${JSON.stringify({ ...whole("1500m"), generation: 0, error })}`;
    assert.deepEqual(messages(), [deferred]);
    const third = pod("third")
      .container("app", { resources: { requests: { cpu: "100m" } } })
      .build();
    await ring.want(sized("1500m"), other, third);
    await ring.clock.advance(400_000);
    assert.deepEqual(messages(), [deferred], "also when the numbers are others");
    await ring.want(sized("1600m"), other);
    assert.match(messages()[1] ?? "", /^Pod resize Deferred: .*"cpu":"1600m".*requested: 1600, used: 1\d00/);
    await ring.want(sized("600m"), other);
    assert.deepEqual(messages().slice(2), [
      `Pod resize started: ${JSON.stringify({ ...whole("600m"), generation: 0 })}`,
      `Pod resize completed: ${JSON.stringify({ ...whole("600m"), generation: 0 })}`,
    ]);
  });

  test("that fits is done over a restart of the agent, although another pod asks for more than it has", async () => {
    const ring = new FakeRing();
    const greedy = (cpu: string): Pod =>
      pod("greedy")
        .container("hog", { resources: both(cpu, "16Mi") })
        .build();
    await ring.want(greedy("500m"), web(both("500m", "64Mi")));
    await ring.want(greedy("64"), web(both("500m", "64Mi")));
    assert.deepEqual(conditions(ring, "greedy"), { PodResizePending: "Deferred" });
    await ring.restartAgent();
    // What the greedy pod was allocated is read last.
    const read = ring.files.readTail.bind(ring.files);
    ring.files.readTail = async (path, ...rest) => {
      if (path.includes("greedy")) await ring.clock.sleep(20, new AbortController());
      return read(path, ...rest);
    };
    await ring.want(greedy("64"), web(both("1", "64Mi")));
    await ring.clock.advance(1000);
    assert.deepEqual(conditions(ring), {});
    assert.equal(ring.runtime.limitsOf(await idOf(ring))?.cpuQuota, 100_000);
  });

  test("of a critical pod preempts another, and is done when that has ended", async () => {
    const ring = new FakeRing({ app: { termMs: 3000 } });
    const critical = (resources: ResourceRequirements): Pod => {
      const made = web(resources);
      return { ...made, spec: { ...made.spec, priority: 2_000_000_000 } };
    };
    const other = pod("other")
      .container("app", { resources: { requests: { cpu: "1" } } })
      .build();
    await ring.want(critical(both("500m", "64Mi")), other);
    const id = await idOf(ring);
    await ring.want(critical(both("1500m", "64Mi")), other);
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    await ring.clock.advance(60_000);
    assert.deepEqual([ring.status("other")?.phase, ring.status("other")?.reason], ["Failed", "Preempting"]);
    assert.deepEqual(conditions(ring), {});
    assert.equal(ring.runtime.limitsOf(id)?.cpuQuota, 150_000);
  });

  test("below what the container uses is rejected, and retried", async () => {
    const ring = new FakeRing();
    ring.memoryUsage = 100 * MIB;
    await ring.want(web(both("500m", "128Mi")));
    await ring.want(web(both("500m", "64Mi")));
    assert.deepEqual(conditions(ring), { PodResizeInProgress: "Error" });
    assert.deepEqual(ring.status()?.containerStatuses?.[0]?.resources, both("500m", "128Mi"));
    const event = ring.journal.events(0).find(({ reason }) => reason === "ResizeError");
    assert.match(
      event?.message ?? "",
      /^Pod resize error: .*"error":"cannot decrease memory limits: attempting to set container \\"app\\" memory limit \(\d+\) below current usage \(\d+\)"}$/,
    );
    ring.memoryUsage = 10 * MIB;
    await ring.clock.advance(10_000);
    assert.deepEqual(conditions(ring), {});
    assert.equal(ring.runtime.limitsOf(await idOf(ring))?.memoryLimitBytes, 64 * MIB);
  });

  test("that the runtime rejects is reported and retried", async () => {
    const ring = new FakeRing();
    await ring.want(web(both("500m", "64Mi")));
    ring.runtime.control.fail("updateContainerResources", new RuntimeError("Unknown", "no"));
    await ring.want(web(both("1", "64Mi")));
    assert.deepEqual(conditions(ring), { PodResizeInProgress: "Error" });
    await ring.clock.advance(10_000);
    assert.deepEqual(conditions(ring), {});
  });

  test("survives a restart of the agent, which does nothing twice and finishes what was requested meanwhile", async () => {
    const ring = new FakeRing();
    await ring.want(web(both("500m", "64Mi")));
    await ring.want(web(both("1", "64Mi")));
    const id = await idOf(ring);
    const updates = (): number =>
      ring.runtime.control.calls.filter(({ method }) => method === "updateContainerResources").length;
    assert.equal(updates(), 1);
    await ring.restartAgent();
    await ring.want(web(both("1", "64Mi")));
    assert.equal(updates(), 1);
    assert.deepEqual(ring.status()?.containerStatuses?.[0]?.resources, both("1", "64Mi"));
    await ring.restartAgent();
    await ring.want(web(both("1", "96Mi")));
    assert.equal(updates(), 2);
    assert.equal(await idOf(ring), id);
    assert.equal(ring.runtime.limitsOf(id)?.memoryLimitBytes, 96 * MIB);
  });

  test("of a container that is not there yet stays deferred over a restart of the agent", async () => {
    const ring = new FakeRing();
    const made = (cpu: string): Pod =>
      pod("web")
        .init("setup")
        .container("app", { resources: both(cpu, "64Mi") })
        .build();
    await ring.want(made("500m"));
    await ring.want(made("64"));
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    await ring.restartAgent();
    await ring.want(made("64"));
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    assert.equal(ring.status()?.containerStatuses?.[0]?.allocatedResources?.["cpu"], "500m");
  });

  test("that was granted after a while stays granted over a restart of the agent, also on a full node", async () => {
    const ring = new FakeRing();
    const made = (cpu: string): Pod =>
      pod("web")
        .init("setup")
        .container("app", { resources: both(cpu, "64Mi") })
        .build();
    const other = (name: string): Pod =>
      pod(name)
        .container("app", { resources: { requests: { cpu: "1" } } })
        .build();
    await ring.want(made("500m"), other("first"));
    await ring.want(made("1500m"), other("first"));
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    await ring.want(made("1500m"));
    await ring.clock.advance(60_000);
    assert.deepEqual(conditions(ring), {});
    await ring.restartAgent();
    await ring.want(made("1500m"), other("second"));
    await ring.clock.advance(1000);
    assert.deepEqual([conditions(ring), ring.status("second")?.reason], [{}, "OutOfcpu"]);
    assert.equal(ring.status()?.containerStatuses?.[0]?.allocatedResources?.["cpu"], "1500m");
  });

  for (const restart of [false, true]) {
    const name = restart ? ", also after a restart of the agent" : "";
    test(`whose answer is lost is applied again when the pod goes back to what it had${name}`, async () => {
      const ring = new FakeRing();
      const before = web(both("500m", "64Mi"), {
        resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }],
      });
      await ring.want(before);
      const id = await idOf(ring);
      ring.runtime.control.failAfterwards("updateContainerResources", new RuntimeError("Unavailable", "gone"));
      await ring.want(web(both("1", "64Mi"), { resizePolicy: before.spec.containers[0]?.resizePolicy ?? [] }));
      assert.equal(ring.runtime.limitsOf(id)?.cpuQuota, 100_000);
      if (restart) await ring.restartAgent();
      await ring.want(before);
      await ring.clock.advance(10_000);
      assert.equal(ring.runtime.limitsOf(id)?.cpuQuota, 50_000);
      assert.equal(await idOf(ring), id, "not restarted");
      assert.deepEqual(conditions(ring), {});
    });
  }

  const early: Readonly<Record<string, (ring: FakeRing) => FakeAllocator | undefined>> = {
    "while an allocator is asked": (ring) => {
      const cards = new FakeAllocator(["card-0", "card-1"]);
      [cards.clock, cards.takesMs, cards.slow] = [ring.clock, 5000, "web"];
      ring.allocators = () => [cards];
      return cards;
    },
    "before the first sync": () => undefined,
  };
  for (const [when, prepare] of Object.entries(early)) {
    test(`${when} is deferred if only what was admitted has room`, async () => {
      const ring = new FakeRing();
      const cards = prepare(ring);
      await ring.restartAgent();
      ring.publish(web(both("1", "1Gi")));
      if (cards !== undefined) await ring.clock.advance(1000);
      ring.publish(web(both("64", "500Gi")));
      await ring.want(web(both("64", "500Gi")));
      await ring.clock.advance(10_000);
      assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
      assert.deepEqual(ring.status()?.containerStatuses?.[0]?.allocatedResources, { cpu: "1", memory: "1Gi" });
      await ring.want(
        web(both("64", "500Gi")),
        pod("other")
          .container("app", { resources: both("500m", "1Gi") })
          .build(),
      );
      await ring.clock.advance(1000);
      assert.equal(ring.status("other")?.phase, "Running");
    });
  }

  test("holds for a container that is restarted later", async () => {
    const ring = new FakeRing();
    await ring.want(web(both("500m", "64Mi")));
    await ring.want(web(both("1", "64Mi")));
    ring.runtime.exit(await idOf(ring), 1);
    await ring.clock.advance(0);
    assert.equal(ring.runtime.configOf(await idOf(ring))?.linux.resources.cpuQuota, 100_000);
  });
});

describe("a resize of the whole pod", () => {
  /** One container with limits of its own, one with those of the pod. */
  const whole = (resources: ResourceRequirements, more: Partial<Container> = {}): Pod =>
    pod("web")
      .container("app", { ...more })
      .container("side", { resources: both("100m", "16Mi") })
      .with({ resources })
      .build();
  const sandboxOf = async (ring: FakeRing): Promise<string> => {
    const [sandbox] = await ring.runtime.listSandboxes({}, { signal: new AbortController().signal });
    return sandbox?.id ?? "";
  };
  const updates = (ring: FakeRing): string[] =>
    ring.runtime.control.calls.filter(({ method }) => method.startsWith("update")).map(({ method }) => method);

  test("reaches the container that has the pod's limit, the runtime and the status, without a restart", async () => {
    const ring = new FakeRing();
    await ring.want(whole(both("500m", "64Mi")));
    const [app, side] = [await idOf(ring), await idOf(ring, "side")];
    assert.deepEqual(ring.status()?.resources, both("500m", "64Mi"));
    await ring.want(whole(both("1", "128Mi")));
    assert.deepEqual([await idOf(ring), await idOf(ring, "side")], [app, side]);
    assert.equal(ring.runtime.limitsOf(app)?.memoryLimitBytes, 128 * MIB);
    assert.equal(ring.runtime.limitsOf(side)?.memoryLimitBytes, 16 * MIB);
    const { cpuQuota, memoryLimitBytes } = ring.runtime.limitsOf(await sandboxOf(ring)) ?? {};
    assert.deepEqual([cpuQuota, memoryLimitBytes], [100_000, 128 * MIB]);
    assert.deepEqual(updates(ring), ["updateContainerResources", "updateSandboxResources"]);
    assert.deepEqual(ring.status()?.resources, both("1", "128Mi"));
    assert.deepEqual(ring.status()?.allocatedResources, { cpu: "1", memory: "128Mi" });
    assert.deepEqual(conditions(ring), {});
    const told = ring.journal.events(0).map(({ reason }) => reason);
    assert.deepEqual(
      told.filter((reason) => reason.startsWith("Resize")),
      ["ResizeStarted", "ResizeCompleted"],
    );
  });

  test("of cpu alone reaches the container that has the pod's limit, and no other", async () => {
    const ring = new FakeRing();
    await ring.want(whole(both("500m", "64Mi")));
    assert.equal(ring.runtime.configOf(await idOf(ring))?.linux.resources.cpuQuota, 50_000);
    await ring.want(whole(both("1", "64Mi")));
    assert.deepEqual(updates(ring), ["updateContainerResources", "updateSandboxResources"]);
    assert.equal(ring.runtime.limitsOf(await idOf(ring))?.cpuQuota, 100_000);
  });

  test("restarts a container that asks for that when its memory changes", async () => {
    const ring = new FakeRing();
    const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
    await ring.want(whole(both("500m", "64Mi"), { resizePolicy }));
    const app = await idOf(ring);
    await ring.want(whole(both("500m", "128Mi"), { resizePolicy }));
    await ring.clock.advance(60_000);
    assert.notEqual(await idOf(ring), app);
    assert.equal(ring.runtime.limitsOf(await idOf(ring))?.memoryLimitBytes, 128 * MIB);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 1);
    assert.deepEqual(conditions(ring), {});
  });

  test("that the node has no room for is deferred and changes nothing", async () => {
    const ring = new FakeRing();
    const other = pod("other")
      .container("app", { resources: { requests: { cpu: "1" } } })
      .build();
    await ring.want(whole(both("500m", "64Mi")), other);
    await ring.want(whole(both("1500m", "64Mi")), other);
    assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
    assert.deepEqual(ring.status()?.resources, both("500m", "64Mi"));
    await ring.want(whole(both("1500m", "64Mi")));
    await ring.clock.advance(60_000);
    assert.deepEqual([conditions(ring), ring.status()?.resources], [{}, both("1500m", "64Mi")]);
  });

  test("below what its containers use together is rejected, and retried", async () => {
    const ring = new FakeRing();
    await ring.want(whole(both("500m", "128Mi")));
    ring.memoryUsage = 40 * MIB;
    await ring.want(whole(both("500m", "64Mi")));
    assert.deepEqual(conditions(ring), { PodResizeInProgress: "Error" });
    assert.deepEqual(ring.status()?.resources, both("500m", "128Mi"));
    assert.deepEqual(ring.status()?.allocatedResources, { cpu: "500m", memory: "64Mi" });
    const event = ring.journal.events(0).find(({ reason }) => reason === "ResizeError");
    assert.match(
      event?.message ?? "",
      /: attempting to set pod memory limit \(67108864\) below current usage \(83886080\)"}$/,
    );
    ring.memoryUsage = 10 * MIB;
    await ring.clock.advance(10_000);
    assert.deepEqual([conditions(ring), ring.status()?.resources], [{}, both("500m", "64Mi")]);
  });

  const times = [
    { when: "before a restart of the agent", before: true, after: false },
    { when: "while no agent runs", before: false, after: false },
    { when: "after a restart of the agent", before: false, after: true },
  ];
  for (const { when, before, after } of times) {
    test(`that the node has no room for, asked for ${when}, is deferred`, async () => {
      const ring = new FakeRing();
      await ring.want(whole(both("500m", "64Mi")));
      if (before) await ring.want(whole(both("64", "64Mi")));
      await ring.restartAgent();
      if (after) await ring.want(whole(both("500m", "64Mi")));
      await ring.want(whole(both("64", "64Mi")));
      assert.deepEqual(conditions(ring), { PodResizePending: "Deferred" });
      assert.deepEqual(ring.status()?.resources, both("500m", "64Mi"));
    });
  }

  for (const restart of [false, true]) {
    const name = restart ? ", also after a restart of the agent" : "";
    test(`whose answer is lost is applied again when the pod goes back to what it had${name}`, async () => {
      const ring = new FakeRing();
      await ring.want(whole(both("500m", "64Mi")));
      ring.runtime.control.failAfterwards("updateSandboxResources", new RuntimeError("Unavailable", "gone"));
      await ring.want(whole(both("1", "64Mi")));
      const sandbox = await sandboxOf(ring);
      assert.equal(ring.runtime.limitsOf(sandbox)?.cpuQuota, 100_000);
      if (restart) await ring.restartAgent();
      await ring.want(whole(both("500m", "64Mi")));
      await ring.clock.advance(10_000);
      assert.equal(ring.runtime.limitsOf(sandbox)?.cpuQuota, 50_000);
      assert.deepEqual(conditions(ring), {});
    });
  }

  test("survives a restart of the agent, which does nothing twice", async () => {
    const ring = new FakeRing();
    await ring.want(whole(both("500m", "64Mi")));
    await ring.want(whole(both("1", "128Mi")));
    const before = updates(ring).length;
    await ring.restartAgent();
    await ring.want(whole(both("1", "128Mi")));
    assert.equal(updates(ring).length, before);
    await ring.want(whole(both("1", "96Mi")));
    assert.equal(ring.runtime.limitsOf(await idOf(ring))?.memoryLimitBytes, 96 * MIB);
  });
});

describe("the record of a pod's resources", () => {
  test("is saved once at a time, and the newest is the last", async () => {
    const saves: { text: string; end(error?: Error): void }[] = [];
    const warnings: string[] = [];
    const resize = new PodResize({
      log: { warn: (message) => void warnings.push(message) },
      load: () => Promise.resolve(""),
      save: (text) =>
        new Promise((resolve, reject) => {
          saves.push({ text, end: (error) => (error === undefined ? resolve() : reject(error)) });
        }),
      verdict: () => undefined,
      event: () => undefined,
    });
    resize.done("c1", both("1", "1Gi"));
    resize.done("c1", both("2", "1Gi"));
    resize.done("c1", both("3", "1Gi"));
    assert.equal(saves.length, 1);
    saves[0]?.end(new Error("no space left on device"));
    await new Promise(setImmediate);
    assert.equal(saves.length, 2, "the one between is left out");
    assert.match(saves[1]?.text ?? "", /"cpu":"3"/);
    saves[1]?.end();
    await new Promise(setImmediate);
    resize.done("c1", both("4", "1Gi"));
    assert.equal(saves.length, 3);
    assert.deepEqual(warnings, ["Failed to persist allocated resources of pod"]);
  });

  for (const damaged of [
    `{"version":1,"allocated":{"app":{"requests":{"cpu":"one"}}}}`,
    `{"version":1,"allocated":{"app":{"requests":{"cpu":1}}}}`,
    `{"version":1,"allocated":{"app":7}}`,
    `{"version":1,"actual":{"":{"limits":"none"}}}`,
    `{"version":1,"allocated":`,
  ]) {
    test(`that is damaged is ignored, and fails neither its pod nor the admission of others: ${damaged}`, async () => {
      const web = pod("web")
        .container("app", { resources: { requests: { cpu: "500m" } } })
        .build();
      const ring = new FakeRing();
      await ring.want(web);
      ring.files.entries.set("/root/pods/uid-of-web/resize.json", damaged);
      await ring.restartAgent();
      await ring.want(web);
      await ring.want(web, pod("new").container("app").build());
      assert.deepEqual([ring.status()?.phase, ring.status("new")?.phase], ["Running", "Running"]);
    });
  }

  test("is replaced atomically", async () => {
    const ring = new FakeRing();
    const replaced: string[] = [];
    const replaceFile = ring.files.replaceFile.bind(ring.files);
    ring.files.replaceFile = (path, text) => {
      replaced.push(path);
      return replaceFile(path, text);
    };
    await ring.want(web(both("500m", "64Mi")));
    await ring.want(web(both("1", "128Mi")));
    assert.ok(replaced.includes("/root/pods/uid-of-web/resize.json"));
  });
});
