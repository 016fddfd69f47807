import assert from "node:assert/strict";
import { test } from "node:test";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { NodeGatherer } from "./gather.ts";
import { hostIpsOf, NodeAddresses } from "./node-addresses.ts";

const READY = { ready: true, networkReady: true, message: "", handlers: [], supplementalGroupsPolicy: true };

function site() {
  const clock = new FakeClock();
  const state = { hangs: false, dnsHangs: false, diskHangs: false, pressure: [] as string[] };
  const hang = <T>(): Promise<T> => new Promise(() => undefined);
  const addresses = new NodeAddresses(
    {
      clock,
      own: () => ["192.0.2.7"],
      resolve: () => (state.dnsHangs ? hang() : Promise.resolve([])),
    },
    { nodeName: "n1", nodeIp: "", isExternalCloud: false },
  );
  const gatherer = new NodeGatherer({
    clock,
    log: silent,
    addresses,
    store: new OptionStore(agentOptions, parseAgentOptions([]).values),
    runtime: {
      status: () => (state.hangs ? hang() : Promise.resolve(READY)),
      version: () => Promise.resolve({ name: "fake", version: "1", apiVersion: "v1" }),
    },
    images: { listImages: () => Promise.resolve([]) },
    problems: () => [],
    storageSize: () => (state.diskHangs ? hang() : Promise.resolve(5 * 2 ** 30)),
    pressure: () => state.pressure,
  });
  /** Ready and the first address, as they are reported once the calls have ended or timed out. */
  const report = async (): Promise<readonly unknown[]> => {
    const facts = gatherer.gather(undefined, manyListeners());
    // Parts of a status are read from the machine: timers are due only when these have ended.
    let isOver = false;
    void facts.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { conditions, addresses: reported } = await facts;
    return [conditions.find(({ type }) => type === "Ready")?.status, hostIpsOf(reported)[0]];
  };
  return { clock, state, report, gatherer };
}

test("one slow Status call of the runtime leaves the node ready; it is not ready after 30 s", async () => {
  const { clock, state, report } = site();
  assert.deepEqual(await report(), ["True", "192.0.2.7"]);
  state.hangs = true;
  assert.deepEqual(await report(), ["True", "192.0.2.7"]);
  await clock.advance(30_000);
  assert.deepEqual(await report(), ["False", "192.0.2.7"]);
  state.hangs = false;
  assert.deepEqual(await report(), ["True", "192.0.2.7"]);
});

test("a DNS server that does not answer holds the status back for five seconds at most", async () => {
  const { clock, state, report } = site();
  await report();
  state.dnsHangs = true;
  await clock.advance(10_000);
  assert.deepEqual(await report(), ["True", "192.0.2.7"]);
});

test("the conditions of pressure are those of eviction", async () => {
  const { state, gatherer } = site();
  const pressures = async (): Promise<readonly unknown[]> => {
    const { conditions } = await gatherer.gather(undefined, manyListeners());
    return conditions.filter(({ type }) => type.endsWith("Pressure")).map(({ type, status }) => `${type}=${status}`);
  };
  assert.deepEqual(await pressures(), ["MemoryPressure=False", "DiskPressure=False", "PIDPressure=False"]);
  state.pressure = ["MemoryPressure", "PIDPressure"];
  assert.deepEqual(await pressures(), ["MemoryPressure=True", "DiskPressure=False", "PIDPressure=True"]);
});

test("a filesystem that hangs holds the status back for five seconds at most, and keeps its size", async () => {
  const { clock, state, gatherer } = site();
  const sizes = async (): Promise<unknown> => {
    const facts = gatherer.gather(undefined, manyListeners());
    for (let waited = 0; waited < 6000; waited += 100) {
      await clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return (await facts).resources.capacity["ephemeral-storage"];
  };
  assert.equal(await sizes(), "5Gi");
  state.diskHangs = true;
  assert.equal(await sizes(), "5Gi");
});
