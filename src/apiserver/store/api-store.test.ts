import assert from "node:assert/strict";
import { test } from "node:test";
import { type LogContent, LogError, MemoryLog } from "../../adapters/objectlog/index.ts";
import { ApiStore } from "./api-store.ts";
import { Collection, type CollectionOptions } from "./collection.ts";
import type { EventQueue } from "./event-queue.ts";
import type { JsonObject } from "./stored-object.ts";

const PODS: CollectionOptions = { id: "pods", history: { events: 3, bytes: 10 } };
const SECRETS: CollectionOptions = { id: "secrets", isSecret: true };

async function openStore(log = new MemoryLog(), options: { mostLength?: number } = {}) {
  const store = await ApiStore.open(
    async () => ({ log, objects: [], revision: 10 }),
    (revision) => new Map([PODS, SECRETS].map((one) => [one.id, new Collection(one, revision)])),
    options,
  );
  return { store, log };
}

const at = (name: string, namespace = "default") => ({ namespace, name });
const pod = (name: string, more: JsonObject = {}): JsonObject => ({ metadata: { name }, ...more });

function drained(queue: EventQueue | undefined): string[] {
  return (queue?.take() ?? []).map(({ type, object }) => `${type} ${object.name} ${object.revision}`);
}

test("a write is seen only when it is durable, and a watch sees it before the writer goes on", async () => {
  const { store } = await openStore();
  const queue = store.watch("pods", store.revision);
  const writing = store.commit((tx) => tx.put("pods", at("a"), pod("a")));
  assert.equal(store.get("pods", at("a")), undefined);
  assert.deepEqual(drained(queue), []);
  const object = await writing;
  assert.equal(store.get("pods", at("a")), object);
  assert.equal(store.revision, 11);
  assert.equal(object.text, '{"metadata":{"name":"a","resourceVersion":"11"}}');
  assert.deepEqual(drained(queue), ["added a 11"]);
});

test("a transaction reads its own writes and those that are not durable yet", async () => {
  const { store } = await openStore();
  const first = store.commit((tx) => tx.put("pods", at("a"), pod("a")));
  const second = store.commit((tx) => {
    assert.ok(tx.get("pods", at("a")));
    tx.remove("pods", at("a"));
    assert.equal(tx.get("pods", at("a")), undefined);
    tx.put("pods", at("b"), pod("b"));
    return tx.list("pods").map(({ name }) => name);
  });
  await first;
  assert.deepEqual(await second, ["b"]);
  assert.deepEqual(
    store.list("pods").map(({ name }) => name),
    ["b"],
  );
});

test("an object that is deleted, created and deleted while writes are pending stays deleted for the next one", async () => {
  const { store } = await openStore();
  await store.commit((tx) => tx.put("pods", at("a"), pod("a")));
  const work = [
    store.commit((tx) => tx.remove("pods", at("a"))),
    store.commit((tx) => tx.put("pods", at("a"), pod("a"))),
    store.commit((tx) => tx.remove("pods", at("a"))),
  ];
  for (const one of work) {
    await one;
    await store.commit((tx) => assert.equal(tx.get("pods", at("a")), undefined));
  }
});

test("writes that come while one is written are appended together, and in order", async () => {
  const { store, log } = await openStore();
  let appends = 0;
  const append = log.append.bind(log);
  log.append = (writes) => {
    appends++;
    return append(writes);
  };
  await Promise.all(["a", "b", "c", "d"].map((name) => store.commit((tx) => tx.put("pods", at(name), pod(name)))));
  assert.equal(appends, 2);
  assert.deepEqual(
    log.writes.map(({ key, revision }) => `${key} ${revision}`),
    ["pods/default/a 11", "pods/default/b 12", "pods/default/c 13", "pods/default/d 14"],
  );
});

