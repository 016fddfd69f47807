import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, runPods } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import {
  ApiError,
  EVENTS,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  STORAGE_CLASSES,
} from "../../adapters/kubeapi/index.ts";
import type {
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
  StorageClass,
  Volume,
} from "../../model/generated/types.ts";
import type { ControllerDeps } from "../controller.ts";
import { garbageCollectorController } from "../garbage/garbage-collector.ts";
import { schedulerController } from "../scheduler/scheduler.ts";
import type { VolumeDirectories } from "../volume-directories.ts";
import { claimController } from "./claims.ts";

class FakeDirectories implements VolumeDirectories {
  readonly root = "/volumes";
  readonly there = new Set<string>();
  failure: Error | undefined;

  async make(name: string): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.there.add(name);
  }

  async remove(name: string): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    this.there.delete(name);
  }
}

async function bench(t: TestContext, wrap = (deps: ControllerDeps): ControllerDeps => deps) {
  const directories = new FakeDirectories();
  const made = await ControllerBench.start(
    (deps) => claimController({ ...wrap(deps), volumes: directories }),
    schedulerController,
    garbageCollectorController,
  );
  t.after(() => made.close());
  await made.addNode();
  const { api, signal } = made;
  const claim = async (name: string, spec: Partial<PersistentVolumeClaimSpec> = {}) => {
    const full = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec };
    await api.create(
      PERSISTENT_VOLUME_CLAIMS,
      { namespace: "default", object: { metadata: { name }, spec: full } },
      signal,
    );
    await made.settle();
  };
  const volume = async (name: string, size: string, spec: Partial<PersistentVolumeSpec> = {}) => {
    const full = { accessModes: ["ReadWriteOnce"], capacity: { storage: size }, hostPath: { path: "/srv" }, ...spec };
    await api.create(PERSISTENT_VOLUMES, { object: { metadata: { name, labels: { name } }, spec: full } }, signal);
    await made.settle();
  };
  const pod = async (name: string, volumes: readonly Volume[]) => {
    const spec = { containers: [{ name: "c", image: "x" }], volumes };
    await api.create(PODS, { namespace: "default", object: { metadata: { name }, spec } }, signal);
    await made.settle();
  };
  const storageClass = (name: string, more: Partial<StorageClass>) =>
    api.create(
      STORAGE_CLASSES,
      { object: { metadata: { name }, provisioner: "kubelet-ts/local-directory", ...more } },
      signal,
    );
  const getClaim = (name: string) => api.get(PERSISTENT_VOLUME_CLAIMS, { namespace: "default", name }, signal);
  const getVolume = (name: string) => api.get(PERSISTENT_VOLUMES, { name }, signal);
  const phases = async () =>
    Object.fromEntries(
      (await api.list(PERSISTENT_VOLUMES, {}, signal)).items.map((one) => [one.metadata.name, one.status?.phase]),
    );
  const deleteClaim = async (name: string) => {
    await api.delete(PERSISTENT_VOLUME_CLAIMS, { namespace: "default", name }, signal);
    await made.settle();
  };
  const messages = async () =>
    (await api.list(EVENTS, {}, signal)).items.map(({ reason, message }) => `${reason}: ${message}`);
  return { made, directories, claim, volume, pod, storageClass, getClaim, getVolume, phases, deleteClaim, messages };
}

const using = (claimName: string): readonly Volume[] => [{ name: "v", persistentVolumeClaim: { claimName } }];

test("a claim of the default class gets a directory when the first pod uses it", async (t) => {
  const { directories, claim, pod, getClaim, getVolume, messages } = await bench(t);
  await claim("data");
  assert.equal((await getClaim("data")).spec.storageClassName, "standard");
  assert.equal((await getClaim("data")).status?.phase, "Pending");
  assert.ok(
    (await messages()).includes("WaitForFirstConsumer: waiting for first consumer to be created before binding"),
  );
  assert.equal(directories.there.size, 0);
  await pod("p", using("data"));
  const bound = await getClaim("data");
  const name = `pvc-${bound.metadata.uid}`;
  assert.deepEqual(
    [bound.status?.phase, bound.spec.volumeName, { ...bound.status?.capacity }],
    ["Bound", name, { storage: "1Gi" }],
  );
  assert.equal(bound.metadata.annotations?.["pv.kubernetes.io/bind-completed"], "yes");
  assert.equal(bound.metadata.annotations?.["volume.kubernetes.io/selected-node"], "node");
  assert.deepEqual([...directories.there], [name]);
  const { metadata, spec, status } = await getVolume(name);
  assert.equal(spec.local?.path, `/volumes/${name}`);
  assert.equal(spec.claimRef?.uid, bound.metadata.uid);
  assert.equal(spec.persistentVolumeReclaimPolicy, "Delete");
  assert.equal(status?.phase, "Bound");
  assert.equal(metadata.annotations?.["pv.kubernetes.io/provisioned-by"], "kubelet-ts/local-directory");
  assert.deepEqual(metadata.finalizers, ["kubelet-ts/local-directory", "kubernetes.io/pv-protection"]);
});

