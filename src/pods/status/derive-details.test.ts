import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { derive } from "../../../test/support/derive.ts";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";

const app = { name: "app", image: "app:1" };
const amounts = { cpu: "500m", memory: "64Mi" };
const plain = pod()
  .container("app", { resources: { requests: amounts, limits: amounts } })
  .build();
const runs = (of: Pod): ObservedPod => observed(of, [sandbox()], [seen(app)]);

const condition = (status: PodStatus, type: string) => status.conditions?.find((one) => one.type === type);

describe("the generation", () => {
  const at = (generation: number): Pod => ({ ...plain, metadata: { ...plain.metadata, generation } });

  test("is the one of the pod, in the status and in each condition, and never goes back", () => {
    const first = derive(at(3), runs(plain));
    assert.equal(first.observedGeneration, 3);
    assert.ok(first.conditions?.every(({ observedGeneration }) => observedGeneration === 3));
    assert.equal(derive(at(2), runs(plain), { previous: first }).observedGeneration, 3);
  });

  test("is not there for a static pod", () => {
    const status = derive(plain, runs(plain));
    assert.equal("observedGeneration" in status, false);
    assert.ok(status.conditions?.every((one) => !("observedGeneration" in one)));
  });
});

describe("resources", () => {
  test("of the pod and of its container: what was given", () => {
    const status = derive(plain, runs(plain));
    assert.deepEqual(status.allocatedResources, amounts);
    assert.deepEqual(status.resources, { requests: amounts, limits: amounts });
    assert.deepEqual(status.containerStatuses?.[0]?.allocatedResources, amounts);
    assert.deepEqual(status.containerStatuses?.[0]?.resources, { requests: amounts, limits: amounts });
  });

  test("of a pod that asks for nothing: an empty object, and nothing allocated", () => {
    const of = pod().container("app").build();
    const status = derive(of, runs(of));
    assert.deepEqual([status.resources, status.containerStatuses?.[0]?.resources], [{}, {}]);
    assert.equal("allocatedResources" in status, false);
  });

  test("of the pod as a whole go before the sum, and overhead is added", () => {
    const of: Pod = {
      ...plain,
      spec: { ...plain.spec, resources: { requests: { cpu: "2" } }, overhead: { cpu: "1" } },
    };
    assert.deepEqual(derive(of, runs(of)).allocatedResources, { cpu: "3", memory: "64Mi" });
  });

  test("while containers get others: what they have, what they were given, and a condition", () => {
    const had = { limits: { cpu: "250m" } };
    const status = derive(plain, runs(plain), { actualOf: () => had, resizing: {} });
    assert.deepEqual(status.containerStatuses?.[0]?.resources, had);
    assert.equal(status.containerStatuses?.[0]?.allocatedResources?.["cpu"], "500m");
    assert.equal(condition(status, "PodResizeInProgress")?.status, "True");
    const stopped = observed(plain, [sandbox()], [seen(app, { state: "exited" })]);
    const ended = derive(plain, stopped, { actualOf: () => had });
    assert.deepEqual(ended.containerStatuses?.[0]?.resources?.requests, amounts, "a container that does not run");
  });

  test("that wait for room have a condition with the reason, until the pod ends", () => {
    const resizePending = { reason: "Deferred", message: "no room" };
    const waits = condition(derive(plain, runs(plain), { resizePending }), "PodResizePending");
    assert.deepEqual([waits?.status, waits?.reason, waits?.message], ["True", "Deferred", "no room"]);
    assert.equal(condition(derive(plain, runs(plain)), "PodResizePending"), undefined);
    const ending = derive(plain, runs(plain), { resizePending, terminating: true });
    assert.equal(condition(ending, "PodResizePending"), undefined);
  });
});

