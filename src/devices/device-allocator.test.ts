import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeviceBench } from "../../test/support/device-bench.ts";
import { pod } from "../../test/support/pods.ts";
import { chooseSeed, randomFrom } from "../../test/support/random.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { ANYWHERE, nodesOf, numaMask } from "../model/topology.ts";

const RESOURCES = ["example.com/gpu", "example.com/nic"];
const { signal } = new AbortController();

/** A pod with init containers, sidecars and containers that ask for some devices. */
function randomPod(uid: string, random: () => number): Pod {
  const asks = (): Partial<Container> => {
    const amounts = Object.fromEntries(RESOURCES.map((name) => [name, String(Math.floor(random() * 3))]));
    return { resources: { limits: amounts, requests: amounts } };
  };
  const made = pod(uid, uid).container("app", asks());
  if (random() < 0.3) made.container("more", asks());
  if (random() < 0.3) made.init("setup", asks());
  if (random() < 0.3) made.init("sidecar", { ...asks(), restartPolicy: "Always" });
  if (random() < 0.2) made.init("late", asks());
  return made.build();
}

/** Containers that run at the same time must not share a device; a pod that is gone must have none. */
function check(bench: DeviceBench, admitted: ReadonlyMap<string, Pod>): void {
  assert.deepEqual(
    new Set(bench.plugins.pods.uids()),
    new Set(bench.plugins.pods.uids().filter((uid) => admitted.has(uid))),
  );
  const owners = new Map<string, string>();
  for (const { uid, container, resource, devices } of bench.plugins.pods.entries()) {
    const ids = new Set([...devices.byNode.values()].flat());
    const asked = [
      ...(admitted.get(uid)?.spec.initContainers ?? []),
      ...(admitted.get(uid)?.spec.containers ?? []),
    ].find(({ name }) => name === container);
    assert.equal(String(ids.size), asked?.resources?.limits?.[resource]);
    for (const id of ids) {
      const owner = owners.get(`${resource} ${id}`);
      assert.ok(owner === undefined || owner === uid, `${id} belongs to ${owner} and ${uid}`);
      owners.set(`${resource} ${id}`, uid);
    }
  }
  for (const of of admitted.values()) {
    for (const resource of RESOURCES) {
      const running = [
        ...(of.spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always"),
        ...of.spec.containers,
      ];
      const ids = running.flatMap(({ name }) => [
        ...new Set(
          [
            ...(bench.plugins.pods
              .of(of.metadata.uid ?? "", name)
              .get(resource)
              ?.byNode.values() ?? []),
          ].flat(),
        ),
      ]);
      assert.equal(new Set(ids).size, ids.length, `two running containers of ${of.metadata.uid} share a device`);
    }
  }
}

describe("allocations over many lives", () => {
  test("own no device twice and leak none, whatever restarts", async () => {
    const seed = chooseSeed("KUBELET_PROPERTY_SEED", 18);
    const random = randomFrom(seed);
    const bench = new DeviceBench();
    const listing = Object.fromEntries(
      Array.from({ length: 12 }, (_, at) => [`d${at}`, { nodes: at % 3 === 0 ? [] : [at % 2] }]),
    );
    const connect = async (): Promise<void> => {
      for (const resource of RESOURCES) await bench.plugin(resource, listing);
    };
    await connect();
    const admitted = new Map<string, Pod>();
    let admissions = 0;
    for (let step = 0; step < 600; step++) {
      const dice = random();
      if (dice < 0.5) {
        const of = randomPod(`pod-${step}`, random);
        const affinity = random() < 0.5 ? ANYWHERE : { numa: numaMask([Math.floor(random() * 2)]), isPreferred: true };
        try {
          for (const container of [...(of.spec.initContainers ?? []), ...of.spec.containers]) {
            await bench.allocator.allocate(of, container, { affinity, signal });
          }
          admitted.set(`pod-${step}`, of);
          admissions++;
        } catch {
          bench.allocator.release(`pod-${step}`);
        }
      } else if (dice < 0.9) {
        const [uid] = [...admitted.keys()].slice(Math.floor(random() * admitted.size));
        if (uid !== undefined) {
          admitted.delete(uid);
          bench.allocator.release(uid);
        }
      } else if (dice < 0.95) {
        await bench.plugins.store.save();
        bench.restart();
        await connect();
      } else {
        const sick = Object.entries(listing).map(([id, of]) => [
          id,
          random() < 0.2 ? { ...of, health: "Unhealthy" } : of,
        ]);
        await bench.plugin(RESOURCES[0] ?? "", Object.fromEntries(sick));
      }
      check(bench, admitted);
    }
    assert.ok(admissions > 50, `${admissions} pods were admitted with seed ${seed}`);
    for (const uid of admitted.keys()) bench.allocator.release(uid);
    assert.deepEqual(bench.plugins.pods.resources(), []);
    bench.close();
  });
});

describe("hints of the allocator", () => {
  const asks = (count: number): Partial<Container> => ({ resources: { limits: { "example.com/gpu": String(count) } } });
  const shown = (hints: ReturnType<DeviceBench["allocator"]["podHints"]>): string[] | undefined =>
    hints
      .get("example.com/gpu")
      ?.map(({ numa, isPreferred }) => `${nodesOf(numa ?? 0n).join("")}${isPreferred ? "*" : ""}`);

  test("follow what is free, and what the container already has", async () => {
    const bench = new DeviceBench();
    await bench.plugin("example.com/gpu", { a: { nodes: [0] }, b: { nodes: [1] } });
    const web = pod("web").container("app", asks(1)).build();
    const app = web.spec.containers[0] as Container;
    assert.deepEqual(shown(bench.allocator.hints(web, app)), ["0*", "1*", "01"]);
    await bench.allocator.allocate(web, app, { affinity: { numa: numaMask([1]), isPreferred: true }, signal });
    assert.deepEqual(shown(bench.allocator.hints(web, app)), ["1*", "01"]);
    assert.deepEqual(shown(bench.allocator.podHints(web)), ["1*", "01"]);
    const other = pod("other").container("app", asks(2)).build();
    assert.deepEqual(shown(bench.allocator.hints(other, other.spec.containers[0] as Container)), []);
    assert.deepEqual([...bench.allocator.free("example.com/gpu")], [[0, 1]]);
    bench.close();
  });

  test("there are none for devices without NUMA nodes", async () => {
    const bench = new DeviceBench();
    await bench.plugin("example.com/gpu", { a: {} });
    const web = pod("web").container("app", asks(1)).build();
    assert.deepEqual(
      [...bench.allocator.hints(web, web.spec.containers[0] as Container)],
      [["example.com/gpu", undefined]],
    );
    bench.close();
  });
});
