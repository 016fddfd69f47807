import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { hostIpsOf, NodeAddresses } from "./node-addresses.ts";

function machine(nodeIp = "", isExternalCloud = false) {
  const clock = new FakeClock();
  const state = { own: ["192.0.2.7", "2001:db8::7"], resolved: [] as string[], asked: 0, takesMs: 0 };
  const resolve = async (): Promise<readonly string[]> => {
    state.asked++;
    if (state.takesMs > 0) await clock.sleep(state.takesMs, manyListeners());
    return state.resolved;
  };
  const deps = { own: () => state.own, resolve, clock };
  return { clock, state, addresses: new NodeAddresses(deps, { nodeName: "n1", nodeIp, isExternalCloud }) };
}

test("a changed address of the machine is part of the next report", async () => {
  const { state, addresses } = machine();
  const heard: unknown[] = [];
  addresses.onChange((value) => heard.push(value), manyListeners());
  await addresses.refresh();
  assert.deepEqual(hostIpsOf(addresses.current), ["192.0.2.7"]);
  await addresses.refresh();
  assert.equal(heard.length, 1);
  state.own = ["192.0.2.8"];
  await addresses.refresh();
  assert.deepEqual(hostIpsOf(addresses.current), ["192.0.2.8"]);
  assert.equal(heard.length, 2);
});

test("a changed DNS entry is part of the next report", async () => {
  const { clock, state, addresses } = machine();
  state.own = ["192.0.2.7", "192.0.2.9"];
  await addresses.refresh();
  state.resolved = ["192.0.2.9"];
  await clock.advance(5000);
  await addresses.refresh();
  assert.deepEqual(hostIpsOf(addresses.current), ["192.0.2.9"]);
});

test("DNS is asked once in five seconds, and a slow one gets one question at a time", async () => {
  const { clock, state, addresses } = machine();
  for (let n = 0; n < 10; n++) await addresses.refresh();
  assert.equal(state.asked, 1);
  state.takesMs = 60_000;
  await clock.advance(5000);
  const waiting = [addresses.refresh(), addresses.refresh()];
  await clock.advance(30_000);
  waiting.push(addresses.refresh());
  await clock.advance(30_000);
  await Promise.all(waiting);
  assert.equal(state.asked, 2);
});

test("a DNS server that does not answer delays no report by more than a second; a late answer counts in the next", async () => {
  const { clock, state, addresses } = machine();
  state.own = ["192.0.2.7", "192.0.2.9"];
  Object.assign(state, { takesMs: 6000, resolved: ["192.0.2.9"] });
  const first = addresses.refresh();
  await clock.advance(1000);
  assert.deepEqual(hostIpsOf(await first), ["192.0.2.7"]);
  await clock.advance(5000);
  assert.deepEqual(hostIpsOf(await addresses.refresh()), ["192.0.2.9"]);
  // The next one takes as long: until then the last answer counts.
  await clock.advance(5000);
  const third = addresses.refresh();
  await clock.advance(1000);
  assert.deepEqual(hostIpsOf(await third), ["192.0.2.9"]);
  assert.equal(state.asked, 2);
});

test("without --node-ip the addresses of an external cloud provider become the host IPs", async () => {
  const { addresses } = machine("", true);
  assert.deepEqual(await addresses.refresh(), [{ type: "Hostname", address: "n1" }]);
  assert.deepEqual(hostIpsOf(addresses.current), []);
  const set = [
    { type: "Hostname", address: "n1" },
    { type: "ExternalIP", address: "198.51.100.1" },
    { type: "InternalIP", address: "192.0.2.50" },
  ];
  assert.deepEqual(await addresses.refresh({ addresses: set }), set);
  assert.deepEqual(hostIpsOf(addresses.current), ["192.0.2.50"]);
});

test("a node IP that the machine lost keeps the last addresses", async () => {
  const { state, addresses } = machine("192.0.2.7");
  await addresses.refresh();
  state.own = [];
  await assert.rejects(addresses.refresh(), /not found in the host's network interfaces/);
  assert.deepEqual(hostIpsOf(addresses.current), ["192.0.2.7"]);
});

const ip = (type: string, address: string) => ({ type, address });
const cases = [
  { name: "nothing", given: [ip("Hostname", "n1")], want: [] },
  {
    name: "internal before external",
    given: [ip("ExternalIP", "1.1.1.1"), ip("InternalIP", "2.2.2.2")],
    want: ["2.2.2.2"],
  },
  {
    name: "one of each family, the primary first",
    given: [ip("InternalIP", "2001:db8::1"), ip("InternalIP", "2001:db8::2"), ip("InternalIP", "192.0.2.1")],
    want: ["2001:db8::1", "192.0.2.1"],
  },
];
for (const { name, given, want } of cases) {
  test(`host IPs: ${name}`, () => assert.deepEqual(hostIpsOf(given), want));
}
