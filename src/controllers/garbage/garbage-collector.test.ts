import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { ApiError, CONFIG_MAPS, EVENTS, NAMESPACES, PODS, SECRETS } from "../../adapters/kubeapi/index.ts";
import type { ConfigMap, ObjectMeta, OwnerReference } from "../../model/generated/types.ts";
import type { ControllerFactory } from "../controller.ts";
import { garbageCollectorController } from "./garbage-collector.ts";

async function bench(t: TestContext, factory: ControllerFactory = garbageCollectorController) {
  const made = await ControllerBench.start(factory);
  t.after(() => made.close());
  const { api, signal } = made;
  const make = (name: string, metadata: Partial<ObjectMeta> = {}, namespace = "default") =>
    api.create(CONFIG_MAPS, { namespace, object: { metadata: { name, ...metadata } } }, signal);
  const owned = (owner: ConfigMap, more: Partial<OwnerReference> = {}): Partial<ObjectMeta> => ({
    ownerReferences: [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        name: owner.metadata.name ?? "",
        uid: owner.metadata.uid ?? "",
        ...more,
      },
    ],
  });
  const remove = async (name: string, propagation: "Background" | "Foreground" | "Orphan") => {
    await api.delete(CONFIG_MAPS, { namespace: "default", name, propagation }, signal);
    await made.settle();
  };
  const names = async (namespace = "default") =>
    (await api.list(CONFIG_MAPS, { namespace }, signal)).items
      .map(({ metadata }) => metadata.name)
      .filter((name) => name !== "kube-root-ca.crt");
  return { made, make, owned, remove, names };
}

test("what an owner leaves behind is deleted, through several generations", async (t) => {
  const { made, make, owned, remove, names } = await bench(t);
  const a = await make("a");
  const b = await make("b", owned(a));
  await make("c", owned(b));
  await make("other");
  await made.settle();
  await remove("a", "Background");
  assert.deepEqual(await names(), ["other"]);
});

test("nothing is deleted while it cannot be read whether its owner is there", async (t) => {
  let isDown = true;
  const failing: ControllerFactory = (deps) => {
    const api = new Proxy(deps.api, {
      get: (target, key) => {
        const value: unknown = Reflect.get(target, key);
        if (typeof value !== "function") return value;
        return (...args: readonly unknown[]): unknown => {
          const [, at] = args as readonly [unknown, { readonly name?: string } | undefined];
          if (key === "get" && at?.name === "ghost" && isDown) {
            return Promise.reject(new ApiError("Unavailable", "connection refused"));
          }
          return Reflect.apply(value, target, args);
        };
      },
    });
    return garbageCollectorController({ ...deps, api });
  };
  const { made, make, names } = await bench(t, failing);
  const reference = { apiVersion: "v1", kind: "Secret", name: "ghost", uid: "uid-of-ghost" };
  await make("owned", { ownerReferences: [reference] });
  await made.advance(60_000);
  assert.deepEqual(await names(), ["owned"]);
  isDown = false;
  await made.advance(60_000);
  assert.deepEqual(await names(), []);
});

