import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeAllocator } from "../../../test/support/allocator.ts";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { FakeProgram } from "../../adapters/runtime/fake-program.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { Rejection } from "../../model/rejection.ts";
import type { ReadmissionAnswer } from "../admission/allocations.ts";
import { RejectionError } from "../admission/rejection-error.ts";
import type { EndedStep } from "../journal.ts";

const UID = "uid-of-web";
const WAITS: ReadmissionAnswer = { waits: "for a plugin" };
const GONE: ReadmissionAnswer = { rejection: { reason: "UnexpectedAdmissionError", message: "no plugin" } };
const { signal } = new AbortController();

/** A pod that has a card, and an agent that starts anew after `meanwhile`. The next allocator answers with `again`. */
async function restarted(
  web: Pod,
  programs: Readonly<Record<string, FakeProgram>>,
  {
    again,
    meanwhile,
    ranMs = 0,
    lack,
    fault,
    onAdopt,
    adoptsMs = 0,
  }: {
    again: ReadmissionAnswer;
    meanwhile?: (ring: FakeRing) => Promise<void>;
    ranMs?: number;
    lack?: Rejection;
    fault?: Error;
    onAdopt?: () => void;
    adoptsMs?: number;
  },
): Promise<{ ring: FakeRing; cards: () => FakeAllocator; counted: () => number }> {
  const ring = new FakeRing(programs);
  let cards = new FakeAllocator([]);
  ring.allocators = () => {
    cards = new FakeAllocator(["card-0"]);
    cards.again = again;
    cards.lack = lack;
    cards.onAdopt = onAdopt;
    Object.assign(cards, { clock: ring.clock, adoptsMs });
    return [cards];
  };
  await ring.restartAgent();
  await ring.want(web);
  await ring.clock.advance(ranMs);
  ring.stopAgent();
  await meanwhile?.(ring);
  await ring.restartAgent();
  cards.fault = fault;
  let rejections = 0;
  const count = ({ step, error }: EndedStep): void => {
    if (step === "admitted" && error instanceof RejectionError) rejections++;
  };
  ring.journal.onStep(count, new AbortController());
  await ring.want(web);
  return { ring, cards: () => cards, counted: () => rejections };
}

/** Ends sandboxes and containers, and leaves them in the runtime as containerd does. */
async function losePower(ring: FakeRing): Promise<void> {
  for (const { id } of await ring.runtime.listSandboxes({}, { signal })) await ring.runtime.stopSandbox(id, { signal });
  ring.bootId = "another boot";
}

/** Ends sandboxes and containers, and removes them as CRI-O does. */
async function forget(ring: FakeRing): Promise<void> {
  await losePower(ring);
  for (const { id } of await ring.runtime.listSandboxes({}, { signal }))
    await ring.runtime.removeSandbox(id, { signal });
}

const running = async (ring: FakeRing): Promise<readonly string[]> =>
  (await ring.containers()).filter(({ state }) => state === "running").map(({ name }) => name);
const outcome = (ring: FakeRing): readonly unknown[] => {
  const { phase, reason, message } = ring.status() ?? {};
  return [phase, reason, message];
};
const REJECTED = ["Failed", "UnexpectedAdmissionError", "Pod was rejected: no plugin"];