test("a failed write rejects it and all that was prepared on it, and leaves what was there", async () => {
  const { store, log } = await openStore();
  await store.commit((tx) => tx.put("pods", at("a"), pod("a")));
  const queue = store.watch("pods", store.revision);
  log.failure = new LogError("NoSpace", "no space");
  const results = await Promise.allSettled([
    store.commit((tx) => tx.put("pods", at("b"), pod("b"))),
    store.commit((tx) => tx.put("pods", at("c"), { ...pod("c"), saw: tx.get("pods", at("b"))?.name })),
    // Reads only, but what it reads is not there.
    store.commit((tx) => tx.get("pods", at("b"))?.name),
  ]);
  assert.deepEqual(
    results.map((result) => (result.status === "rejected" ? (result.reason as LogError).code : result.value)),
    ["NoSpace", "NoSpace", "NoSpace"],
  );
  assert.deepEqual(drained(queue), []);
  log.failure = undefined;
  await store.commit((tx) => {
    assert.equal(tx.get("pods", at("b")), undefined);
    tx.put("pods", at("d"), pod("d"));
  });
  assert.deepEqual(
    store.list("pods").map(({ name }) => name),
    ["a", "d"],
  );
});

test("what a transaction throws is the caller's, and nothing of it is written", async () => {
  const { store, log } = await openStore();
  const refused = store.commit((tx) => {
    tx.put("pods", at("a"), pod("a"));
    throw new Error("refused");
  });
  await assert.rejects(refused, /refused/);
  await store.commit((tx) => tx.put("pods", at("b"), pod("b")));
  assert.deepEqual(
    log.writes.map(({ key }) => key),
    ["pods/default/b"],
  );
});

test("lists are ordered by namespace and name, and can be had as of an earlier revision", async () => {
  const { store } = await openStore();
  for (const [name, namespace] of [
    ["b", "x"],
    ["a", "x"],
    ["z", "default"],
  ] as const) {
    await store.commit((tx) => tx.put("pods", at(name, namespace), pod(name)));
  }
  const then = store.revision;
  await store.commit((tx) => {
    tx.remove("pods", at("a", "x"));
    tx.put("pods", at("c", "x"), pod("c"));
  });
  await store.commit((tx) => tx.put("pods", at("z"), pod("z", { spec: 2 })));
  const names = (list: ReturnType<typeof store.listAt>) => list?.map(({ namespace, name }) => `${namespace}/${name}`);
  assert.deepEqual(names(store.list("pods")), ["default/z", "x/b", "x/c"]);
  assert.deepEqual(names(store.listAt("pods", then)), ["default/z", "x/a", "x/b"]);
  assert.equal(store.listAt("pods", then)?.[0]?.parse().spec, undefined);
});

test("a watch begins after its revision, and one from before the kept history is refused", async () => {
  const { store } = await openStore();
  for (const name of ["a", "b", "c", "d", "e"]) await store.commit((tx) => tx.put("pods", at(name), pod(name)));
  assert.equal(store.oldest("pods"), 12);
  assert.equal(store.watch("pods", 11), undefined);
  assert.equal(store.listAt("pods", 11), undefined);
  assert.deepEqual(drained(store.watch("pods", 12)), ["added c 13", "added d 14", "added e 15"]);
  assert.deepEqual(drained(store.watch("secrets", 10)), []);
});

test("what happened before the start is not known to watches", async () => {
  const { store } = await openStore();
  assert.equal(store.watch("pods", 9), undefined);
  assert.ok(store.watch("pods", 10));
});

test("a watcher that takes nothing is ended, and one that is closed gets nothing more", async () => {
  const { store } = await openStore();
  const slow = store.watch("pods", store.revision);
  const closed = store.watch("pods", store.revision);
  closed?.close();
  await store.commit((tx) => {
    for (let n = 0; n < 2500; n++) tx.put("pods", at(`p${n}`), pod(`p${n}`));
  });
  assert.equal(slow?.isClosed, true);
  assert.deepEqual(drained(closed), []);
});

