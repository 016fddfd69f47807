import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseSubnet, formatCidr, overlaps, parseCidr, parseRoutes } from "./subnet.ts";

function network(text: string): { base: number; prefix: number } {
  const parsed = parseCidr(text);
  assert.ok(parsed, text);
  return parsed;
}

const cidrs = [
  { text: "10.88.3.0/24", want: "10.88.3.0/24" },
  { text: "10.88.3.77/24", want: "10.88.3.0/24" },
  { text: "255.255.255.255/32", want: "255.255.255.255/32" },
  { text: "1.2.3.4/0", want: "0.0.0.0/0" },
  { text: "10.88.3.0", want: undefined },
  { text: "10.88.3.256/24", want: undefined },
  { text: "10.88.3.0/33", want: undefined },
  { text: "fd00::/64", want: undefined },
];
for (const { text, want } of cidrs) {
  test(`${text} reads as ${want ?? "nothing"}`, () => {
    const parsed = parseCidr(text);
    assert.equal(parsed && formatCidr(parsed), want);
  });
}

const pairs = [
  { a: "10.88.0.0/16", b: "10.88.5.0/24", want: true },
  { a: "10.88.5.0/24", b: "10.0.0.0/8", want: true },
  { a: "10.88.5.0/24", b: "10.88.6.0/24", want: false },
  { a: "192.168.0.0/16", b: "10.0.0.0/8", want: false },
];
for (const { a, b, want } of pairs) {
  test(`${a} and ${b} ${want ? "overlap" : "are apart"}`, () => {
    assert.equal(overlaps(network(a), network(b)), want);
    assert.equal(overlaps(network(b), network(a)), want);
  });
}

test("the routing table is read without its default route", () => {
  const table = [
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT",
    "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
    "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0",
    "cni0\t0000580A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0",
    "",
  ].join("\n");
  assert.deepEqual(parseRoutes(table).map(formatCidr), ["192.0.2.0/24", "10.88.0.0/16"]);
});

const choices = [
  { routes: [], seed: 7, want: "10.88.7.0/24" },
  { routes: ["10.88.7.0/24", "10.88.8.0/25"], seed: 7, want: "10.88.9.0/24" },
  { routes: ["10.88.255.0/24"], seed: 255, want: "10.88.0.0/24" },
  { routes: ["10.0.0.0/8"], seed: 7, want: "172.30.7.0/24" },
];
for (const { routes, seed, want } of choices) {
  test(`with routes ${routes.join(" ") || "none"} the pods get ${want}`, () => {
    assert.equal(formatCidr(chooseSubnet(routes.map(network), seed)), want);
  });
}

test("when every range is taken the user is asked for one", () => {
  const routes = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"].map(network);
  assert.throws(() => chooseSubnet(routes, 0), { code: "NoSubnet" });
});