test("a claim stays while a pod uses it; then volume and directory go with it", async (t) => {
  const { made, directories, claim, pod, getClaim, deleteClaim, phases } = await bench(t);
  await claim("data");
  await pod("p", using("data"));
  await runPods(made);
  await deleteClaim("data");
  assert.deepEqual((await getClaim("data")).metadata.finalizers, ["kubernetes.io/pvc-protection"]);
  assert.equal(directories.there.size, 1);
  await made.api.delete(PODS, { namespace: "default", name: "p" }, made.signal);
  await runPods(made);
  assert.equal((await podsOf(made)).length, 0);
  await assert.rejects(getClaim("data"), { code: "NotFound" });
  assert.deepEqual(await phases(), {});
  assert.equal(directories.there.size, 0);
});

test("a directory stays while it cannot be read whether its claim is there", async (t) => {
  let failures = 0;
  let isDown = false;
  const { made, directories, claim, pod, getClaim, getVolume } = await bench(t, (deps) => ({
    ...deps,
    api: new Proxy(deps.api, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        return (...args: readonly unknown[]): unknown => {
          if (key !== "get" || args[0] !== PERSISTENT_VOLUME_CLAIMS || !isDown)
            return Reflect.apply(value, target, args);
          failures++;
          return Promise.reject(new ApiError("Unavailable", "connection refused"));
        };
      },
    }),
  }));
  await claim("data");
  await pod("p", using("data"));
  const name = (await getClaim("data")).spec.volumeName ?? "";
  assert.deepEqual([...directories.there], [name]);
  isDown = true;
  const body = { metadata: { labels: { touched: "yes" } } };
  await made.api.patch(PERSISTENT_VOLUMES, { name, type: "merge", body }, made.signal);
  await made.advance(60_000);
  assert.ok(failures > 0);
  assert.deepEqual([[...directories.there], (await getVolume(name)).status?.phase], [[name], "Bound"]);
});

test("a class that binds at once does not wait, and Retain keeps everything", async (t) => {
  const { directories, claim, storageClass, getClaim, deleteClaim, phases } = await bench(t);
  await storageClass("now", { volumeBindingMode: "Immediate", reclaimPolicy: "Retain" });
  await claim("data", { storageClassName: "now" });
  const { volumeName = "" } = (await getClaim("data")).spec;
  assert.equal((await getClaim("data")).status?.phase, "Bound");
  await deleteClaim("data");
  assert.deepEqual(await phases(), { [volumeName]: "Released" });
  assert.equal(directories.there.size, 1);
});

test("a claim without a class gets the smallest volume that fits", async (t) => {
  const { claim, volume, getClaim, phases, messages } = await bench(t);
  await claim("data", { storageClassName: "" });
  assert.ok(
    (await messages()).includes(
      "FailedBinding: no persistent volumes available for this claim and no storage class is set",
    ),
  );
  await volume("small", "500Mi");
  await volume("other-class", "2Gi", { storageClassName: "slow" });
  await volume("read-only", "1Gi", { accessModes: ["ReadOnlyMany"] });
  assert.equal((await getClaim("data")).status?.phase, "Pending");
  await volume("fits", "5Gi");
  assert.equal((await getClaim("data")).spec.volumeName, "fits");
  assert.deepEqual({ ...(await getClaim("data")).status?.capacity }, { storage: "5Gi" });
  assert.deepEqual(await phases(), {
    small: "Available",
    "other-class": "Available",
    "read-only": "Available",
    fits: "Bound",
  });
});

test("a selector, a name and a reservation decide which volume", async (t) => {
  const { claim, volume, getClaim, messages } = await bench(t);
  for (const name of ["a", "b", "c"]) await volume(name, "1Gi");
  await volume("reserved", "1Gi", { claimRef: { namespace: "default", name: "mine" } });
  await claim("selecting", { storageClassName: "", selector: { matchLabels: { name: "c" } } });
  await claim("naming", { storageClassName: "", volumeName: "b" });
  await claim("mine", { storageClassName: "" });
  await claim("late", { storageClassName: "", volumeName: "b" });
  const chosen = await Promise.all(
    ["selecting", "naming", "mine"].map(async (name) => (await getClaim(name)).spec.volumeName),
  );
  assert.deepEqual(chosen, ["c", "b", "reserved"]);
  assert.equal((await getClaim("late")).status?.phase, "Pending");
  assert.ok((await messages()).includes('FailedBinding: volume "b" already bound to a different claim.'));
});