describe("a pod of which nothing ran when the agent started", () => {
  const web = pod("web").container("app").build();

  for (const [runtime, meanwhile] of Object.entries({ containerd: losePower, "CRI-O": forget })) {
    test(`is rejected if what it was allocated is not there, and has it no more: ${runtime}`, async () => {
      const { ring, cards, counted } = await restarted(web, { app: {} }, { again: GONE, meanwhile });
      await ring.clock.advance(1000);
      assert.deepEqual(outcome(ring), REJECTED);
      assert.deepEqual(await running(ring), []);
      assert.deepEqual([...cards().given], []);
      const events = ring.journal.events(0).filter(({ reason }) => reason === "UnexpectedAdmissionError");
      assert.deepEqual(
        events.map(({ type, message }) => [type, message]),
        [["Warning", "no plugin"]],
      );
      assert.equal(counted(), 1);
    });

    test(`waits for what may come back, and starts then: ${runtime}`, async () => {
      const { ring, cards } = await restarted(web, { app: {} }, { again: WAITS, meanwhile });
      await ring.clock.advance(20_000);
      assert.deepEqual(await running(ring), []);
      const sandboxes = await ring.runtime.listSandboxes({}, { signal });
      assert.ok(!sandboxes.some(({ state }) => state === "ready"), "no sandbox is made before");
      assert.notEqual(ring.status()?.phase, "Failed");
      for (let wake = 0; wake < 3; wake++) {
        ring.pool.wake(UID);
        await ring.clock.advance(1000);
      }
      const said = ring.journal.of({ uid: UID, name: "web", namespace: "default" }).history;
      assert.equal(said.filter(({ detail }) => detail === "for a plugin").length, 1);
      cards().again = undefined;
      ring.pool.wake(UID);
      await ring.clock.advance(1000);
      assert.deepEqual(await running(ring), ["app"]);
      assert.deepEqual([...cards().given], [[UID, "card-0"]]);
    });

    test(`is rejected when the wait is over: ${runtime}`, async () => {
      const { ring, cards } = await restarted(web, { app: {} }, { again: WAITS, meanwhile });
      await ring.clock.advance(20_000);
      cards().again = GONE;
      ring.pool.wake(UID);
      await ring.clock.advance(1000);
      assert.deepEqual(outcome(ring), REJECTED);
    });
  }

  describe("and that waits without a worker, as with CRI-O", () => {
    test("has nothing any more when it is removed", async () => {
      const { ring, cards } = await restarted(web, { app: {} }, { again: WAITS, meanwhile: forget });
      assert.deepEqual([...cards().given.keys()], [UID]);
      await ring.want();
      assert.deepEqual([...cards().given.keys()], []);
      cards().again = undefined;
      await ring.want(pod("new").container("app").build());
      await ring.clock.advance(1000);
      assert.equal(ring.status("new")?.phase, "Running");
    });

    for (const [outcome, again] of Object.entries({ waits: WAITS, "was rejected": GONE })) {
      test(`leaves nothing of before the reboot behind when it is removed, if it ${outcome}`, async () => {
        const own = (ring: FakeRing): readonly string[] =>
          [...ring.files.entries.keys()].filter((path) => path.startsWith(`/root/pods/${UID}/`));
        const unprepared: string[] = [];
        const meanwhile = async (ring: FakeRing): Promise<void> => {
          await forget(ring);
          ring.files.entries.set(`/root/pods/${UID}/volumes/data`, "");
          ring.claims = {
            prepare: () => Promise.resolve(),
            unprepare: (uid) => Promise.resolve(void unprepared.push(uid)),
            holds: () => false,
          };
        };
        const { ring } = await restarted(web, { app: {} }, { again, meanwhile });
        await ring.clock.advance(1000);
        assert.deepEqual([ring.pool.worker(UID), ring.tornDown], [undefined, []]);
        await ring.want();
        await ring.clock.advance(1000);
        assert.deepEqual([own(ring), ring.tornDown, unprepared, ring.pool.uids()], [[], [UID], [UID], []]);
      });
    }

    test("starts anew if it comes back under its UID", async () => {
      const { ring, cards } = await restarted(web, { app: {} }, { again: WAITS, meanwhile: forget });
      ring.publish();
      cards().again = undefined;
      await ring.want(web);
      await ring.clock.advance(1000);
      assert.deepEqual([await running(ring), ring.tornDown, ring.status()?.phase], [["app"], [UID], "Running"]);
    });

    const large = (name: string): Pod => {
      const limits = { cpu: "2", memory: "1Gi" };
      return pod(name)
        .container("app", { resources: { limits, requests: limits } })
        .build();
    };

    test("leaves its room on the node when it is removed", async () => {
      const { ring } = await restarted(large("web"), { app: {} }, { again: WAITS, meanwhile: forget });
      await ring.want();
      await ring.want(large("new"));
      await ring.clock.advance(1000);
      assert.equal(ring.status("new")?.phase, "Running");
    });

    for (const [outcome, phases] of Object.entries({
      returns: ["Running", "Failed"],
      "is rejected": ["Failed", "Running"],
    })) {
      test(`keeps its room on the node until it ${outcome}`, async () => {
        const { ring, cards } = await restarted(large("web"), { app: {} }, { again: WAITS, meanwhile: forget });
        await ring.want(large("web"), large("new"));
        await ring.clock.advance(5000);
        assert.deepEqual([ring.status()?.phase, ring.status("new")?.phase], [undefined, undefined]);
        cards().again = outcome === "returns" ? undefined : GONE;
        ring.pool.wake(UID);
        await ring.clock.advance(5000);
        assert.deepEqual([ring.status()?.phase, ring.status("new")?.phase], phases);
      });
    }
  });

  test("stays rejected with the next agent, and is asked again after the next boot", async () => {
    const { ring } = await restarted(web, { app: {} }, { again: GONE, meanwhile: losePower });
    await ring.clock.advance(1000);
    assert.deepEqual(outcome(ring), REJECTED);
    ring.allocators = () => [new FakeAllocator(["card-0"])];
    await ring.restartAgent();
    await ring.want(web);
    await ring.clock.advance(1000);
    assert.deepEqual(outcome(ring), REJECTED);
    ring.stopAgent();
    ring.bootId = "the boot after that";
    await ring.restartAgent();
    await ring.want(web);
    await ring.clock.advance(1000);
    assert.deepEqual(await running(ring), ["app"]);
  });

  test("only waits if its container is in back-off, and is not asked again after its next start", async () => {
    const crashes = { app: { exitAfterMs: 1000, exitCode: 1 } };
    const { ring, cards } = await restarted(web, crashes, { again: WAITS, ranMs: 14_500 });
    const restarts = (): number => ring.status()?.containerStatuses?.[0]?.restartCount ?? 0;
    const before = restarts();
    assert.ok(before > 0);
    await ring.clock.advance(29_000);
    assert.deepEqual([ring.status()?.phase, restarts()], ["Running", before]);
    cards().again = undefined;
    ring.pool.wake(UID);
    await ring.clock.advance(20_000);
    assert.equal(restarts(), before + 1);
    cards().again = GONE;
    await ring.clock.advance(300_000);
    assert.equal(ring.status()?.phase, "Running");
    assert.ok(restarts() > before + 1, "a container that ends later starts with what it had");
  });

  test("is not asked again once its plugin was back, also if its container starts later", async () => {
    const crashes = { app: { exitAfterMs: 1000, exitCode: 1 } };
    const { ring, cards } = await restarted(web, crashes, { again: WAITS, ranMs: 14_500 });
    const restarts = (): number => ring.status()?.containerStatuses?.[0]?.restartCount ?? 0;
    const before = restarts();
    cards().again = undefined;
    ring.pool.wake(UID);
    await ring.clock.advance(1000);
    assert.equal(restarts(), before, "it is in back-off");
    cards().again = GONE;
    ring.pool.wake(UID);
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Running");
    assert.ok(restarts() > before);
  });

  test("is not rejected before its back-off is over: its plugin may come back until then", async () => {
    const crashes = { app: { exitAfterMs: 1000, exitCode: 1 } };
    const { ring, cards } = await restarted(web, crashes, { again: GONE, ranMs: 14_500 });
    const before = ring.status()?.containerStatuses?.[0]?.restartCount ?? 0;
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Running");
    cards().again = undefined;
    await ring.clock.advance(30_000);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, before + 1);
  });

  test("is not rejected if it has completed", async () => {
    const job = pod("web").restart("Never").container("app").build();
    const meanwhile = (ring: FakeRing): Promise<void> => ring.clock.advance(1000);
    const { ring } = await restarted(job, { app: { exitAfterMs: 500 } }, { again: GONE, meanwhile });
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Succeeded");
  });
});