test("an object that is released lives on, though the collector hears of it after the end of its owner", async (t) => {
  let open = (): void => undefined;
  let gate = Promise.resolve();
  async function* held<E>(events: AsyncIterable<E>): AsyncIterable<E> {
    for await (const event of events) {
      await gate;
      yield event;
    }
  }
  const late: ControllerFactory = (deps) => {
    const watch: typeof deps.api.watch = async (resource, query, options) => {
      const events = await deps.api.watch(resource, query, options);
      return resource.kind === "ConfigMap" ? held(events) : events;
    };
    const api = new Proxy(deps.api, {
      get: (target, key) => {
        if (key === "watch") return watch;
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    return garbageCollectorController({ ...deps, api });
  };
  const { made, make, names } = await bench(t, late);
  const { api, signal } = made;
  const at = { namespace: "default", name: "owner" };
  const { metadata } = await api.create(SECRETS, { ...at, object: { metadata: { name: "owner" } } }, signal);
  const reference = { apiVersion: "v1", kind: "Secret", name: "owner", uid: metadata.uid ?? "" };
  await make("released", { ownerReferences: [reference] });
  await make("owned", { ownerReferences: [reference] });
  await made.settle();
  gate = new Promise((resolve) => {
    open = resolve;
  });
  const body = { metadata: { ownerReferences: null } };
  await api.patch(CONFIG_MAPS, { namespace: "default", name: "released", type: "merge", body }, signal);
  await api.delete(SECRETS, at, signal);
  await made.settle();
  open();
  await made.settle();
  assert.deepEqual(await names(), ["released"]);
});

test("an object with a UID that never was is deleted, one with a reference to a kind not served stays", async (t) => {
  const { made, make, names } = await bench(t);
  await make("lost", { ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "1-2" }] });
  await make("kept", { ownerReferences: [{ apiVersion: "example.com/v1", kind: "Thing", name: "x", uid: "1-2" }] });
  await made.settle();
  assert.deepEqual(await names(), ["kept"]);
});

test("an owner in another namespace is none, and the event says so", async (t) => {
  const { made, make, owned, names } = await bench(t);
  const { api, signal } = made;
  await api.create(NAMESPACES, { object: { metadata: { name: "n" }, spec: {} } }, signal);
  const owner = await make("owner");
  const { uid } = (await make("lost", owned(owner), "n")).metadata;
  await make("near", owned(owner));
  await made.settle();
  assert.deepEqual(await names("n"), []);
  assert.deepEqual(await names(), ["near", "owner"]);
  const { items } = await api.list(EVENTS, { namespace: "n" }, signal);
  assert.deepEqual(
    items.map(({ type, reason, message, involvedObject, source }) => ({
      type,
      reason,
      message,
      uid: involvedObject.uid,
      component: source?.component,
    })),
    [
      {
        type: "Warning",
        reason: "OwnerRefInvalidNamespace",
        message: `ownerRef [v1/ConfigMap, namespace: n, name: owner, uid: ${owner.metadata.uid}] does not exist in namespace "n"`,
        uid,
        component: "garbage-collector-controller",
      },
    ],
  );
});

test("a reference with the UID of an owner and the name of another is one to nobody", async (t) => {
  const { made, make, owned, names } = await bench(t);
  const owner = await make("owner");
  await make("other");
  await make("misnamed", owned(owner, { name: "other" }));
  await make("misplaced", owned(owner, { kind: "Secret" }));
  await made.settle();
  assert.deepEqual(await names(), ["other", "owner"]);
});

test("a cluster-scoped object with a namespaced owner is left alone, also after the end of the owner", async (t) => {
  const { made, make, owned, remove } = await bench(t);
  const { api, signal } = made;
  const owner = await make("owner");
  await api.create(NAMESPACES, { object: { metadata: { name: "n", ...owned(owner) }, spec: {} } }, signal);
  await made.settle();
  await remove("owner", "Background");
  const { metadata } = await api.get(NAMESPACES, { name: "n" }, signal);
  assert.equal(metadata.deletionTimestamp, undefined);
  assert.equal(metadata.ownerReferences?.length, 1);
});

test("a deletion in the foreground waits for dependents that block it", async (t) => {
  const { made, make, owned, remove, names } = await bench(t);
  const a = await make("a");
  const reference = owned(a, { blockOwnerDeletion: true });
  await make("slow", { ...reference, finalizers: ["example.com/wait"] });
  await make("quick", reference);
  await made.settle();
  await remove("a", "Foreground");
  assert.deepEqual(await names(), ["a", "slow"]);
  const body = { metadata: { finalizers: null } };
  await made.api.patch(CONFIG_MAPS, { namespace: "default", name: "slow", type: "merge", body }, made.signal);
  await made.settle();
  assert.deepEqual(await names(), []);
});

test("orphans lose the reference and stay", async (t) => {
  const { made, make, owned, remove, names } = await bench(t);
  const a = await make("a");
  await make("b", owned(a));
  await made.settle();
  await remove("a", "Orphan");
  assert.deepEqual(await names(), ["b"]);
  const left = await made.api.get(CONFIG_MAPS, { namespace: "default", name: "b" }, made.signal);
  assert.equal(left.metadata.ownerReferences, undefined);
});

test("a namespace goes when its content is gone, pods first", async (t) => {
  const { made, make, names } = await bench(t);
  const { api, signal } = made;
  await api.create(NAMESPACES, { object: { metadata: { name: "n" }, spec: {} } }, signal);
  await make("a", {}, "n");
  const containers = [{ name: "c", image: "x" }];
  const pod = { metadata: { name: "p", finalizers: ["example.com/wait"] }, spec: { containers } };
  await api.create(PODS, { namespace: "n", object: pod }, signal);
  await api.create(SECRETS, { namespace: "n", object: { metadata: { name: "s" } } }, signal);
  await made.settle();
  await api.delete(NAMESPACES, { name: "n" }, signal);
  await made.settle();
  assert.deepEqual(await names("n"), ["a"]);
  const namespace = await api.get(NAMESPACES, { name: "n" }, signal);
  assert.deepEqual(
    namespace.status?.conditions?.filter(({ status }) => status === "True").map(({ message }) => message),
    [
      "Some resources are remaining: configmaps. has 2 resource instances, pods. has 1 resource instances, secrets. has 1 resource instances, serviceaccounts. has 1 resource instances",
      "Some content in the namespace has finalizers remaining: example.com/wait in 1 resource instances",
    ],
  );
  const body = { metadata: { finalizers: null } };
  await api.patch(PODS, { namespace: "n", name: "p", type: "merge", body }, signal);
  await made.settle();
  await assert.rejects(api.get(NAMESPACES, { name: "n" }, signal), (error: ApiError) => error.code === "NotFound");
  assert.deepEqual(await names("n"), []);
});

test("an empty namespace goes at once", async (t) => {
  const { made } = await bench(t);
  await made.api.create(NAMESPACES, { object: { metadata: { name: "n" }, spec: {} } }, made.signal);
  await made.settle();
  await made.api.delete(NAMESPACES, { name: "n" }, made.signal);
  await made.settle();
  const all = await made.api.list(NAMESPACES, {}, made.signal);
  assert.ok(!all.items.some(({ metadata }) => metadata.name === "n"));
});
