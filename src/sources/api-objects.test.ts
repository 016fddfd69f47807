import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type ObjectList } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import type { ConfigMap, Pod } from "../model/generated/types.ts";
import { ApiObjects } from "./api-objects.ts";

type Event = { type: "ADDED" | "MODIFIED" | "DELETED"; object: ConfigMap; resourceVersion: string };

/** A server of ConfigMaps: what is listed, who watches, and what the watches are told. */
function site() {
  const clock = new FakeClock();
  const stop = manyListeners();
  const listed: string[] = [];
  const watching = new Map<string, (event: Event) => void>();
  const objects = new Map<string, ConfigMap>();
  const failures: ApiError[] = [];
  const nameOf = (query: { fieldSelector?: string }): string =>
    query.fieldSelector?.replace("metadata.name=", "") ?? "";
  const api = {
    get: async () => {
      throw new ApiError("NotFound", "none");
    },
    list: async (_resource: unknown, query: { fieldSelector?: string }): Promise<ObjectList<ConfigMap>> => {
      listed.push(nameOf(query));
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      const found = objects.get(nameOf(query));
      return { items: found === undefined ? [] : [found], resourceVersion: "10", continueToken: "" };
    },
    watch: async (_resource: unknown, query: { fieldSelector?: string }, { signal }: { signal: AbortSignal }) => {
      const name = nameOf(query);
      const pending: Event[] = [];
      let more: (() => void) | undefined;
      watching.set(name, (event) => {
        pending.push(event);
        more?.();
      });
      async function* events(): AsyncGenerator<Event> {
        while (!signal.aborted) {
          const next = pending.shift();
          if (next !== undefined) yield next;
          else
            await new Promise<void>((resolve) => {
              more = resolve;
              signal.addEventListener("abort", () => resolve(), { once: true });
            });
        }
        watching.delete(name);
      }
      return events();
    },
  };
  // The fake speaks of ConfigMaps only.
  const source = new ApiObjects({ api: api as never, clock }, stop.signal);
  return { clock, stop, listed, watching, objects, failures, source };
}

const map = (name: string, data: Record<string, string>, more: object = {}): ConfigMap => ({
  metadata: { name, namespace: "ns", uid: `u-${name}`, resourceVersion: String(++version) },
  data,
  ...more,
});
let version = 10;
const ref = (name: string) => ({ kind: "ConfigMap", namespace: "ns", name }) as const;
const user = (name: string): Pod => ({
  metadata: { name: "p", namespace: "ns", uid: "p" },
  spec: { containers: [], volumes: [{ name: "v", configMap: { name } }] },
});

test("an object is listed once, watched, and its changes are told", async () => {
  const { clock, stop, listed, watching, objects, source } = site();
  objects.set("a", map("a", { k: "1" }));
  source.wanted([user("a")]);
  assert.deepEqual((await source.get(ref("a"), stop))?.data, { k: "1" });
  assert.deepEqual((await source.get(ref("a"), stop))?.data, { k: "1" });
  assert.deepEqual(listed, ["a"]);
  let told = 0;
  source.onChange(ref("a"), () => told++, stop);
  await clock.advance(0);
  const changed = map("a", { k: "2" });
  watching.get("a")?.({ type: "MODIFIED", object: changed, resourceVersion: changed.metadata.resourceVersion ?? "" });
  await clock.advance(0);
  assert.equal(told, 1);
  assert.deepEqual((await source.get(ref("a"), stop))?.data, { k: "2" });
  stop.abort();
});

test("the watch ends when no pod refers to the object any more, and begins again for the next", async () => {
  const { clock, stop, listed, watching, objects, source } = site();
  objects.set("a", map("a", {}));
  source.wanted([user("a")]);
  await source.get(ref("a"), stop);
  await clock.advance(0);
  assert.equal(watching.has("a"), true);
  source.wanted([]);
  await clock.advance(0);
  assert.equal(watching.has("a"), false);
  source.wanted([user("a")]);
  await source.get(ref("a"), stop);
  assert.deepEqual(listed, ["a", "a"]);
  stop.abort();
});

