import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";

const web = pod("web").container("app").build();

/** The names of the runtime's calls that change something, in order. */
function changes(ring: FakeRing): string[] {
  const reads = new Set(["listSandboxes", "listContainers", "sandboxStatus", "containerStatus", "imageStatus"]);
  return ring.runtime.control.calls.filter(({ method }) => !reads.has(method)).map(({ method }) => method);
}

/** All calls that the start of a pod with one container needs. */
const START_CALLS = [
  ...["imageStatus", "runSandbox", "sandboxStatus", "createContainer", "startContainer"],
  ...["sandboxStatus", "containerStatus"],
];

describe("a pod's life on the ring", () => {
  test("a wanted pod runs, with one call for each thing", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(changes(ring), ["runSandbox", "createContainer", "startContainer"]);
    const reasons = ring.journal.events(0).map(({ reason }) => reason);
    assert.deepEqual(reasons, ["Pulled", "Created", "Started"]);
  });

  test("a sandbox whose status cannot be read is an event of its own", async () => {
    const ring = new FakeRing();
    await ring.want();
    ring.runtime.control.fail("sandboxStatus", new RuntimeError("Unknown", "no such luck"));
    await ring.want(web);
    const event = ring.journal.events(0).find(({ type }) => type === "Warning");
    assert.deepEqual(
      [event?.type, event?.reason, event?.message],
      ["Warning", "FailedPodSandBoxStatus", "Unable to get pod sandbox status: no such luck"],
    );
  });

  test("a field that is not acted on is named, in an event and in what explain shows", async () => {
    const ring = new FakeRing();
    await ring.want(
      pod("web")
        .container("app")
        .with({ securityContext: { windowsOptions: { hostProcess: true } } })
        .build(),
    );
    assert.match(ring.journal.events(0)[0]?.message ?? "", /^spec\.securityContext\.windowsOptions/);
    assert.match(ring.view.explain("uid-of-web")?.warnings[0] ?? "", /^spec\.securityContext\.windowsOptions/);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a start reads only what is not known: nothing is listed, each part is read once after it was created", async () => {
    const ring = new FakeRing();
    await ring.want();
    const before = ring.runtime.control.calls.length;
    await ring.want(web);
    assert.deepEqual(
      ring.runtime.control.calls.slice(before).map(({ method }) => method),
      START_CALLS,
    );
  });

  test("an idle pod costs no call at all", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const before = ring.runtime.control.calls.length;
    await ring.clock.advance(299_000);
    assert.equal(ring.runtime.control.calls.length, before);
  });

  test("a crashed container is back without any time passing; the second crash waits 10 s", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const [first] = await ring.containers();
    ring.runtime.exit(first?.id ?? "", 1);
    await ring.clock.advance(0);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 1);
    assert.equal(ring.status()?.phase, "Running");
    const again = (await ring.containers()).find(({ state }) => state === "running");
    ring.runtime.exit(again?.id ?? "", 1);
    await ring.clock.advance(9999);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "CrashLoopBackOff");
    assert.equal(ring.view.summaries()[0]?.state, "CrashLoopBackOff");
    await ring.clock.advance(1);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 2);
    const left = await ring.containers();
    assert.deepEqual(
      left.map(({ state, attempt }) => `${state} ${attempt}`),
      ["exited 1", "running 2"],
    );
  });

  test("of two crashed containers each is back at its own time, whatever their order", async () => {
    const ring = new FakeRing({ slow: {}, quick: {} });
    await ring.want(pod("web").container("slow").container("quick").build());
    const crash = async (name: string): Promise<void> => {
      const found = (await ring.containers()).find((one) => one.name === name && one.state === "running");
      ring.runtime.exit(found?.id ?? "", 1);
      await ring.clock.advance(0);
    };
    const restarts = (): Record<string, number> =>
      Object.fromEntries(
        (ring.status()?.containerStatuses ?? []).map(({ name, restartCount }) => [name, restartCount]),
      );
    // The second crash of the first one waits 10 s, and the third one 20 s.
    await crash("slow");
    await crash("slow");
    await ring.clock.advance(10_000);
    await crash("slow");
    await crash("quick");
    await crash("quick");
    await ring.clock.advance(9999);
    assert.deepEqual(restarts(), { slow: 2, quick: 1 });
    await ring.clock.advance(1);
    assert.deepEqual(restarts(), { slow: 2, quick: 2 });
    await ring.clock.advance(10_000);
    assert.deepEqual(restarts(), { slow: 3, quick: 2 });
  });

  test("init containers run one after the other, then the app", async () => {
    const ring = new FakeRing({ one: { exitAfterMs: 100 }, two: { exitAfterMs: 100 } });
    await ring.want(pod("web").init("one").init("two").container("app").build());
    assert.equal(ring.status()?.phase, "Pending");
    await ring.clock.advance(100);
    await ring.clock.advance(100);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(
      (await ring.containers()).map(({ name }) => name),
      ["one", "two", "app"],
    );
  });

  test("Never: a completed pod is terminal, its sandbox stopped, its container kept for its logs", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 100, exitCode: 3 } });
    await ring.want(pod("web").container("app").restart("Never").build());
    await ring.clock.advance(100);
    assert.equal(ring.status()?.phase, "Failed");
    assert.deepEqual(
      (await ring.containers()).map(({ state }) => state),
      ["exited"],
    );
    assert.equal(changes(ring).at(-1), "stopSandbox");
    await ring.clock.advance(100_000);
    assert.equal(changes(ring).filter((call) => call === "startContainer").length, 1);
  });

  test("a pod that is no longer wanted is stopped with its grace period and leaves nothing", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    await ring.want(pod("web").container("app").with({ terminationGracePeriodSeconds: 7 }).build());
    ring.publish();
    await ring.clock.advance(6999);
    assert.equal(ring.view.summaries()[0]?.state, "Terminating");
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
    assert.deepEqual(ring.view.summaries(), []);
    assert.deepEqual([...ring.files.entries.keys()], []);
  });

  test("a pod that is gone is forgotten", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    assert.ok(ring.journal.of({ uid: "uid-of-web", name: "web", namespace: "default" }).history.length > 0);
    await ring.want();
    await ring.clock.advance(60_000);
    assert.equal(ring.status(), undefined);
    assert.deepEqual(ring.journal.of({ uid: "uid-of-web", name: "web", namespace: "default" }).history, []);
    assert.deepEqual(ring.counted, []);
  });

  test("the end of a pod lists it once, after the stop", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const before = ring.runtime.control.calls.length;
    ring.publish();
    await ring.clock.advance(0);
    const calls = ring.runtime.control.calls.slice(before).map(({ method }) => method);
    assert.deepEqual(calls.filter((method) => method === "listSandboxes").length, 1);
    assert.deepEqual(calls.slice(-2), ["removeContainer", "removeSandbox"]);
    assert.deepEqual(ring.view.summaries(), []);
  });

  test("a failed removal is retried until nothing is left", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    ring.runtime.control.fail("removeSandbox", new RuntimeError("Unavailable", "busy"));
    ring.publish();
    await ring.clock.advance(1000);
    assert.equal(ring.runtime.control.count("removeSandbox"), 2);
    assert.deepEqual(ring.view.summaries(), []);
    assert.deepEqual([...ring.files.entries.keys()], []);
  });

  test("gone and back at once: stopped, then started again under the same UID with restart count 1", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    ring.publish();
    ring.publish(web);
    await ring.clock.advance(0);
    assert.equal(ring.status()?.phase, "Running");
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 1);
    assert.equal((await ring.containers()).length, 1);
  });

  test("another version of a static pod waits for the end of the first", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    const first = pod("web", "uid-1").fromFile().container("app").with({ terminationGracePeriodSeconds: 5 }).build();
    const versions = ["uid-2", "uid-3", "uid-4"].map((uid) => pod("web", uid).fromFile().container("app").build());
    await ring.want(first);
    for (const version of versions) await ring.want(version);
    await ring.clock.advance(4000);
    assert.equal(changes(ring).filter((call) => call === "runSandbox").length, 1);
    await ring.clock.advance(1000);
    assert.equal(ring.pool.status("uid-4")?.phase, "Running");
    // Those in between were never started.
    assert.equal(changes(ring).filter((call) => call === "runSandbox").length, 2);
  });

  test("another image restarts only that container", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").container("side").build());
    const before = await ring.containers();
    await ring.want(pod("web").container("app", { image: "app:2" }).container("side").build());
    const after = (await ring.containers()).filter(({ state }) => state === "running");
    assert.equal(after.find(({ name }) => name === "side")?.id, before.find(({ name }) => name === "side")?.id);
    assert.equal(after.find(({ name }) => name === "app")?.attempt, 1);
  });

  test("Never: no terminal phase is published between the kill and the restart of a changed image", async () => {
    const ring = new FakeRing({ app: { termMs: 500 } });
    const seen: string[] = [];
    await ring.want(pod("web").container("app").restart("Never").build());
    ring.pool.onStatus((uid) => seen.push(ring.pool.status(uid)?.phase ?? ""), {
      signal: new AbortController().signal,
    });
    await ring.want(pod("web").container("app", { image: "app:2" }).restart("Never").build());
    await ring.clock.advance(500);
    assert.equal(ring.status()?.phase, "Running");
    assert.equal(seen.includes("Failed"), false);
    assert.equal(seen.includes("Succeeded"), false);
  });

  test("the crash back-off survives a restart of the agent", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 100, exitCode: 1 } });
    await ring.want(web);
    await ring.clock.advance(200);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "CrashLoopBackOff");
    await ring.restartAgent();
    await ring.want(web);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "CrashLoopBackOff");
    await ring.clock.advance(9900);
    assert.equal((await ring.containers()).at(-1)?.attempt, 1);
    await ring.clock.advance(200);
    assert.equal((await ring.containers()).at(-1)?.attempt, 2);
    await ring.clock.advance(19_000);
    assert.equal((await ring.containers()).at(-1)?.attempt, 2, "and it doubles from there");
  });

  test("past its active deadline a pod fails", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").with({ activeDeadlineSeconds: 60 }).build());
    await ring.clock.advance(59_000);
    assert.equal(ring.status()?.phase, "Running");
    await ring.clock.advance(1000);
    assert.deepEqual([ring.status()?.phase, ring.status()?.reason], ["Failed", "DeadlineExceeded"]);
    const told = ring.journal.events(0).filter(({ reason }) => reason === "DeadlineExceeded");
    assert.deepEqual(
      told.map(({ type }) => type),
      ["Normal"],
    );
  });

  test("a pod that has completed does not fail at its active deadline", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 1000 } });
    await ring.want(pod("web").container("app").restart("Never").with({ activeDeadlineSeconds: 60 }).build());
    await ring.clock.advance(120_000);
    assert.equal(ring.status()?.phase, "Succeeded");
    assert.ok(!ring.journal.events(0).some(({ reason }) => reason === "DeadlineExceeded"));
  });

  test("past its active deadline a pod fails also while it waits to be tried again after errors", async () => {
    const ring = new FakeRing();
    ring.runtime.control.fail("runSandbox", new RuntimeError("Unknown", "no such luck"), 100);
    await ring.want(pod("web").container("app").with({ activeDeadlineSeconds: 35 }).build());
    await ring.clock.advance(34_000);
    assert.equal(ring.status()?.phase, "Pending");
    await ring.clock.advance(1000);
    assert.deepEqual([ring.status()?.phase, ring.status()?.reason], ["Failed", "DeadlineExceeded"]);
  });

  test("past its active deadline a pod that cannot be read is not read more often than after other errors", async () => {
    const ring = new FakeRing();
    await ring.want(pod("web").container("app").with({ activeDeadlineSeconds: 5 }).build());
    ring.runtime.control.fail("containerStatus", new RuntimeError("Unknown", "no such luck"), 1000);
    const before = ring.runtime.control.count("containerStatus");
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Running");
    assert.ok(ring.runtime.control.count("containerStatus") - before < 10);
  });

  test("past its active deadline a pod fails also while it waits for an image", async () => {
    const ring = new FakeRing();
    ring.runtime.image("app:1", { state: "pullable" });
    ring.runtime.control.delay("pullImage", 600_000);
    await ring.wantAsIs(pod("web").container("app").with({ activeDeadlineSeconds: 60 }).build());
    await ring.clock.advance(59_000);
    assert.equal(ring.runtime.control.inFlight("pullImage"), 1);
    await ring.clock.advance(1000);
    assert.equal(ring.runtime.control.inFlight("pullImage"), 0);
    assert.deepEqual([ring.status()?.phase, ring.status()?.reason], ["Failed", "DeadlineExceeded"]);
  });
});