test("closing ends the watches, lets begun writes finish and refuses later ones", async () => {
  const { store } = await openStore();
  const queue = store.watch("pods", store.revision);
  const writing = store.commit((tx) => tx.put("pods", at("a"), pod("a")));
  await store.close();
  await writing;
  assert.equal(queue?.isClosed, true);
  await assert.rejects(
    store.commit(() => undefined),
    { code: "Closed" },
  );
});

test("a rewrite of the log keeps each object as it is, secrets as such, and nothing that was deleted or refused", async () => {
  let content: (() => LogContent) | undefined;
  const log = new MemoryLog();
  const store = await ApiStore.open(
    async (read) => {
      content = read;
      return { log, objects: [], revision: 10 };
    },
    (revision) => new Map([PODS, SECRETS].map((options) => [options.id, new Collection(options, revision)])),
  );
  await store.commit((tx) => tx.put("pods", at("a"), pod("a", { spec: 1 })));
  await store.commit((tx) => tx.put("pods", at("gone"), pod("gone")));
  await store.commit((tx) => tx.put("secrets", at("s"), pod("s")));
  await store.commit((tx) => tx.remove("pods", at("gone")));
  log.failure = new LogError("NoSpace", "no space");
  await assert.rejects(store.commit((tx) => tx.put("pods", at("b"), pod("b"))));
  const { revision, objects } = content?.() ?? assert.fail("the log was not given the content");
  assert.equal(revision, 14);
  assert.deepEqual(
    [...objects],
    [
      {
        key: "pods/default/a",
        revision: 11,
        value: '{"metadata":{"name":"a","resourceVersion":"11"},"spec":1}',
        isSecret: false,
      },
      {
        key: "secrets/default/s",
        revision: 13,
        value: '{"metadata":{"name":"s","resourceVersion":"13"}}',
        isSecret: true,
      },
    ],
  );
});

test("the objects of a newer version stay on disk", async () => {
  let content: (() => { objects: Iterable<{ key: string }> }) | undefined;
  const objects = [{ key: "widgets/default/a", revision: 3, value: "{}" }];
  await ApiStore.open(
    async (read) => {
      content = read;
      return { log: new MemoryLog(), objects, revision: 3 };
    },
    (revision) => new Map([["pods", new Collection(PODS, revision)]]),
  );
  assert.deepEqual([...(content?.().objects ?? [])], objects);
});

test("a list that was asked for before stays right through every kind of change", async () => {
  const { store } = await openStore();
  const names = () => store.list("pods").map(({ namespace, name, revision }) => `${namespace}/${name}@${revision}`);
  assert.deepEqual(names(), []);
  await store.commit((tx) => ["m", "c", "x"].forEach((name) => tx.put("pods", at(name), pod(name))));
  const before = store.list("pods");
  assert.deepEqual(names(), ["default/c@12", "default/m@11", "default/x@13"]);
  await store.commit((tx) => {
    tx.put("pods", at("m"), pod("m"));
    tx.put("pods", at("a"), pod("a"));
    tx.put("pods", at("z", "other"), pod("z"));
    tx.remove("pods", at("x"));
  });
  assert.deepEqual(names(), ["default/a@15", "default/c@12", "default/m@14", "other/z@16"]);
  assert.equal(before.length, 3);
});

test("objects beyond what fits the memory are refused; small changes, deletions and what fits then are not", async () => {
  const { store, log } = await openStore(new MemoryLog(), { mostLength: 100_000 });
  const add = (name: string, length: number) =>
    store.commit((tx) => tx.put("pods", at(name), pod(name, { fill: "x".repeat(length) })));
  const refused = { code: "NoSpace", message: /^write objects: all objects have \d+ characters, and may have 100000/ };
  // Those that are not durable yet count.
  const both = await Promise.allSettled([add("a", 60_000), add("b", 60_000)]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ["fulfilled", "rejected"],
  );
  await add("b", 39_500);
  await assert.rejects(add("c", 1000), refused);
  await add("b", 45_000);
  await assert.rejects(add("b", 90_000), refused);
  log.failure = new LogError("NoSpace", "no space left on device");
  await assert.rejects(add("a", 10));
  log.failure = undefined;
  await assert.rejects(add("c", 1000), refused);
  await store.commit((tx) => tx.remove("pods", at("a")));
  await add("c", 50_000);
  await assert.rejects(add("d", 10_000), refused);
});