test("an immutable object is fetched once and not watched", async () => {
  const { clock, stop, watching, objects, source } = site();
  objects.set("a", map("a", { k: "1" }, { immutable: true }));
  source.wanted([user("a")]);
  await source.get(ref("a"), stop);
  await clock.advance(0);
  assert.equal(watching.has("a"), false);
  assert.deepEqual((await source.get(ref("a"), stop))?.data, { k: "1" });
  stop.abort();
});

test("a refusal just after the binding is tried again at once; one that stays is told", async () => {
  const { clock, stop, objects, failures, source } = site();
  objects.set("a", map("a", { k: "1" }));
  failures.push(new ApiError("Forbidden", "no relationship found between node and object"));
  const reading = source.get(ref("a"), stop);
  await clock.advance(500);
  assert.deepEqual((await reading)?.data, { k: "1" });
  for (let n = 0; n < 20; n++) failures.push(new ApiError("Forbidden", "not yours"));
  const refused = assert.rejects(source.get(ref("b"), stop), /not yours/);
  await clock.advance(5000);
  await refused;
  stop.abort();
});

test("an object that does not exist is undefined, and told of when it appears", async () => {
  const { clock, stop, watching, source } = site();
  source.wanted([user("late")]);
  assert.equal(await source.get(ref("late"), stop), undefined);
  let told = 0;
  source.onChange(ref("late"), () => told++, stop);
  await clock.advance(0);
  const object = map("late", {});
  watching.get("late")?.({ type: "ADDED", object, resourceVersion: object.metadata.resourceVersion ?? "" });
  await clock.advance(0);
  assert.equal(told, 1);
  assert.notEqual(await source.get(ref("late"), stop), undefined);
  stop.abort();
});

test("claims and volumes are asked for, not watched", async () => {
  const { stop, source } = site();
  assert.equal(await source.get({ kind: "PersistentVolume", namespace: "", name: "v" }, stop), undefined);
  stop.abort();
});

test("a secret that is read once is fetched and not watched", async () => {
  const { stop, listed, source } = site();
  assert.equal(
    await source.get({ kind: "Secret", namespace: "ns", name: "s" }, { signal: stop.signal, isOnce: true }),
    undefined,
  );
  assert.deepEqual(listed, []);
  stop.abort();
});

test("CSIDrivers are listed once for all, watched, and their changes are told by name", async () => {
  const { clock, stop, listed, watching, objects, source } = site();
  const driver = (name: string) => ({ kind: "CSIDriver", namespace: "", name }) as const;
  // All kinds of this server are lists of one object by the selector, which is empty here.
  objects.set("", { ...map("disk", {}), metadata: { name: "disk", uid: "u", resourceVersion: "5" } });
  const [found, missing] = await Promise.all([source.get(driver("disk"), stop), source.get(driver("other"), stop)]);
  assert.deepEqual([found?.metadata.name, missing], ["disk", undefined]);
  assert.deepEqual(listed, [""]);
  const told: string[] = [];
  for (const name of ["disk", "other"]) source.onChange(driver(name), () => told.push(name), stop);
  await clock.advance(0);
  const changed = { ...map("disk", {}), metadata: { name: "disk", uid: "u", resourceVersion: "50" } };
  watching.get("")?.({ type: "MODIFIED", object: changed, resourceVersion: "50" });
  await clock.advance(0);
  assert.deepEqual(told, ["disk"]);
  stop.abort();
});

test("CSIDrivers that cannot be listed in time are an error that says why", async () => {
  const { clock, stop, failures, source } = site();
  for (let n = 0; n < 20; n++) failures.push(new ApiError("Forbidden", "not for nodes"));
  const read = source.get({ kind: "CSIDriver", namespace: "", name: "disk" }, stop);
  const refused = assert.rejects(read, /not for nodes/);
  await clock.advance(3000);
  await refused;
  stop.abort();
});
