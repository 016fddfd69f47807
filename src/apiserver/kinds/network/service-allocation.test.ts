import assert from "node:assert/strict";
import { test } from "node:test";
import type { Service, ServiceSpec } from "../../../model/generated/types.ts";
import { AddressRange } from "./address-range.ts";
import { allocateService, releasedFields, type ServiceRanges } from "./service-allocation.ts";

const service = (spec: ServiceSpec, uid = "new"): Service => ({ metadata: { name: uid, uid }, spec });
const RANGES: ServiceRanges = {
  addresses: new AddressRange("10.96.0.0/29"),
  nodePorts: [30_000, 30_002],
  random: () => 0.99,
};

function allocate(spec: ServiceSpec, others: readonly ServiceSpec[] = [], uid?: string): ServiceSpec | undefined {
  const stored = others.map((other, index) => service(other, `s${index}`));
  const read = { get: () => undefined, list: <T>() => stored as unknown as readonly T[] }; // reason: only services are read
  const context = { now: "", user: { name: "u", groups: [] }, read, suffix: () => "", warn: () => undefined };
  return allocateService(service(spec, uid), context, RANGES).spec;
}

const ip = (last: number): ServiceSpec => ({ clusterIP: `10.96.0.${last}` });

test("a range begins at its network, whatever address of it is written", () => {
  const range = new AddressRange("10.96.0.13/29");
  assert.deepEqual(
    [range.at(1), range.has("10.96.0.8"), range.has("10.96.0.14"), range.has("10.96.0.16")],
    ["10.96.0.9", false, true, false],
  );
  assert.equal(new AddressRange("10.96.0.0/30").at(1), "10.96.0.1");
  for (const wrong of ["10.96.0.0/31", "10.96.0.256/24", "10.96.0/24", "fd00::/64", "10.96.0.0"]) {
    assert.throws(() => new AddressRange(wrong), /is not a range of IPv4 addresses/, wrong);
  }
});

test("an address that an update names is not replaced by the one from before", () => {
  const given = releasedFields(service({ clusterIP: "10.96.0.4" }), service(ip(3))).spec;
  assert.equal(given?.clusterIP, "10.96.0.4");
  assert.equal(releasedFields(service({}), service(ip(3))).spec?.clusterIP, "10.96.0.3");
});

test("every address of a range but the first and the last is usable, and none twice", () => {
  const found: string[] = [];
  for (let turn = 0; turn < 6; turn++) {
    const spec = allocate(
      {},
      found.map((clusterIP) => ({ clusterIP })),
    );
    assert.deepEqual(spec?.clusterIPs, [spec?.clusterIP]);
    found.push(spec?.clusterIP ?? "");
  }
  assert.deepEqual(
    [...found].sort(),
    [1, 2, 3, 4, 5, 6].map((last) => `10.96.0.${last}`),
  );
  const taken = found.map((clusterIP) => ({ clusterIP }));
  assert.throws(() => allocate({}, taken), /failed to allocate a serviceIP: range is full/);
});

for (const { given, want } of [
  { given: "10.96.0.1", want: "10.96.0.1" },
  { given: "10.96.0.6", want: "10.96.0.6" },
  { given: "10.96.0.0", want: /not in the valid range/ },
  { given: "10.96.0.7", want: /not in the valid range/ },
  { given: "10.96.0.8", want: /not in the valid range/ },
  { given: "10.95.255.255", want: /not in the valid range/ },
  { given: "10.96.0.3", want: /already allocated/ },
]) {
  test(`the address ${given} ${typeof want === "string" ? "is given" : "is refused"}`, () => {
    if (typeof want === "string") assert.equal(allocate({ clusterIP: given }, [ip(3)])?.clusterIP, want);
    else assert.throws(() => allocate({ clusterIP: given }, [ip(3)]), want);
  });
}

test("a service keeps its own address, and headless and external ones have none", () => {
  assert.equal(allocate(ip(3), [ip(3)], "s0")?.clusterIP, "10.96.0.3");
  assert.deepEqual(allocate({ clusterIP: "None" })?.clusterIPs, ["None"]);
  assert.deepEqual(allocate({ type: "ExternalName" }), { type: "ExternalName" });
});

const nodePort = (...ports: readonly object[]): ServiceSpec => ({
  ...ip(3),
  type: "NodePort",
  ports: ports.map((port) => ({ port: 80, ...port })),
});
const portsOf = (spec: ServiceSpec | undefined) => spec?.ports?.map((port) => port.nodePort);

test("node ports are given from the whole range, to each protocol its own", () => {
  const others = [nodePort({ nodePort: 30_000 }, { nodePort: 30_002, protocol: "UDP" })];
  assert.deepEqual(portsOf(allocate({ ...nodePort({}, {}), clusterIP: "" }, others))?.sort(), [30_001, 30_002]);
  assert.throws(() => allocate({ ...nodePort({}, {}, {}), clusterIP: "" }, others), /nodePort: range is full/);
  const both = nodePort({ nodePort: 30_000, protocol: "UDP" });
  assert.deepEqual(portsOf(allocate({ ...both, clusterIP: "" }, others)), [30_000]);
});

for (const { given, want } of [
  { given: 30_000, want: undefined },
  { given: 30_002, want: undefined },
  { given: 29_999, want: /not in the valid range/ },
  { given: 30_003, want: /not in the valid range/ },
  { given: 30_001, want: /already allocated/ },
]) {
  test(`the node port ${given} is ${want === undefined ? "given" : "refused"}`, () => {
    const ask = () =>
      portsOf(allocate({ ...nodePort({ nodePort: given }), clusterIP: "" }, [nodePort({ nodePort: 30_001 })]));
    if (want === undefined) assert.deepEqual(ask(), [given]);
    else assert.throws(ask, want);
  });
}

test("one service cannot have a node port twice", () => {
  const spec = nodePort({ nodePort: 30_000 }, { nodePort: 30_000, port: 81 });
  assert.throws(() => allocate(spec), /spec.ports\[1\].nodePort: .*already allocated/);
});

test("what an update leaves out stays: address, families and node ports", () => {
  const was = { ...nodePort({ nodePort: 30_001, protocol: "TCP" }), clusterIPs: ["10.96.0.3"], ipFamilies: ["IPv4"] };
  const next: ServiceSpec = {
    type: "NodePort",
    ports: [
      { port: 80, protocol: "TCP" },
      { port: 81, protocol: "TCP" },
    ],
  };
  const { spec } = releasedFields(service(next), service({ ...was, ipFamilyPolicy: "SingleStack" }));
  assert.deepEqual([spec?.clusterIP, spec?.clusterIPs], ["10.96.0.3", ["10.96.0.3"]]);
  assert.deepEqual([spec?.ipFamilies, spec?.ipFamilyPolicy], [["IPv4"], "SingleStack"]);
  assert.deepEqual(portsOf(spec), [30_001, undefined]);
});

test("a service that becomes another type gives back what that type does not have", () => {
  const was = service(nodePort({ nodePort: 30_001, protocol: "TCP" }));
  const plain = releasedFields(service({ ...was.spec, type: "ClusterIP" }), was).spec;
  assert.deepEqual([plain?.clusterIP, portsOf(plain)], ["10.96.0.3", [undefined]]);
  const external = releasedFields(service({ ...was.spec, type: "ExternalName" }), was).spec;
  assert.equal(external?.clusterIP, undefined);
  const again = releasedFields(service({ type: "ClusterIP" }), service({ type: "ExternalName", ...ip(3) })).spec;
  assert.equal(again?.clusterIP, undefined);
});
