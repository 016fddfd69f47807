import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ApiError, type ApiErrorCode, type KubeApi, type WatchEvent } from "../../src/adapters/kubeapi/port.ts";
import { Reflector } from "../../src/adapters/kubeapi/reflector.ts";
import type { ObjectChange } from "../../src/adapters/kubeapi/reflector-store.ts";
import { CONFIG_MAPS, NODES, PODS, SECRETS, SERVICE_ACCOUNTS } from "../../src/adapters/kubeapi/resources.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { ConfigMap, Pod } from "../../src/model/generated/types.ts";

/** An API server with an empty namespace and a client that may do everything in it. */
export interface KubeApiHarness {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly namespace: string;
  stop(): Promise<void>;
}

const never = { signal: manyListeners().signal };

async function rejects(promise: Promise<unknown>, code: ApiErrorCode): Promise<ApiError> {
  const error = await promise.then(
    () => assert.fail(`it should have failed with ${code}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.code, code, error.message);
  return error;
}

/** Waits for a condition, looking after every turn of the event loop; the real server gets real time. */
export async function until(what: string, condition: () => boolean, limitMs = 20_000): Promise<void> {
  const end = performance.now() + limitMs;
  for (let turn = 0; !condition(); turn++) {
    assert.ok(performance.now() < end, `not reached: ${what}`);
    // A server that needs longer needs the processor, too.
    await new Promise((resolve) => (turn < 1000 ? setImmediate(resolve) : setTimeout(resolve, 10)));
  }
}

/** What every implementation of the API must do. */
export function kubeApiContract(name: string, start: () => Promise<KubeApiHarness>): void {
  describe(`Kubernetes API: ${name}`, () => {
    let harness: KubeApiHarness;
    before(async () => {
      harness = await start();
    });
    after(() => harness.stop());

    const map = (mapName: string, data: Record<string, string>): { namespace: string; object: ConfigMap } => ({
      namespace: harness.namespace,
      object: { metadata: { name: mapName }, data },
    });
    const at = (mapName: string) => ({ namespace: harness.namespace, name: mapName });

    test("what is created can be read, without field ownership and with its kind", async () => {
      const created = await harness.api.create(CONFIG_MAPS, map("read", { a: "1" }), never);
      assert.ok(created.metadata.uid);
      const read = await harness.api.get(CONFIG_MAPS, at("read"), never);
      assert.deepEqual(read, created);
      assert.equal(read.kind, "ConfigMap");
      assert.equal(read.apiVersion, "v1");
      assert.ok(!("managedFields" in read.metadata));
    });

    test("a second object of the name is AlreadyExists, a missing one NotFound, a bad one Invalid", async () => {
      await harness.api.create(CONFIG_MAPS, map("twice", {}), never);
      await rejects(harness.api.create(CONFIG_MAPS, map("twice", {}), never), "AlreadyExists");
      const missing = await rejects(harness.api.get(CONFIG_MAPS, at("missing"), never), "NotFound");
      assert.equal(missing.httpStatus, 404);
      assert.equal(missing.status?.reason, "NotFound");
      await rejects(harness.api.create(CONFIG_MAPS, map("Not A Name", {}), never), "Invalid");
    });

    test("a stale update is a Conflict, a fresh one is stored", async () => {
      const first = await harness.api.create(CONFIG_MAPS, map("update", { n: "1" }), never);
      const second = await harness.api.update(
        CONFIG_MAPS,
        { ...at("update"), object: { ...first, data: { n: "2" } } },
        never,
      );
      assert.notEqual(second.metadata.resourceVersion, first.metadata.resourceVersion);
      await rejects(harness.api.update(CONFIG_MAPS, { ...at("update"), object: first }, never), "Conflict");
      assert.deepEqual((await harness.api.get(CONFIG_MAPS, at("update"), never)).data, { n: "2" });
    });

    test("json, merge and strategic patches change only what they name", async () => {
      await harness.api.create(CONFIG_MAPS, map("patch", { a: "1", b: "1", c: "1" }), never);
      const patch = (type: "json" | "merge" | "strategic", body: unknown): Promise<ConfigMap> =>
        harness.api.patch(CONFIG_MAPS, { ...at("patch"), type, body }, never);
      await patch("json", [{ op: "replace", path: "/data/a", value: "2" }]);
      await patch("merge", { data: { b: "2" } });
      const last = await patch("strategic", { data: { c: null, d: "2" } });
      assert.deepEqual(last.data, { a: "2", b: "2", d: "2" });
      await rejects(patch("json", [{ op: "test", path: "/data/a", value: "9" }]), "Invalid");
    });

    test("apply creates and changes", async () => {
      const apply = (data: Record<string, string>): Promise<ConfigMap> =>
        harness.api.patch(
          CONFIG_MAPS,
          {
            ...at("apply"),
            type: "apply",
            fieldManager: "suite",
            body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "apply" }, data },
          },
          never,
        );
      assert.deepEqual((await apply({ a: "1" })).data, { a: "1" });
      assert.deepEqual((await apply({ a: "2" })).data, { a: "2" });
    });

    test("a status patch leaves the rest alone, and a wrong UID in it is refused", async () => {
      const name = `suite-node-${Date.now()}`;
      const node = await harness.api.create(NODES, { object: { metadata: { name }, spec: {} } }, never);
      const body = { metadata: { uid: node.metadata.uid, labels: { x: "y" } }, status: { phase: "Running" } };
      const change = { name, type: "strategic", subresource: "status", body } as const;
      const patched = await harness.api.patch(NODES, change, never);
      assert.equal(patched.status?.phase, "Running");
      const wrong = { ...change, body: { metadata: { uid: "another" }, status: { phase: "Pending" } } };
      await assert.rejects(harness.api.patch(NODES, wrong, never), { name: "ApiError", code: /^(Conflict|Invalid)$/ });
      await harness.api.delete(NODES, { name }, never);
      await rejects(harness.api.get(NODES, { name }, never), "NotFound");
    });

    test("a delete with the wrong UID is a Conflict, with the right one the object is gone", async () => {
      const created = await harness.api.create(CONFIG_MAPS, map("delete", {}), never);
      await rejects(harness.api.delete(CONFIG_MAPS, { ...at("delete"), uid: "another" }, never), "Conflict");
      await harness.api.delete(CONFIG_MAPS, { ...at("delete"), uid: created.metadata.uid }, never);
      await rejects(harness.api.delete(CONFIG_MAPS, at("delete"), never), "NotFound");
    });

    test("a list comes in pages, which together are all", async () => {
      for (const n of [1, 2, 3, 4, 5]) {
        const object = { metadata: { name: `page-${n}` } };
        await harness.api.create(SECRETS, { namespace: harness.namespace, object }, never);
      }
      const names: (string | undefined)[] = [];
      let continueToken = "";
      let pages = 0;
      do {
        const query = { namespace: harness.namespace, limit: 2, continueToken };
        const page = await harness.api.list(SECRETS, query, never);
        assert.ok(page.items.length <= 2);
        assert.ok(page.items.every(({ kind, metadata }) => kind === "Secret" && !("managedFields" in metadata)));
        names.push(...page.items.map(({ metadata }) => metadata.name));
        continueToken = page.continueToken;
        pages++;
      } while (continueToken !== "");
      assert.deepEqual(names.sort(), ["page-1", "page-2", "page-3", "page-4", "page-5"]);
      assert.equal(pages, 3);
    });

    test("a watch tells what happens to the selected object, in order, until it is left", async () => {
      const { resourceVersion } = await harness.api.list(CONFIG_MAPS, { namespace: harness.namespace }, never);
      const query = {
        namespace: harness.namespace,
        fieldSelector: "metadata.name=seen",
        resourceVersion,
        timeoutSeconds: 60,
      };
      const events = await harness.api.watch(CONFIG_MAPS, query, never);
      await harness.api.create(CONFIG_MAPS, map("unseen", {}), never);
      await harness.api.create(CONFIG_MAPS, map("seen", { n: "1" }), never);
      await harness.api.patch(CONFIG_MAPS, { ...at("seen"), type: "merge", body: { data: { n: "2" } } }, never);
      await harness.api.delete(CONFIG_MAPS, at("seen"), never);
      const seen: WatchEvent<ConfigMap>[] = [];
      for await (const event of events) {
        if (event.type !== "BOOKMARK") seen.push(event);
        if (seen.length === 3) break;
      }
      assert.deepEqual(
        seen.map((event) => (event.type === "BOOKMARK" ? "" : `${event.type} ${event.object.data?.n}`)),
        ["ADDED 1", "MODIFIED 2", "DELETED 2"],
      );
    });

    test("an aborted watch ends with the signal's reason", async () => {
      const { resourceVersion } = await harness.api.list(CONFIG_MAPS, { namespace: harness.namespace }, never);
      const controller = new AbortController();
      const query = { namespace: harness.namespace, resourceVersion, timeoutSeconds: 60 };
      const events = await harness.api.watch(CONFIG_MAPS, query, { signal: controller.signal });
      const reason = new Error("enough");
      setImmediate(() => controller.abort(reason));
      await assert.rejects(async () => {
        for await (const event of events) assert.equal(event.type, "BOOKMARK");
      }, reason);
    });

    test("a service account's token can be asked for", async () => {
      const object = { metadata: { name: "robot" } };
      await harness.api.create(SERVICE_ACCOUNTS, { namespace: harness.namespace, object }, never);
      const request = { metadata: {}, spec: { audiences: [], expirationSeconds: 600 } };
      const answer = await harness.api.createToken({ namespace: harness.namespace, name: "robot" }, request, never);
      assert.ok(answer.status?.token);
      assert.ok(Date.parse(answer.status.expirationTimestamp ?? "") > 0);
    });

    test("anything else can be asked for raw", async () => {
      const { status, body } = await harness.api.raw({ method: "GET", path: "/version" }, never);
      assert.equal(status, 200);
      assert.match((JSON.parse(body.toString()) as { gitVersion: string }).gitVersion, /^v1\./);
      await rejects(harness.api.raw({ method: "GET", path: "/no/such/path" }, never), "NotFound");
    });

    test("a reflector tells each change once, and a name taken by another object as two", async (t) => {
      const log: string[] = [];
      const word = (change: ObjectChange<Pod>): string =>
        `${change.kind} ${change.object.metadata.name} ${change.object.metadata.labels?.n}`;
      const pod = (n: string): { namespace: string; object: Pod } => ({
        namespace: harness.namespace,
        object: {
          metadata: { name: "web", labels: { n } },
          spec: { containers: [{ name: "c", image: "x" }], nodeName: "suite-node" },
        },
      });
      await harness.api.create(PODS, pod("1"), never);
      const reflector = new Reflector<Pod>(
        { api: harness.api, clock: harness.clock },
        {
          resource: PODS,
          select: { namespace: harness.namespace, fieldSelector: "spec.nodeName=suite-node" },
          firstList: "latest",
          onChange: (change) => log.push(word(change)),
          onSync: () => log.push("synced"),
        },
      );
      const controller = new AbortController();
      const running = reflector.run(controller);
      t.after(() => controller.abort());
      await until("the first list", () => reflector.hasSynced);
      await harness.api.patch(PODS, { ...at("web"), type: "merge", body: { metadata: { labels: { n: "2" } } } }, never);
      await harness.api.delete(PODS, { ...at("web"), graceSeconds: 0 }, never);
      await harness.api.create(PODS, pod("3"), never);
      await until("the last change", () => log.includes("added web 3"));
      // The real server marks a pod as deleted before it removes it, also without grace.
      const distinct = log.filter((line, index) => line !== log[index - 1]);
      assert.deepEqual(distinct, ["added web 1", "synced", "updated web 2", "deleted web 2", "added web 3"]);
      assert.equal(reflector.objects.get(`${harness.namespace}/web`)?.metadata.labels?.n, "3");
      await harness.api.delete(PODS, { ...at("web"), graceSeconds: 0 }, never);
      await until("an empty store", () => reflector.objects.size === 0);
      controller.abort();
      await running;
    });

    test("a watch from a version that nobody remembers is Gone or ends at once, never silent", async () => {
      const query = { namespace: harness.namespace, resourceVersion: "1", timeoutSeconds: 5 };
      const outcome = await (async () => {
        for await (const event of await harness.api.watch(CONFIG_MAPS, query, never)) return event.type;
        return "end";
      })().catch((error: unknown) => (error instanceof ApiError ? error.code : String(error)));
      assert.ok(["Gone", "ADDED"].includes(outcome), outcome);
    });
  });
}
