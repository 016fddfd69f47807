import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CriRuntime } from "../../src/adapters/cri/cri-runtime.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { LiveValue } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { CDI_DEVICE, TEST_IMAGES, TestContainerd, type TestContainerdOptions } from "../support/containerd.ts";
import { freeze, thaw } from "../support/freeze.ts";
import { harnessFor } from "./containerd-harness.ts";
import { EventRecorder } from "./event-recorder.ts";
import { never, withCode } from "./harness.ts";
import { exited, TestPod } from "./test-pod.ts";

/** What only a real runtime can show: a hung process, and where its events come from. */
export function containerdOnly(options: TestContainerdOptions): void {
  describe("containerd only", { concurrency: false }, () => {
    const clock = new SystemClock();
    const requestTimeoutMs = new LiveValue(10_000);
    let containerd: TestContainerd;
    let runtime: CriRuntime;
    before(async () => {
      containerd = await TestContainerd.start(options);
      runtime = new CriRuntime({ clock, log: silent }, { endpoint: containerd.socket, requestTimeoutMs });
    });
    after(async () => {
      runtime?.close();
      await containerd?.stop();
    });

    test("events come from the best source that this version has", async (t) => {
      const recorder = new EventRecorder(runtime, clock).endsWith(t);
      await recorder.next((event) => event.kind === "resync");
      assert.equal(runtime.eventSource, containerd.version.startsWith("1.6") ? "containerd" : "cri");
      await recorder.stop();
    });

    test("the cgroup driver is told by containerd 2 and not by 1.6", async () => {
      const driver = await runtime.cgroupDriver(never);
      assert.equal(driver, containerd.version.startsWith("1.6") ? undefined : "cgroupfs");
    });

    test("the image of sandboxes is told, or the image is pinned", async () => {
      const { images } = harnessFor(containerd);
      const image = await runtime.sandboxImage(never);
      const pause = await images.imageStatus(TEST_IMAGES.pause, never);
      assert.ok(image === TEST_IMAGES.pause || pause?.pinned === true, `${image}, pinned: ${pause?.pinned}`);
    });

    test("a container names its image so that it is found among all", async () => {
      const contract = harnessFor(containerd);
      const pod = await TestPod.run(() => contract);
      const id = await pod.create({});
      const [container] = await runtime.listContainers({ id }, never);
      const busybox = await contract.images.imageStatus(TEST_IMAGES.busybox, never);
      assert.ok([container?.imageId, container?.imageRef].includes(busybox?.id ?? ""), JSON.stringify(container));
      await pod.remove();
    });

    test("a CDI device is injected by containerd 2, and not known to 1.6", async () => {
      const contract = harnessFor(containerd);
      const pod = await TestPod.run(() => contract);
      const command = ["/bin/sh", "-c", 'test "$CARD" = zero'];
      const id = await pod.create({ command, cdiDevices: [CDI_DEVICE] });
      await runtime.startContainer(id, never);
      const { exitCode } = await exited(() => contract, id);
      const isOld = containerd.version.startsWith("1.6");
      assert.equal(exitCode, isOld ? 1 : 0);
      if (!isOld) {
        const unknown = pod.create({ command, cdiDevices: [`${CDI_DEVICE}-unknown`] });
        await assert.rejects(unknown, /unresolvable CDI devices/);
      }
      await pod.remove();
    });

    test("a runtime that hangs is a Timeout for calls, and events resync when it goes on", async (t) => {
      const recorder = new EventRecorder(runtime, clock).endsWith(t);
      await recorder.next((event) => event.kind === "resync");
      const { pid } = containerd;
      assert.ok(pid !== undefined);
      await freeze(pid);
      try {
        requestTimeoutMs.set(300);
        const began = clock.now().mono;
        await assert.rejects(runtime.version(never), withCode("Timeout"));
        assert.ok(clock.now().mono - began < 5000);
        requestTimeoutMs.set(10_000);
        while (runtime.eventSource !== "none") {
          assert.ok(clock.now().mono - began < 30_000, "the liveness check ends the stream of a hung runtime");
          await clock.sleep(50);
        }
      } finally {
        thaw(pid);
      }
      await recorder.next((event) => event.kind === "resync", { from: 1 });
      assert.equal((await runtime.status(never)).ready, true);
      await recorder.stop();
    });
  });
}