test("a readmission that fails unexpectedly is tried again, and keeps no other pod waiting", async () => {
  const web = pod("web").container("app").build();
  const { ring, cards } = await restarted(web, { app: {} }, { again: WAITS, meanwhile: forget });
  let failures = 2;
  cards().readmit = ({ metadata }) => {
    if (metadata.name === "web" && failures-- > 0) throw new Error("a mistake of the allocator");
    return undefined;
  };
  await ring.want(web, pod("other").container("app").build());
  assert.equal(ring.status("other")?.reason, "NoCard", "it was decided: the only card is the pod's");
  await ring.clock.advance(10_000);
  assert.equal(failures, -1);
  assert.equal(ring.status()?.phase, "Running");
});

describe("a pod of which something ran when the agent started", () => {
  test("is not asked: it runs on, and a container of it that had ended starts again", async () => {
    const web = pod("web").container("app").container("flaky").build();
    const meanwhile = (ring: FakeRing): Promise<void> => ring.clock.advance(1000);
    const flaky = { exitAfterMs: 1000, exitCode: 1 };
    const { ring } = await restarted(web, { app: {}, flaky }, { again: GONE, meanwhile });
    await ring.clock.advance(30_000);
    const [app, other] = ring.status()?.containerStatuses ?? [];
    assert.deepEqual([app?.restartCount, ring.status()?.phase], [0, "Running"]);
    assert.ok((other?.restartCount ?? 0) > 0);
  });
});

