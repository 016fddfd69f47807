import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { VolumeScene } from "../../test/support/volumes.ts";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import type { Volume } from "../model/generated/types.ts";
import { OperationMeter } from "./metrics.ts";
import { VolumePendingError } from "./volume-error.ts";

const disk: Volume = { name: "disk", emptyDir: {} };

/** The lines of a metric without its help. */
async function read(metrics: Metrics, name: string): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => line.startsWith(name));
}

test("storage operations are measured by plugin, operation and status, with the labels of Kubernetes", async () => {
  const metrics = new Metrics();
  const missing: Volume = { name: "missing", configMap: { name: "none" } };
  const scene = new VolumeScene([disk, missing], { metrics });
  await scene.refusal({ ...scene.web, spec: { ...scene.web.spec, securityContext: { fsGroup: 7 } } });
  await scene.volumes.teardown("uid-of-web", scene.never);
  const labels = (plugin: string, operation: string, status: string): string =>
    `storage_operation_duration_seconds_count{volume_plugin="kubernetes.io/${plugin}",operation_name="${operation}",status="${status}",migrated="false"} 1`;
  assert.deepEqual((await read(metrics, "storage_operation_duration_seconds_count")).sort(), [
    labels("configmap", "volume_mount", "fail-unknown"),
    labels("empty-dir", "volume_apply_access_control", "success"),
    labels("empty-dir", "volume_mount", "success"),
    labels("empty-dir", "volume_unmount", "success"),
  ]);
});

test("a volume that waits for its attachment has not failed to be mounted", async () => {
  const metrics = new Metrics();
  const meter = new OperationMeter(new FakeClock(), metrics);
  const pending = () => Promise.reject(new VolumePendingError("Volume not attached according to node status"));
  const of = { plugin: "kubernetes.io/csi:driver", operation: "volume_mount" } as const;
  await assert.rejects(meter.measure(of, pending));
  assert.deepEqual(await read(metrics, "storage_operation_duration_seconds_count"), [
    'storage_operation_duration_seconds_count{volume_plugin="kubernetes.io/csi:driver",operation_name="verify_controller_attached_volume",status="fail-unknown",migrated="false"} 1',
  ]);
});

test("volumes are counted by plugin, wanted and set up, also those of an earlier agent", async () => {
  const metrics = new Metrics();
  const claim: Volume = { name: "claim", persistentVolumeClaim: { claimName: "none" } };
  const scene = new VolumeScene([disk], { metrics });
  const waiting = pod("other")
    .container("app")
    .with({ volumes: [disk, claim] })
    .build();
  scene.volumes.wanted([scene.web, waiting]);
  await scene.prepare();
  const line = (plugin: string, state: string, count: number): string =>
    `volume_manager_total_volumes{plugin_name="${plugin}",state="${state}_state_of_world"} ${count}`;
  const before = [
    line("N/A", "desired", 1),
    line("kubernetes.io/empty-dir", "actual", 1),
    line("kubernetes.io/empty-dir", "desired", 2),
  ];
  assert.deepEqual((await read(metrics, "volume_manager_total_volumes")).sort(), before);
  const fresh = new Metrics();
  const next = scene.newAgent({ metrics: fresh });
  next.wanted([scene.web, waiting]);
  await scene.clock.advance(0);
  assert.deepEqual((await read(fresh, "volume_manager_total_volumes")).sort(), before);
  await next.teardown("uid-of-web", scene.never);
  next.wanted([]);
  assert.deepEqual(await read(fresh, "volume_manager_total_volumes"), []);
});

test("the last sweep of orphaned pods is counted, and how many of them could not be removed", async () => {
  const metrics = new Metrics();
  const scene = new VolumeScene([disk], { metrics });
  const other = pod("other")
    .container("app")
    .with({ volumes: [disk] })
    .build();
  await scene.prepare();
  await scene.prepare(other);
  scene.machine.mounts.set(`${scene.directory("empty-dir", "disk")}/bound`, { type: "bind" });
  const fresh = new Metrics();
  await scene.newAgent({ metrics: fresh }).removeOrphans(() => false, scene.never);
  assert.deepEqual(await read(fresh, "kubelet_orphan_pod_cleaned_volumes"), [
    "kubelet_orphan_pod_cleaned_volumes 2",
    "kubelet_orphan_pod_cleaned_volumes_errors 1",
  ]);
});
