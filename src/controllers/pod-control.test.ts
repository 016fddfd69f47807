import assert from "node:assert/strict";
import { test } from "node:test";
import { ControllerBench } from "../../test/support/controllers.ts";
import { PODS, REPLICA_SETS } from "../adapters/kubeapi/index.ts";
import type { ControllerDeps } from "./controller.ts";
import { replicaSetController } from "./replicaset/replica-sets.ts";

/** The most calls of a kind that were under way at once. */
function counted(deps: ControllerDeps) {
  const most = { create: 0, delete: 0 };
  const now = { create: 0, delete: 0 };
  const during = async <T>(name: "create" | "delete", work: () => Promise<T>): Promise<T> => {
    most[name] = Math.max(most[name], ++now[name]);
    return work().finally(() => now[name]--);
  };
  const api = new Proxy(deps.api, {
    get: (from, name) => {
      const method = Reflect.get(from, name).bind(from);
      if (name !== "create" && name !== "delete") return method;
      return (...args: unknown[]) => during(name, () => method(...args));
    },
  });
  return { most, deps: { ...deps, api } };
}

test("many pods are created and deleted in small batches: the API works on each for half a millisecond", async (t) => {
  let most = { create: 0, delete: 0 };
  const made = await ControllerBench.start((deps) => {
    const watched = counted(deps);
    most = watched.most;
    return replicaSetController(watched.deps);
  });
  t.after(() => made.close());
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "x" }] } };
  const spec = { replicas: 200, selector: { matchLabels: { a: "b" } }, template };
  const pods = async () => (await made.api.list(PODS, {}, made.signal)).items.length;
  await made.api.create(REPLICA_SETS, { namespace: "default", object: { metadata: { name: "r" }, spec } }, made.signal);
  for (let turn = 0; turn < 20 && (await pods()) < 200; turn++) await made.settle();
  assert.deepEqual([await pods(), most.create], [200, 32]);
  const scaled = { namespace: "default", name: "r", type: "merge", body: { spec: { replicas: 0 } } } as const;
  await made.api.patch(REPLICA_SETS, scaled, made.signal);
  for (let turn = 0; turn < 20 && (await pods()) > 0; turn++) await made.settle();
  assert.deepEqual([await pods(), most.delete], [0, 32]);
});
