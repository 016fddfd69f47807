import assert from "node:assert/strict";
import { test } from "node:test";
import { type AddressFacts, nodeAddresses } from "./addresses.ts";

const facts: AddressFacts = {
  nodeName: "n1",
  nodeIp: "",
  isExternalCloud: false,
  resolved: [],
  own: ["192.0.2.7", "198.51.100.3", "2001:db8::7"],
};

const cases: readonly { name: string; given: Partial<AddressFacts>; want: readonly string[] }[] = [
  { name: "the address of the default route", given: {}, want: ["InternalIP 192.0.2.7", "Hostname n1"] },
  {
    name: "what DNS says, if it is ours",
    given: { resolved: ["203.0.113.9", "198.51.100.3"] },
    want: ["InternalIP 198.51.100.3", "Hostname n1"],
  },
  {
    name: "the given one",
    given: { nodeIp: "198.51.100.3", resolved: ["192.0.2.7"] },
    want: ["InternalIP 198.51.100.3", "Hostname n1"],
  },
  {
    name: "one of each family",
    given: { nodeIp: "192.0.2.7,2001:db8::7" },
    want: ["InternalIP 192.0.2.7", "InternalIP 2001:db8::7", "Hostname n1"],
  },
  { name: "a preferred family", given: { nodeIp: "::" }, want: ["InternalIP 2001:db8::7", "Hostname n1"] },
  {
    name: "a name that is an address",
    given: { nodeName: "192.0.2.7" },
    want: ["InternalIP 192.0.2.7", "Hostname 192.0.2.7"],
  },
  { name: "a cloud that fills it in", given: { isExternalCloud: true }, want: ["Hostname n1"] },
];
for (const { name, given, want } of cases) {
  test(`node addresses: ${name}`, () =>
    assert.deepEqual(
      nodeAddresses({ ...facts, ...given }).map(({ type, address }) => `${type} ${address}`),
      want,
    ));
}

const refused: readonly (readonly [string, RegExp])[] = [
  ["127.0.0.1", /loopback/],
  ["224.0.0.1", /multicast/],
  ["169.254.1.1", /link-local/],
  ["203.0.113.1", /not found in the host's network interfaces/],
  ["home", /not an IP address/],
];
for (const [nodeIp, why] of refused) {
  test(`node addresses: ${nodeIp} is refused`, () => assert.throws(() => nodeAddresses({ ...facts, nodeIp }), why));
}

test("node addresses: a machine without any says so", () => {
  assert.throws(() => nodeAddresses({ ...facts, own: [] }), /can't get ip address of node n1/);
});