/** A store that small changes have filled up to their bound of a tenth beyond 100,000 characters. */
async function fullStore() {
  const { store } = await openStore(new MemoryLog(), { mostLength: 100_000 });
  const lengths = new Map<string, number>();
  const set = async (name: string, length: number, metadata: JsonObject = {}) => {
    await store.commit((tx) => tx.put("pods", at(name), { metadata: { name, ...metadata }, fill: "x".repeat(length) }));
    lengths.set(name, length);
  };
  const grow = (name: string, by: number, metadata?: JsonObject) => set(name, (lengths.get(name) ?? 0) + by, metadata);
  const total = () => store.list("pods").reduce((sum, { text }) => sum + text.length, 0);
  for (let n = 0; n < 10; n++) await set(`p${n}`, 9_900);
  for (const by of [15_000, 1000, 100, 10, 1]) {
    for (let n = 0; n < 20; n++) await grow(`p${n % 10}`, by).catch(() => undefined);
  }
  return { store, set, grow, total };
}
const AT = { deletionTimestamp: "2026-01-01T00:00:30Z" };
const noSpace = { code: "NoSpace" };

test("small changes fill the store to a tenth beyond its bound, and no further", async () => {
  const { total, grow } = await fullStore();
  assert.equal(total(), 110_000);
  await assert.rejects(grow("p0", 1), {
    ...noSpace,
    message: "write objects: all objects have 110000 characters, and may have 110000: delete some",
  });
});

test("a full store takes what does not grow and what shrinks, whatever digits the revision gains", async () => {
  const { store, grow } = await fullStore();
  while (store.revision < 999) await grow("p0", 0);
  for (let n = 0; n < 10; n++) await grow(`p${n}`, 0);
  assert.equal(store.get("pods", at("p9"))?.revision, 1009);
  await grow("p0", -5000);
  await grow("p1", 4000);
});

test("a full store takes the mark of each deletion, of many at once too", async () => {
  const { store, set, grow, total } = await fullStore();
  await set("p0", 1, AT);
  // Nothing is left of the margin for what is being deleted.
  while (total() < 119_900) await grow("p0", 100, AT);
  await assert.rejects(grow("p0", 200, AT), noSpace);
  const mark = { ...AT, deletionGracePeriodSeconds: 30, finalizers: ["foregroundDeletion"] };
  await store.commit((tx) => {
    for (const { name, text } of store.list("pods").slice(1)) {
      const { metadata, ...rest } = JSON.parse(text) as { metadata: JsonObject };
      tx.put("pods", at(name), { ...rest, metadata: { ...metadata, ...mark } });
    }
  });
  await store.commit((tx) => {
    for (const { name } of store.list("pods")) tx.remove("pods", at(name));
  });
  assert.equal(total(), 0);
});

test("what is being deleted may grow by what others leave: the status of its end", async () => {
  const { grow, total } = await fullStore();
  await grow("p0", 900, AT);
  await grow("p0", 5000, AT);
  await assert.rejects(grow("p1", 1), noSpace);
  for (let n = 0; n < 10; n++) await grow("p0", 5000, AT).catch(() => undefined);
  assert.ok(total() > 115_000 && total() <= 120_000, String(total()));
});

test("a mark of a deletion that adds more than one does is a change like others", async () => {
  const { set, grow, total } = await fullStore();
  await set("p0", 1, AT);
  while (total() < 119_900) await grow("p0", 100, AT);
  await assert.rejects(grow("p1", 2000, AT), noSpace);
});