describe("a container", () => {
  test("shows who it runs as and its stop signal where the runtime tells", () => {
    const told = seen(app, { user: { uid: 5, gid: 6, groups: [7] }, stopSignal: "SIGUSR1" });
    const status = derive(plain, observed(plain, [sandbox()], [told])).containerStatuses?.[0];
    assert.deepEqual(status?.user, { linux: { uid: 5, gid: 6, supplementalGroups: [7] } });
    assert.equal(status?.stopSignal, "SIGUSR1");
  });

  test("shows the images of image volumes with the gate for it, once they are mounted", () => {
    const volumeMounts = [
      { name: "model", mountPath: "/model" },
      { name: "data", mountPath: "/data" },
    ];
    const of = pod().container("app", { volumeMounts }).build();
    const mounts = [
      { containerPath: "/data", hostPath: "/srv" },
      { containerPath: "/model", hostPath: "", image: "sha256:1" },
    ];
    const running = observed(of, [sandbox()], [seen(app, { mounts })]);
    const shown = (what: ObservedPod, showsVolumeImages: boolean) =>
      derive(of, what, { showsVolumeImages }).containerStatuses?.[0]?.volumeMounts;
    const [model, data] = volumeMounts;
    assert.deepEqual(shown(running, true), [{ ...model, volumeStatus: { image: { imageRef: "sha256:1" } } }, data]);
    assert.deepEqual(shown(running, false), volumeMounts);
    assert.deepEqual(shown(observed(of, [sandbox()], []), true), volumeMounts);
  });

  test("shows what became of recursive read-only mounts", () => {
    const mount = (recursiveReadOnly?: string) => ({
      name: "v",
      mountPath: "/v",
      readOnly: true,
      ...(recursiveReadOnly && { recursiveReadOnly }),
    });
    const of = pod()
      .container("app", {
        volumeMounts: [mount(), mount("IfPossible"), mount("Enabled"), { name: "w", mountPath: "/w" }],
      })
      .build();
    const shown = (hasRecursiveReadOnly: boolean) =>
      derive(of, runs(of), { hasRecursiveReadOnly }).containerStatuses?.[0]?.volumeMounts?.map(
        ({ recursiveReadOnly }) => recursiveReadOnly,
      );
    assert.deepEqual(shown(true), ["Disabled", "Enabled", "Enabled", undefined]);
    assert.deepEqual(shown(false), ["Disabled", "Disabled", "Enabled", undefined]);
  });
});

describe("a pod that the agent ends", () => {
  const failure = { reason: "Preempting", message: "room", disruption: "for another" };

  test("is not Failed while anything of it runs", () => {
    const previous = derive(plain, runs(plain));
    const going = derive(plain, runs(plain), { previous, failure, terminating: true });
    assert.deepEqual(
      [going.phase, going.reason, condition(going, "DisruptionTarget")],
      ["Running", undefined, undefined],
    );
    const stopped = observed(plain, [sandbox({ state: "notReady" })], [seen(app, { state: "exited", exitCode: 0 })]);
    const gone = derive(plain, stopped, { previous: going, failure, terminating: true, finished: true });
    assert.deepEqual([gone.phase, gone.reason, gone.message], ["Failed", "Preempting", "room"]);
    assert.equal(condition(gone, "DisruptionTarget")?.message, "for another");
    assert.equal("disruption" in gone, false);
  });

  test("is Succeeded if it was preempted and all its containers ended with 0", () => {
    const preempted = { ...failure, mayEndWell: true };
    const end = (exitCode: number) => {
      const stopped = observed(plain, [sandbox({ state: "notReady" })], [seen(app, { state: "exited", exitCode })]);
      const previous = derive(plain, runs(plain));
      const gone = derive(plain, stopped, { previous, failure: preempted, terminating: true, finished: true });
      return [gone.phase, gone.reason, condition(gone, "DisruptionTarget")?.status];
    };
    assert.deepEqual(end(0), ["Succeeded", "Preempting", "True"]);
    assert.deepEqual(end(143), ["Failed", "Preempting", "True"]);
  });
});