test("a volume that is too small for the claim that names it is reported", async (t) => {
  const { claim, volume, messages } = await bench(t);
  await volume("tiny", "1Mi");
  await claim("data", { storageClassName: "", volumeName: "tiny" });
  assert.ok(
    (await messages()).includes('VolumeMismatch: Cannot bind to requested volume "tiny": requested PV is too small'),
  );
});

test("a volume that is made by hand is not deleted with its claim, and one that is deleted waits for its claim", async (t) => {
  const { made, claim, volume, deleteClaim, phases, getVolume } = await bench(t);
  await volume("hand", "1Gi", { persistentVolumeReclaimPolicy: "Delete" });
  await volume("kept", "1Gi");
  await claim("a", { storageClassName: "", volumeName: "hand" });
  await claim("b", { storageClassName: "", volumeName: "kept" });
  await made.api.delete(PERSISTENT_VOLUMES, { name: "kept" }, made.signal);
  await made.settle();
  assert.ok((await getVolume("kept")).metadata.deletionTimestamp);
  await deleteClaim("a");
  await deleteClaim("b");
  assert.deepEqual(await phases(), { hand: "Failed" });
  assert.match((await getVolume("hand")).status?.message ?? "", /no deletable volume plugin matched/);
});

test("a directory elsewhere is never removed", async (t) => {
  const { made, claim, volume, deleteClaim, directories, getVolume } = await bench(t);
  directories.there.add("forged");
  await volume("forged", "1Gi", { persistentVolumeReclaimPolicy: "Delete" });
  const body = { metadata: { annotations: { "pv.kubernetes.io/provisioned-by": "kubelet-ts/local-directory" } } };
  await made.api.patch(PERSISTENT_VOLUMES, { name: "forged", type: "merge", body }, made.signal);
  await claim("data", { storageClassName: "", volumeName: "forged" });
  await deleteClaim("data");
  assert.equal((await getVolume("forged")).status?.phase, "Failed");
  assert.deepEqual([...directories.there], ["forged"]);
});

test("a removal that fails is repeated until it succeeds", async (t) => {
  const { made, claim, pod, deleteClaim, directories, phases } = await bench(t);
  await claim("data");
  await pod("p", using("data"));
  await made.api.delete(PODS, { namespace: "default", name: "p", graceSeconds: 0 }, made.signal);
  await made.settle();
  directories.failure = new Error("busy");
  await deleteClaim("data");
  assert.deepEqual(Object.values(await phases()), ["Failed"]);
  directories.failure = undefined;
  await made.advance(60_000);
  assert.deepEqual(await phases(), {});
  assert.equal(directories.there.size, 0);
});

test("a claim whose volume is lost says so", async (t) => {
  const { made, claim, volume, getClaim, messages } = await bench(t);
  await volume("gone", "1Gi");
  await claim("data", { storageClassName: "" });
  const body = { metadata: { finalizers: null } };
  await made.api.patch(PERSISTENT_VOLUMES, { name: "gone", type: "merge", body }, made.signal);
  await made.api.delete(PERSISTENT_VOLUMES, { name: "gone" }, made.signal);
  await made.settle();
  assert.equal((await getClaim("data")).status?.phase, "Lost");
  assert.ok(
    (await messages()).includes("ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
  );
});

test("a claim of a class of another provisioner, or of none that exists, waits and says why", async (t) => {
  const { claim, storageClass, messages, pod } = await bench(t);
  await storageClass("csi", { provisioner: "csi.example.com", volumeBindingMode: "Immediate" });
  await claim("a", { storageClassName: "csi" });
  await claim("b", { storageClassName: "missing" });
  await claim("c", { volumeMode: "Block" });
  await pod("p", using("c"));
  const found = await messages();
  assert.ok(
    found.some((text) =>
      text.startsWith(
        "ExternalProvisioning: Waiting for a volume to be created either by the external provisioner 'csi.example.com'",
      ),
    ),
  );
  assert.ok(found.includes('ProvisioningFailed: storageclass.storage.k8s.io "missing" not found'));
  assert.ok(found.some((text) => text.includes("a directory cannot be a block device (spec.volumeMode)")));
});

test("an ephemeral volume has a claim of its own, which goes with the pod", async (t) => {
  const { made, pod, getClaim, directories } = await bench(t);
  const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
  await pod("p", [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec } } }]);
  const claim = await getClaim("p-scratch");
  assert.equal(claim.metadata.ownerReferences?.[0]?.name, "p");
  assert.equal(claim.status?.phase, "Bound");
  await made.api.delete(PODS, { namespace: "default", name: "p" }, made.signal);
  await runPods(made);
  await assert.rejects(getClaim("p-scratch"), { code: "NotFound" });
  assert.equal(directories.there.size, 0);
});

test("nothing is written while nothing changes", async (t) => {
  const { made, claim, pod } = await bench(t);
  await claim("waiting");
  await claim("data");
  await pod("p", using("data"));
  await runPods(made);
  assert.equal(await made.writesWithin(3_600_000), 0);
});