describe("interrupts", () => {
  test("a pull is aborted when the pod is no longer wanted", async () => {
    const ring = new FakeRing();
    ring.runtime.image("app:1", { state: "pullable" });
    ring.runtime.control.delay("pullImage", 60_000);
    await ring.wantAsIs(web);
    assert.equal(ring.runtime.control.inFlight("pullImage"), 1);
    await ring.wantAsIs();
    assert.equal(ring.runtime.control.inFlight("pullImage"), 0);
    assert.deepEqual(ring.view.summaries(), []);
  });

  test("a pull is aborted when another image is wanted", async () => {
    const ring = new FakeRing();
    ring.runtime.image("app:1", { state: "pullable" });
    ring.runtime.image("app:2");
    ring.runtime.control.delay("pullImage", 60_000);
    await ring.wantAsIs(web);
    await ring.wantAsIs(pod("web").container("app", { image: "app:2" }).build());
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a sandbox that is being created is finished and then removed", async () => {
    const ring = new FakeRing();
    ring.runtime.control.delay("runSandbox", 1000);
    await ring.want(web);
    ring.publish();
    await ring.clock.advance(1000);
    assert.deepEqual(changes(ring), ["runSandbox", "stopSandbox", "removeSandbox"]);
    assert.deepEqual(ring.view.summaries(), []);
  });

  test("a pull does not keep other pods from starting", async () => {
    const ring = new FakeRing();
    ring.runtime.control.delay("pullImage", 60_000);
    for (let i = 0; i < 20; i++) ring.runtime.image(`slow${i}:1`, { state: "pullable" });
    ring.runtime.image("app:1");
    const slow = Array.from({ length: 20 }, (_, i) => pod(`p${i}`).container(`slow${i}`).build());
    await ring.wantAsIs(...slow, web);
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("starts are bounded, stops are not", async () => {
    const ring = new FakeRing();
    ring.runtime.control.delay("runSandbox", 100);
    ring.runtime.control.delay("stopSandbox", 100);
    const many = Array.from({ length: 30 }, (_, i) => pod(`p${i}`).container("app").build());
    await ring.want(...many);
    await ring.clock.advance(2000);
    assert.equal(ring.runtime.control.peak("runSandbox"), 8);
    await ring.want();
    await ring.clock.advance(2000);
    assert.equal(ring.runtime.control.peak("stopSandbox"), 30);
    assert.deepEqual(await ring.containers(), []);
  });
});

describe("faults", () => {
  test("a pull of an image that does not exist backs off, and succeeds once it exists", async () => {
    const ring = new FakeRing();
    await ring.wantAsIs(web);
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "ImagePullBackOff");
    await ring.clock.advance(10_000);
    await ring.clock.advance(20_000);
    assert.equal(ring.runtime.control.count("pullImage"), 3);
    const explained = ring.view.explain("uid-of-web");
    assert.equal(explained?.errors[0]?.count, 3);
    assert.equal(explained?.next === undefined, false);
    ring.runtime.image("app:1");
    await ring.clock.advance(40_000);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a failed pull is reported as ErrImagePull before ImagePullBackOff", async () => {
    const ring = new FakeRing();
    const said: string[] = [];
    const { signal } = new AbortController();
    ring.pool.onStatus(
      (uid) => {
        const reason = ring.pool.status(uid)?.containerStatuses?.[0]?.state?.waiting?.reason ?? "";
        if (said.at(-1) !== reason) said.push(reason);
      },
      { signal },
    );
    await ring.wantAsIs(web);
    assert.deepEqual(said, ["ContainerCreating", "ErrImagePull", "ImagePullBackOff"]);
  });

  test("a command that does not exist backs off like a crash, with the runtime's message", async () => {
    const ring = new FakeRing({ app: { failsToStart: "exec: no such file" } });
    await ring.want(web);
    await ring.clock.advance(60_000);
    const started = ring.runtime.control.count("startContainer");
    assert.ok(started >= 3 && started <= 6, `${started} starts in a minute`);
    assert.match(ring.view.explain("uid-of-web")?.errors[0]?.message ?? "", /no such file/);
  });

  test("a sandbox that cannot be created is retried with back-off", async () => {
    const ring = new FakeRing();
    ring.runtime.control.fail("runSandbox", new RuntimeError("Unknown", "no network"), 3);
    await ring.want(web);
    assert.equal(ring.runtime.control.count("runSandbox"), 1);
    await ring.clock.advance(1000);
    for (let wake = 0; wake < 10; wake++) {
      ring.pool.wake("uid-of-web");
      await ring.clock.advance(100);
    }
    assert.equal(ring.runtime.control.count("runSandbox"), 2, "a wake-up ends no back-off");
    await ring.clock.advance(1000);
    await ring.clock.advance(4000);
    assert.equal(ring.runtime.control.count("runSandbox"), 4);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("while the network is not ready this is reported and retried each second", async () => {
    const ring = new FakeRing();
    ring.runtime.networkProblem = "NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized";
    ring.runtime.control.fail("runSandbox", new RuntimeError("Unknown", "cni plugin not initialized"), 1);
    await ring.want(web);
    for (let second = 0; second < 20; second++) await ring.clock.advance(1000);
    assert.equal(ring.runtime.control.count("runSandbox"), 1, "nothing is created while the network is down");
    const event = ring.journal.events(0).find(({ reason }) => reason === "NetworkNotReady");
    assert.equal(
      event?.message,
      "network is not ready: container runtime network not ready: " +
        "NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized",
    );
    assert.equal(event?.count, 21);
    ring.runtime.networkProblem = "";
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a pod on the host's network starts without the network of pods", async () => {
    const ring = new FakeRing();
    ring.runtime.networkProblem = "NetworkReady=false";
    ring.runtime.control.fail("runSandbox", new RuntimeError("Unknown", "busy"), 1);
    await ring.want(pod("web").container("app").with({ hostNetwork: true }).build());
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a lost response of create does not lead to a second container", async () => {
    const ring = new FakeRing();
    ring.runtime.control.failAfterwards("createContainer", new RuntimeError("Unavailable", "connection lost"));
    await ring.want(web);
    await ring.clock.advance(20_000);
    const all = await ring.containers();
    assert.deepEqual(
      all.map(({ state, attempt }) => `${state} ${attempt}`),
      ["running 0"],
    );
  });

  test("the runtime becomes unavailable and comes back: nothing restarts", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const [before] = await ring.containers();
    ring.runtime.goAway();
    await ring.clock.advance(60_000);
    ring.runtime.comeBack();
    await ring.clock.advance(0);
    const [after] = await ring.containers();
    assert.equal(after?.id, before?.id);
    assert.equal(ring.status()?.containerStatuses?.[0]?.restartCount, 0);
  });

  test("a pod that was added while the runtime was unavailable starts when it is back", async () => {
    const ring = new FakeRing();
    await ring.clock.advance(0);
    ring.runtime.goAway();
    await ring.want(web);
    await ring.clock.advance(120_000);
    ring.runtime.comeBack();
    await ring.clock.advance(0);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a dead sandbox is replaced", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    ring.runtime.killSandbox("sandbox-1");
    await ring.clock.advance(30_000);
    assert.equal(ring.status()?.phase, "Running");
    assert.equal((await ring.containers()).filter(({ state }) => state === "running").length, 1);
  });
});

describe("another agent on the same runtime", () => {
  test("adopts what runs: same container, no restart, no call that changes anything", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const before = await ring.containers();
    const calls = changes(ring).length;
    await ring.restartAgent();
    await ring.want(web);
    assert.deepEqual(await ring.containers(), before);
    assert.equal(changes(ring).length, calls);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("counts orphaned pods, and pods that come back while they end", async () => {
    const ring = new FakeRing({ app: { termMs: 1000 } });
    await ring.want(web);
    await ring.restartAgent();
    await ring.want();
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(ring.counted, ["orphaned", "restarted web"]);
  });

  test("stops orphaned pods, but only once all sources are ready", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    await ring.restartAgent();
    await ring.clock.advance(1000);
    assert.equal((await ring.containers()).length, 1);
    await ring.want(pod("other").container("side").build());
    await ring.clock.advance(0);
    assert.deepEqual(
      (await ring.containers()).map(({ name }) => name),
      ["side"],
    );
  });

  test("an orphaned pod is stopped with the grace period that its containers carry", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    await ring.want(pod("web").container("app").with({ terminationGracePeriodSeconds: 20 }).build());
    await ring.restartAgent();
    await ring.want();
    await ring.clock.advance(19_999);
    assert.deepEqual(
      (await ring.containers()).map(({ state }) => state),
      ["running"],
    );
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
  });

  test("an orphaned pod that comes back keeps its grace period, and starts again after it", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    const slow = pod("web").container("app").with({ terminationGracePeriodSeconds: 50 }).build();
    await ring.want(slow);
    await ring.restartAgent();
    await ring.want();
    await ring.want(slow);
    await ring.clock.advance(49_999);
    assert.equal((await ring.containers())[0]?.attempt, 0);
    await ring.clock.advance(1);
    assert.deepEqual(
      (await ring.containers()).map(({ attempt, state }) => `${attempt} ${state}`),
      ["1 running"],
    );
  });

  test("a manifest that changed while no agent ran: the old pod ends before the new one starts", async () => {
    const ring = new FakeRing({ app: { termMs: 700 } });
    await ring.want(pod("web", "uid-1").fromFile().container("app").build());
    await ring.restartAgent();
    await ring.want(pod("web", "uid-2").fromFile().container("app").build());
    assert.equal(ring.runtime.control.count("runSandbox"), 1);
    await ring.clock.advance(700);
    assert.equal(ring.pool.status("uid-2")?.phase, "Running");
    assert.equal((await ring.containers()).length, 1);
  });

  test("a pod whose manifest cannot be read now is left alone until it can", async () => {
    const ring = new FakeRing();
    const fromFile = { ...web, metadata: { ...web.metadata, annotations: { "kubernetes.io/config.source": "file" } } };
    await ring.want(fromFile);
    await ring.restartAgent();
    ring.publish({ isIncomplete: true });
    await ring.clock.advance(60_000);
    assert.equal((await ring.containers()).length, 1);
    await ring.want();
    assert.deepEqual(await ring.containers(), []);
  });

  test("a completed pod stays completed", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 10 } });
    const once = pod("web").container("app").restart("OnFailure").build();
    await ring.want(once);
    await ring.clock.advance(10);
    await ring.restartAgent();
    await ring.want(once);
    assert.equal(ring.status()?.phase, "Succeeded");
    assert.equal(ring.runtime.control.count("startContainer"), 1);
  });
});
