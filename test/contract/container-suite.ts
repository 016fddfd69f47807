import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Harness, never, withCode } from "./harness.ts";
import { exited, TestPod } from "./test-pod.ts";

/** What containers do, in one pod for all tests. */
export function containerContract(harness: Harness): void {
  let shared: TestPod | undefined;
  const pod = (): TestPod => {
    assert.ok(shared, "the pod did not start");
    return shared;
  };
  before(async () => {
    shared = await TestPod.run(harness);
  });
  after(() => shared?.remove());

  test("goes from created over running to exited, with its exit code and times", async () => {
    const { runtime } = harness();
    // Long enough to be seen running on a busy machine.
    const id = await pod().create({ command: harness().command({ exitAfterMs: 6000, exitCode: 3 }) });
    const created = await runtime.containerStatus(id, never);
    assert.deepEqual([created.state, created.startedAt, created.finishedAt], ["created", 0, 0]);
    await runtime.startContainer(id, never);
    const running = await runtime.containerStatus(id, never);
    assert.equal(running.state, "running");
    assert.ok(running.startedAt >= running.createdAt);
    const status = await exited(harness, id);
    assert.deepEqual([status.exitCode, status.reason], [3, "Error"]);
    assert.ok(status.finishedAt >= status.startedAt);
    assert.ok(status.finishedAt - status.startedAt < 30_000);
  });

  test("an exit code of 0 is Completed", async () => {
    const { exitCode, reason } = await exited(harness, await pod().start({ exitAfterMs: 0, exitCode: 0 }));
    assert.deepEqual([exitCode, reason], [0, "Completed"]);
  });

  test("labels, annotations, name, attempt, mounts and log path come back as given", async () => {
    const mounts = [
      { containerPath: "/from-host", hostPath: "/proc/self", readonly: true, propagation: "private" as const },
    ];
    const labels = { "io.kubernetes.pod.uid": "u-1", empty: "" };
    const annotations = { "io.kubernetes.container.hash": "abc", text: 'ä\n"' };
    const id = await pod().create({ name: "round-trip", attempt: 7, labels, annotations, mounts, logPath: "r/7.log" });
    const status = await harness().runtime.containerStatus(id, never);
    assert.deepEqual([status.name, status.attempt], ["round-trip", 7]);
    assert.deepEqual({ ...status.labels }, labels);
    assert.deepEqual({ ...status.annotations }, annotations);
    assert.deepEqual(status.mounts, [{ containerPath: "/from-host", hostPath: "/proc/self" }]);
    assert.equal(status.logPath, `${pod().sandbox.logDirectory}/r/7.log`);
    assert.match(status.imageRef, /sha256:/);
    await harness().runtime.removeContainer(id, never);
  });

  test("ends on the stop signal within the grace period", async () => {
    const { runtime, clock } = harness();
    const id = await pod().start({ termCode: 7 });
    await harness().listens(id);
    const began = clock.now().mono;
    await runtime.stopContainer(id, 20, never);
    assert.ok(clock.now().mono - began < 10_000, "did not wait for the whole grace period");
    const { state, exitCode } = await runtime.containerStatus(id, never);
    assert.deepEqual([state, exitCode], ["exited", 7]);
  });

  test("is killed after the grace period when it ignores the signal", async () => {
    const { runtime, clock } = harness();
    const id = await pod().start({ ignoresTerm: true });
    const began = clock.now().mono;
    await runtime.stopContainer(id, 1, never);
    const took = clock.now().mono - began;
    assert.ok(took >= 950 && took < 20_000, `took ${took} ms`);
    const { state, exitCode } = await runtime.containerStatus(id, never);
    assert.deepEqual([state, exitCode], ["exited", 137]);
  });

  test("is killed at once without grace", async () => {
    const { runtime } = harness();
    const id = await pod().start({ ignoresTerm: true });
    await runtime.stopContainer(id, 0, never);
    const { state, exitCode } = await runtime.containerStatus(id, never);
    assert.deepEqual([state, exitCode], ["exited", 137]);
  });

  test("stop and remove may be repeated, also for ids that never were", async () => {
    const { runtime } = harness();
    const id = await pod().start({});
    for (const target of [id, "fedcba9876543210".repeat(4)]) {
      for (let round = 0; round < 2; round++) await runtime.stopContainer(target, 1, never);
      for (let round = 0; round < 2; round++) await runtime.removeContainer(target, never);
    }
    await assert.rejects(runtime.containerStatus(id, never), withCode("NotFound"));
  });

  test("a running container may be removed: it is killed first", async () => {
    const { runtime } = harness();
    const id = await pod().start({});
    await runtime.removeContainer(id, never);
    assert.deepEqual(await runtime.listContainers({ id }, never), []);
  });

  test("an unknown id is NotFound", async () => {
    const { runtime } = harness();
    const id = "00112233445566778899aabbccddeeff".repeat(2);
    await assert.rejects(runtime.containerStatus(id, never), withCode("NotFound"));
    await assert.rejects(runtime.startContainer(id, never), withCode("NotFound"));
    await assert.rejects(runtime.execSync(id, { command: ["true"], timeoutSeconds: 1 }, never), withCode("NotFound"));
  });

  test("one name and attempt exists once in a pod", async () => {
    const id = await pod().create({ name: "twice", attempt: 0 });
    await assert.rejects(pod().create({ name: "twice", attempt: 0 }), withCode("AlreadyExists"));
    await harness().runtime.removeContainer(await pod().create({ name: "twice", attempt: 1 }), never);
    await harness().runtime.removeContainer(id, never);
  });

  test("an image that is not there cannot be used", async () => {
    const ref = "localhost:1/kubelet-ts-test/missing:1";
    await assert.rejects(pod().create({ image: { ref, userSpecified: ref } }), withCode("NotFound"));
  });

  test("a command that does not exist fails the start and leaves an exited container", async () => {
    const id = await pod().create({ command: harness().brokenCommand });
    await assert.rejects(harness().runtime.startContainer(id, never), withCode("Unknown", "NotFound"));
    const { state, exitCode, reason, message } = await harness().runtime.containerStatus(id, never);
    assert.deepEqual([state, exitCode, reason], ["exited", 128, "StartError"]);
    assert.match(message, /no-such-command/);
  });

  test("lists by sandbox, id and labels", async () => {
    const other = await TestPod.run(harness);
    const mine = await pod().create({ name: "mine", labels: { who: "mine", both: "yes" } });
    const theirs = await other.create({ name: "theirs", labels: { who: "theirs", both: "yes" } });
    const list = async (filter: { id?: string; sandboxId?: string; labels?: Record<string, string> }) =>
      (await harness().runtime.listContainers(filter, never)).map(({ id }) => id).sort();
    assert.deepEqual(await list({ id: mine }), [mine]);
    assert.deepEqual(await list({ sandboxId: other.id }), [theirs]);
    assert.deepEqual(await list({ labels: { who: "theirs" } }), [theirs]);
    assert.deepEqual(await list({ labels: { both: "yes" } }), [mine, theirs].sort());
    assert.deepEqual(await list({ sandboxId: other.id, labels: { who: "mine" } }), []);
    const [summary] = await harness().runtime.listContainers({ id: theirs }, never);
    assert.deepEqual([summary?.name, summary?.sandboxId, summary?.state], ["theirs", other.id, "created"]);
    await other.remove();
    assert.deepEqual(await list({ id: theirs }), [], "removing a sandbox removes its containers");
  });

  test("tells what a container wrote to its own filesystem, by labels, a while after it started", async () => {
    const { runtime, clock } = harness();
    const id = await pod().create({ name: "writes", labels: { writes: "yes" } });
    const other = await pod().create({ name: "reads", labels: { writes: "no" } });
    await Promise.all([id, other].map((one) => runtime.startContainer(one, never)));
    const told = async () => runtime.writableLayers({ labels: { writes: "yes" } }, never);
    // containerd measures every ten seconds.
    for (let i = 0; i < 240 && (await told()).length === 0; i++) await clock.sleep(250, never);
    const found = await told();
    assert.deepEqual(
      found.map((layer) => [layer.id, layer.name, layer.labels["writes"]]),
      [[id, "writes", "yes"]],
    );
    // One that wrote nothing may hold nothing; what it wrote is counted in test/integration/volumes.ts.
    const isMeasured = found.every(({ bytes, inodes, at }) => bytes >= 0 && inodes >= 0 && at > 0);
    assert.ok(isMeasured, JSON.stringify(found));
    await Promise.all([id, other].map((one) => runtime.removeContainer(one, never)));
    assert.deepEqual(await told(), []);
  });

  test("stopping a sandbox kills its containers, and nothing new starts in it", async () => {
    const { runtime } = harness();
    const other = await TestPod.run(harness);
    const id = await other.start({ ignoresTerm: true });
    await runtime.stopSandbox(other.id, never);
    const { state, exitCode } = await runtime.containerStatus(id, never);
    assert.deepEqual([state, exitCode], ["exited", 137]);
    await assert.rejects(other.create(), withCode("NotFound", "Unknown", "FailedPrecondition"));
    await other.remove();
  });

  test("a command inside gives its output and exit code", async () => {
    const id = await pod().start({});
    const command = harness().execCommand({ stdout: "to out", stderr: "to err", exitCode: 5 });
    const result = await harness().runtime.execSync(id, { command, timeoutSeconds: 10 }, never);
    assert.equal(Buffer.from(result.stdout).toString(), "to out");
    assert.equal(Buffer.from(result.stderr).toString(), "to err");
    assert.equal(result.exitCode, 5);
    await harness().runtime.removeContainer(id, never);
  });

  test("a command that outlives its limit is a Timeout", async () => {
    const { runtime, clock } = harness();
    const id = await pod().start({});
    const began = clock.now().mono;
    const command = harness().execCommand({ takesMs: 30_000 });
    await assert.rejects(runtime.execSync(id, { command, timeoutSeconds: 1 }, never), withCode("Timeout"));
    assert.ok(clock.now().mono - began < 20_000);
    assert.equal((await runtime.containerStatus(id, never)).state, "running", "the container itself goes on");
    await runtime.removeContainer(id, never);
  });

  test("an abort ends a call that goes on, with the signal's own reason", async () => {
    const { runtime, clock } = harness();
    const id = await pod().start({});
    const controller = new AbortController();
    const reason = new Error("no longer wanted");
    const command = harness().execCommand({ takesMs: 30_000 });
    const call = runtime.execSync(id, { command, timeoutSeconds: 0 }, { signal: controller.signal });
    clock.after(300, () => controller.abort(reason));
    const began = clock.now().mono;
    await assert.rejects(call, (error) => error === reason);
    assert.ok(clock.now().mono - began < 20_000);
    await runtime.removeContainer(id, never);
  });

  test("resources can be changed while it runs", async () => {
    const { runtime, memoryLimit } = harness();
    const id = await pod().start({});
    assert.notEqual(memoryLimit(id), 64 << 20);
    await runtime.updateContainerResources(id, { cpuShares: 512, memoryLimitBytes: 64 << 20 }, never);
    assert.equal(memoryLimit(id), 64 << 20);
    await runtime.updateSandboxResources(pod().id, { resources: { cpuShares: 512 } }, never);
    assert.equal((await runtime.containerStatus(id, never)).state, "running");
    await runtime.removeContainer(id, never);
  });

  test("a log that was moved away is begun anew when it is reopened, and not before", async () => {
    const { runtime, rotateLog } = harness();
    const id = await pod().start({});
    const { logPath } = await runtime.containerStatus(id, never);
    const isBegun = rotateLog(logPath, id);
    assert.equal(isBegun(), false);
    await runtime.reopenContainerLog(id, never);
    assert.equal(isBegun(), true);
    await runtime.removeContainer(id, never);
  });

  test("streams are answered with a URL", async () => {
    const { runtime } = harness();
    const id = await pod().start({});
    const streams = { tty: false, stdin: false, stdout: true, stderr: true };
    assert.match(await runtime.exec(id, { ...streams, command: ["true"] }, never), /^https?:\/\/.+\/exec\//);
    assert.match(await runtime.attach(id, streams, never), /^https?:\/\/.+\/attach\//);
    assert.match(await runtime.portForward(pod().id, [80], never), /^https?:\/\/.+\/portforward\//);
    await runtime.removeContainer(id, never);
  });
}
