import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { manyListeners } from "../../lib/abort.ts";
import { Metrics } from "../../lib/metrics.ts";
import type { Pod } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { containerType, countPods, rejectionLabel } from "./pod-metrics.ts";

const { signal } = manyListeners();

/** A ring whose numbers are read by `line`. */
function counted(ring: FakeRing): { lines(pattern: RegExp): Promise<string[]> } {
  const metrics = new Metrics();
  const { clock, journal, pool, view } = ring;
  const desired = {
    get: (uid: string) => {
      const found = view.pods().find(({ metadata }) => metadata.uid === uid);
      return found && { uid, pod: found, source: "file", warnings: [], seenAt: view.summary(uid)?.seenAt ?? 0 };
    },
  };
  countPods({ clock, metrics, journal, desired, pool }, { signal });
  return {
    lines: async (pattern) =>
      (await metrics.expose()).body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line)),
  };
}

describe("the numbers of pods", () => {
  test("a start is counted once for the pod and once for each container", async () => {
    const ring = new FakeRing({ first: { exitAfterMs: 2000, exitCode: 0 } });
    const { lines } = counted(ring);
    await ring.want(pod("web").init("first").container("app").container("side").build());
    await ring.clock.advance(3000);
    assert.deepEqual(await lines(/^kubelet_started_/), [
      "kubelet_started_pods_total 1",
      "kubelet_started_pods_errors_total 0",
      'kubelet_started_containers_total{container_type="init_container"} 1',
      'kubelet_started_containers_total{container_type="container"} 2',
    ]);
    assert.deepEqual(await lines(/^kubelet_containers_per_pod_count_(sum|count)/), [
      "kubelet_containers_per_pod_count_sum 2",
      "kubelet_containers_per_pod_count_count 1",
    ]);
    assert.deepEqual(await lines(/^kubelet_pod_worker_start_duration_seconds_count/), [
      "kubelet_pod_worker_start_duration_seconds_count 1",
    ]);
  });

  test("a start is measured once, from the first sight and from the creation, and a restart is none", async () => {
    const ring = new FakeRing({ first: { exitAfterMs: 2000, exitCode: 0 }, app: { exitAfterMs: 5000, exitCode: 1 } });
    const { lines } = counted(ring);
    const made = pod("web").init("first").container("app").build();
    const creationTimestamp = new Date(ring.clock.now().wall - 1000).toISOString();
    await ring.want({ ...made, metadata: { ...made.metadata, creationTimestamp } });
    await ring.clock.advance(60_000);
    assert.ok((await ring.containers()).some(({ attempt }) => attempt > 0));
    assert.deepEqual(await lines(/^kubelet_pod_start_duration_seconds_(sum|count)/), [
      "kubelet_pod_start_duration_seconds_sum 2",
      "kubelet_pod_start_duration_seconds_count 1",
    ]);
    assert.deepEqual(await lines(/^kubelet_pod_start_total_duration_seconds_(sum|count)/), [
      "kubelet_pod_start_total_duration_seconds_sum 3",
      "kubelet_pod_start_total_duration_seconds_count 1",
    ]);
    assert.deepEqual(await lines(/^kubelet_pod_start_sli_duration_seconds_(sum|count)/), [
      "kubelet_pod_start_sli_duration_seconds_sum 1",
      "kubelet_pod_start_sli_duration_seconds_count 1",
    ]);
  });

  test("an agent that finds a pod running measures no start", async () => {
    const ring = new FakeRing();
    const web = pod("web").container("app").build();
    await ring.want(web);
    await ring.restartAgent();
    const { lines } = counted(ring);
    await ring.want(web);
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Running");
    assert.deepEqual(await lines(/^kubelet_pod_start_.*count [^0]/), []);
    assert.deepEqual(await lines(/^kubelet_started_pods_total/), ["kubelet_started_pods_total 0"]);
  });

  test("what cannot be started is counted by its reason", async () => {
    const ring = new FakeRing();
    const { lines } = counted(ring);
    const lost: Pod = pod("web").container("app").build();
    const guest = { name: "debug", image: "debug:1", targetContainerName: "nobody" };
    await ring.want({ ...lost, spec: { ...lost.spec, ephemeralContainers: [guest] } });
    assert.deepEqual(await lines(/^kubelet_started_containers_errors_total/), [
      'kubelet_started_containers_errors_total{container_type="ephemeral_container",code="CreateContainerConfigError"} 1',
    ]);
  });

  test("a refused pod is counted by its reason", async () => {
    const ring = new FakeRing();
    const { lines } = counted(ring);
    await ring.want(
      pod("web")
        .container("app")
        .with({ nodeSelector: { disk: "none" } })
        .build(),
    );
    assert.deepEqual(await lines(/^kubelet_admission_rejections_total/), [
      'kubelet_admission_rejections_total{reason="Other"} 1',
    ]);
  });

  test("a pod that is rejected for its volumes counts, too", async () => {
    const ring = new FakeRing();
    const { lines } = counted(ring);
    const web = pod("web").container("app").build();
    await ring.want(web);
    ring.journal.of(podIdentity(web)).event("Warning", "VolumeAttachmentLimitExceeded", { message: "full" });
    assert.deepEqual(await lines(/^kubelet_admission_rejections_total/), [
      'kubelet_admission_rejections_total{reason="VolumeAttachmentLimitExceeded"} 1',
    ]);
  });

  const labels: [string, string][] = [
    ["OutOfcpu", "OutOfcpu"],
    ["OutOfexample.com/x", "OutOfExtendedResources"],
    ["OutOfhugepages-1Gi", "OutOfExtendedResources"],
    ["Evicted", "Evicted"],
    ["TaintToleration", "Other"],
    ["SMTAlignmentError", "Other"],
  ];
  for (const [reason, label] of labels) {
    test(`a rejection for ${reason} is counted as ${label}, as in Kubernetes`, () =>
      assert.equal(rejectionLabel(reason), label));
  }
});

test("a container that no pod has any more counts as a plain one", () => {
  assert.equal(containerType(undefined, "app"), "container");
});