describe("what an earlier agent did not allocate", () => {
  const web = pod("web").container("app").build();
  const lack = { reason: "NoCard", message: "no card is free" };

  test("is asked for once, for a pod that runs", async () => {
    const { ring, cards } = await restarted(web, { app: {} }, { again: undefined });
    ring.pool.wake(UID);
    await ring.clock.advance(60_000);
    assert.deepEqual(cards().adopted, ["web"]);
    assert.deepEqual(
      ring.journal.events(0).filter(({ type }) => type === "Warning"),
      [],
    );
  });

  describe("and takes a while", () => {
    const two = pod("web").container("app").container("flaky").build();
    const flaky = { exitAfterMs: 1000, exitCode: 1 };
    const meanwhile = (ring: FakeRing): Promise<void> => ring.clock.advance(1000);
    const slow = { again: undefined, meanwhile, adoptsMs: 5000 };

    test("is there before a container that has ended starts again", async () => {
      const { ring } = await restarted(two, { app: {}, flaky }, slow);
      await ring.clock.advance(4999);
      assert.deepEqual(await running(ring), ["app"]);
      await ring.clock.advance(1);
      assert.deepEqual(await running(ring), ["app", "flaky"]);
    });

    test("starts nothing of a pod that was deleted meanwhile", async () => {
      const { ring } = await restarted(two, { app: {}, flaky }, slow);
      const starts = ring.runtime.control.count("startContainer");
      await ring.want();
      await ring.clock.advance(60_000);
      assert.equal(ring.runtime.control.count("startContainer"), starts);
      assert.deepEqual(await ring.containers(), []);
    });
  });

  test("is not asked for a pod that this agent admitted", async () => {
    const ring = new FakeRing({ app: {} });
    const cards = new FakeAllocator(["card-0"]);
    ring.allocators = () => [cards];
    await ring.restartAgent();
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.deepEqual([cards.asked, cards.adopted], [["web"], []]);
  });

  test("and cannot be had leaves the pod running, and is told by an event", async () => {
    const { ring } = await restarted(web, { app: {} }, { again: undefined, lack });
    await ring.clock.advance(60_000);
    assert.deepEqual([ring.status()?.phase, ring.status()?.containerStatuses?.[0]?.restartCount], ["Running", 0]);
    const warnings = ring.journal.events(0).filter(({ type }) => type === "Warning");
    assert.deepEqual(
      warnings.map(({ reason, message }) => [reason, message]),
      [["NoCard", "Running on without resources of its own: no card is free"]],
    );
  });

  test("and cannot be had rejects a pod of which nothing runs when it is to start", async () => {
    const meanwhile = losePower;
    const { ring } = await restarted(web, { app: {} }, { again: undefined, meanwhile, lack });
    await ring.clock.advance(60_000);
    assert.deepEqual(outcome(ring), ["Failed", "NoCard", "Pod was rejected: no card is free"]);
    const warnings = ring.journal.events(0).filter(({ type }) => type === "Warning");
    assert.deepEqual(
      warnings.map(({ reason, message }) => [reason, message]),
      [["NoCard", "no card is free"]],
    );
  });

  test("is tried again before a pod of which nothing runs is started, if the disk was full", async () => {
    const fault = new Error("disk full");
    const { ring, cards } = await restarted(web, { app: {} }, { again: undefined, meanwhile: losePower, fault });
    await ring.clock.advance(5000);
    assert.deepEqual(await running(ring), []);
    cards().fault = undefined;
    await ring.clock.advance(60_000);
    assert.deepEqual([await running(ring), ring.status()?.phase], [["app"], "Running"]);
  });

  test("is asked for again at the next sync if the disk was full", async () => {
    const { ring, cards } = await restarted(web, { app: {} }, { again: undefined, fault: new Error("disk full") });
    ring.pool.wake(UID);
    await ring.clock.advance(1000);
    const warnings = (): readonly string[] =>
      ring.journal.events(0).flatMap(({ type, message }) => (type === "Warning" ? [message] : []));
    assert.deepEqual(
      [warnings(), ring.status()?.phase],
      [["Running on without resources of its own: disk full"], "Running"],
    );
    cards().fault = undefined;
    const limited: string[] = [];
    ring.ensureCgroup = ({ metadata }) => Promise.resolve(void limited.push(metadata.name ?? ""));
    for (const _ of [1, 2]) {
      ring.pool.wake(UID);
      await ring.clock.advance(1000);
    }
    assert.deepEqual([cards().adopted, limited], [["web", "web", "web"], ["web"]]);
    assert.equal(warnings().length, 1);
  });

  test("is there before the limits of the pod are set: with CPUs of its own it has no CPU quota", async () => {
    const order: string[] = [];
    const { ring } = await restarted(web, { app: {} }, { again: undefined, onAdopt: () => order.push("adopted") });
    assert.deepEqual(order, ["adopted"]);
    ring.stopAgent();
    ring.ensureCgroup = () => Promise.resolve(void order.push("limited"));
    await ring.restartAgent();
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.deepEqual(order, ["adopted", "adopted", "limited"]);
  });

  test("comes before what new pods ask for, also of those that were created earlier", async () => {
    const ring = new FakeRing({ app: {} });
    let cards = new FakeAllocator([]);
    ring.allocators = () => {
      const before = cards.given.keys();
      cards = new FakeAllocator(["card-0", "card-1"]);
      for (const _ of before) cards.lacking.add("web");
      return [cards];
    };
    const at = (of: Pod, creationTimestamp: string): Pod => ({
      ...of,
      metadata: { ...of.metadata, creationTimestamp },
    });
    const [old, young] = [
      at(web, "2026-01-02T00:00:00Z"),
      at(pod("new").container("app").build(), "2026-01-01T00:00:00Z"),
    ];
    await ring.restartAgent();
    await ring.want(old);
    await ring.restartAgent();
    let whenAdopted: readonly string[] | undefined;
    cards.onAdopt = () => {
      whenAdopted = [...cards.asked];
    };
    await ring.want(young, old);
    await ring.clock.advance(1000);
    assert.deepEqual([whenAdopted, cards.asked], [[], ["new"]]);
    assert.equal(ring.status("new")?.phase, "Running");
  });

  test("comes before what new pods ask for also after errors that pass", async () => {
    const meanwhile = async (ring: FakeRing): Promise<void> => {
      const [sandbox] = await ring.runtime.listSandboxes({}, { signal });
      const own = ring.runtime.sandboxStatus.bind(ring.runtime);
      let failures = 2;
      ring.runtime.sandboxStatus = (id, options) =>
        id === sandbox?.id && failures-- > 0 ? Promise.reject(new Error("busy")) : own(id, options);
    };
    const ring = new FakeRing({ app: {}, other: {} });
    ring.allocators = () => [new FakeAllocator(["card-0", "card-1"])];
    await ring.restartAgent();
    await ring.want(web);
    ring.stopAgent();
    await meanwhile(ring);
    const cards = new FakeAllocator(["card-0", "card-1"]);
    cards.lacking.add("web");
    const asked: string[] = [];
    cards.onAdopt = () => asked.push(...cards.asked, "web");
    ring.allocators = () => [cards];
    await ring.restartAgent();
    await ring.want(web, pod("new").container("other").build());
    await ring.clock.advance(60_000);
    assert.deepEqual([asked, ring.status("new")?.phase], [["web"], "Running"]);
  });

  describe("leaves new pods their room on the node while they wait, in the order of their creation", () => {
    const of = (name: string, cpu: string, creationTimestamp: string): Pod => {
      const limits = { cpu, memory: "1Gi" };
      const built = pod(name)
        .container("app", { resources: { limits, requests: limits } })
        .build();
      return { ...built, metadata: { ...built.metadata, creationTimestamp } };
    };
    const runs = of("runs", "500m", "2026-01-01T00:00:00Z");
    for (const [who, content] of Object.entries({ "the first": ["second"], both: [] })) {
      test(`if ${who} waited`, async () => {
        const names = ["card-0", "card-1", "card-2"];
        const ring = new FakeRing({ app: {} });
        ring.allocators = () => [new FakeAllocator(names)];
        await ring.restartAgent();
        await ring.want(runs);
        const cards = new FakeAllocator(names);
        Object.assign(cards, { clock: ring.clock, adoptsMs: 3000 });
        cards.lacking.add("runs");
        for (const name of content) cards.content.add(name);
        ring.allocators = () => [cards];
        await ring.restartAgent();
        const [first, second] = [
          of("first", "1500m", "2026-01-02T00:00:00Z"),
          of("second", "1500m", "2026-01-03T00:00:00Z"),
        ];
        await ring.want(runs, second, first);
        await ring.clock.advance(10_000);
        const rejected = ring.status("second");
        assert.deepEqual(
          [ring.status("first")?.phase, rejected?.phase, rejected?.reason],
          ["Running", "Failed", "OutOfcpu"],
        );
      });
    }
  });

  test("is there before the limits are set also if the disk was full at first, and nothing of the pod ran", async () => {
    const crashes = { app: { exitAfterMs: 1000, exitCode: 1 } };
    const order: string[] = [];
    const fault = new Error("disk full");
    const { ring, cards } = await restarted(web, crashes, {
      again: undefined,
      ranMs: 14_500,
      fault,
      onAdopt: () => order.push("asked"),
    });
    ring.ensureCgroup = () => Promise.resolve(void order.push("limited"));
    await ring.clock.advance(2000);
    const before = order.length;
    assert.ok(before > 0 && !order.includes("limited"), order.join());
    cards().fault = undefined;
    await ring.clock.advance(60_000);
    assert.deepEqual(order.slice(before), ["asked", "limited"]);
  });

  describe("keeps no new pod waiting", () => {
    const fresh = pod("new").container("other").build();
    /** Restarts the agent with a new pod beside one that lacks something. */
    const restart = async (
      of: Pod,
      {
        meanwhile,
        again = () => undefined,
      }: { meanwhile?: Parameters<typeof restarted>[2]["meanwhile"]; again?: (cards: FakeAllocator) => void },
    ): Promise<FakeRing> => {
      const { ring } = await restarted(
        of,
        { app: { ignoresTerm: true }, other: {} },
        { again: undefined, ...(meanwhile && { meanwhile }) },
      );
      ring.allocators = () => {
        const cards = new FakeAllocator(["card-0", "card-1"]);
        cards.lacking.add("web");
        cards.clock = ring.clock;
        again(cards);
        return [cards];
      };
      await ring.restartAgent();
      await ring.want(of, fresh);
      return ring;
    };
    const full = (cards: FakeAllocator): void => {
      Object.assign(cards, { fault: new Error("disk full"), slow: "web" });
    };

    test("if it cannot be persisted, and nothing of the pod runs: its deadline counts as ever", async () => {
      const short = { ...web, spec: { ...web.spec, activeDeadlineSeconds: 600 } };
      const ring = new FakeRing({ app: {}, other: {} });
      ring.allocators = () => [new FakeAllocator(["card-0", "card-1"])];
      await ring.restartAgent();
      await ring.want(short);
      ring.stopAgent();
      await losePower(ring);
      ring.allocators = () => {
        const cards = new FakeAllocator(["card-0", "card-1"]);
        cards.lacking.add("web");
        full(cards);
        return [cards];
      };
      await ring.restartAgent();
      await ring.want(short, fresh);
      await ring.clock.advance(10_000);
      assert.equal(ring.status("new")?.phase, "Running");
      assert.deepEqual(await running(ring), ["other"]);
      await ring.clock.advance(600_000);
      assert.deepEqual([ring.status()?.phase, ring.status()?.reason], ["Failed", "DeadlineExceeded"]);
    });

    test("if its pod cannot be read", async () => {
      const meanwhile = async (ring: FakeRing): Promise<void> => {
        const [sandbox] = await ring.runtime.listSandboxes({}, { signal });
        const own = ring.runtime.sandboxStatus.bind(ring.runtime);
        ring.runtime.sandboxStatus = (id, options) =>
          id === sandbox?.id ? Promise.reject(new Error("no such task")) : own(id, options);
      };
      const ring = await restart(web, { meanwhile });
      await ring.clock.advance(10_000);
      assert.deepEqual([ring.status()?.phase, ring.status("new")?.phase], [undefined, "Running"]);
    });

    test("once its pod goes on with a stop that the agent before began", async () => {
      const slow = { ...web, spec: { ...web.spec, terminationGracePeriodSeconds: 3600 } };
      const meanwhile = async (ring: FakeRing): Promise<void> => {
        await ring.restartAgent();
        await ring.want(slow);
        ring.pool.worker(UID)?.evict({ reason: "Evicted", message: "for the disk" });
        await ring.clock.advance(1000);
        ring.stopAgent();
      };
      const ring = await restart(slow, { meanwhile });
      await ring.clock.advance(1000);
      assert.deepEqual([ring.status()?.phase, ring.status("new")?.phase], ["Running", "Running"]);
    });

    test("that needs nothing of the kind", async () => {
      const ring = await restart(web, {
        again: (cards) => {
          cards.content.add("new");
          cards.adoptsMs = 60_000;
        },
      });
      await ring.clock.advance(1000);
      assert.deepEqual([ring.status()?.phase, ring.status("new")?.phase], [undefined, "Running"]);
    });
  });

  test("is asked for what the pod is allocated, not for what a resize without room would make it", async () => {
    const of = (cpu: string): Pod => {
      const limits = { cpu, memory: "1Gi" };
      return pod("web")
        .container("app", { resources: { limits, requests: limits } })
        .build();
    };
    const { ring, cards } = await restarted(of("1"), { app: {} }, { again: undefined });
    ring.stopAgent();
    await ring.restartAgent();
    await ring.want(of("8"));
    await ring.clock.advance(60_000);
    assert.deepEqual(cards().adopted, ["web 1"]);
  });

  test("is not asked for a pod that has completed", async () => {
    const job = pod("web").restart("Never").container("app").build();
    const meanwhile = (ring: FakeRing): Promise<void> => ring.clock.advance(1000);
    const { ring, cards } = await restarted(job, { app: { exitAfterMs: 500 } }, { again: undefined, meanwhile });
    await ring.clock.advance(1000);
    assert.deepEqual([ring.status()?.phase, cards().adopted], ["Succeeded", []]);
  });
});
