import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { PodSpec } from "../../model/generated/types.ts";
import { type DnsFacts, type DnsResult, parseResolvConf, podDns } from "./dns.ts";

const cluster: DnsFacts = {
  resolvConf: "nameserver 192.0.2.53\nsearch example.org corp.example.org\noptions edns0",
  clusterDns: ["10.96.0.10"],
  clusterDomain: "cluster.local",
  hostIps: ["192.0.2.1"],
};
const alone: DnsFacts = { ...cluster, clusterDns: [], clusterDomain: "" };
const host = { servers: ["192.0.2.53"], searches: ["example.org", "corp.example.org"], options: ["edns0"] };
const own = ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"];
const inCluster = { servers: ["10.96.0.10"], searches: [...own, ...host.searches], options: ["ndots:5"] };

function dns(spec: Partial<PodSpec>, facts: DnsFacts = cluster): DnsResult {
  return podDns(pod().container("app").with(spec).build(), facts);
}

function settings({ servers, searches, options }: DnsResult): object {
  return { servers, searches, options };
}

describe("the policy decides whose settings a pod gets", () => {
  const cases: { name: string; spec: Partial<PodSpec>; facts?: DnsFacts; want: object }[] = [
    { name: "none given is ClusterFirst", spec: {}, want: inCluster },
    { name: "ClusterFirst", spec: { dnsPolicy: "ClusterFirst" }, want: inCluster },
    { name: "ClusterFirst on the host's network", spec: { hostNetwork: true }, want: host },
    {
      name: "ClusterFirstWithHostNet",
      spec: { dnsPolicy: "ClusterFirstWithHostNet", hostNetwork: true },
      want: inCluster,
    },
    { name: "Default", spec: { dnsPolicy: "Default" }, want: host },
    { name: "None", spec: { dnsPolicy: "None" }, want: { servers: [], searches: [], options: [] } },
    { name: "ClusterFirst where there is no cluster DNS", spec: {}, facts: alone, want: host },
    {
      name: "ClusterFirst without a cluster domain: only the node's searches",
      spec: {},
      facts: { ...cluster, clusterDomain: "" },
      want: { ...inCluster, searches: host.searches },
    },
    {
      name: "a search that the node has too stands once",
      spec: {},
      facts: { ...cluster, resolvConf: "search cluster.local example.org" },
      want: { ...inCluster, searches: [...own, "example.org"] },
    },
    {
      name: "Default where pods shall resolve nothing",
      spec: { dnsPolicy: "Default" },
      facts: { ...cluster, resolvConf: undefined },
      want: { servers: ["127.0.0.1"], searches: ["."], options: [] },
    },
    {
      name: "Default where pods shall resolve nothing, on a node of both families",
      spec: { dnsPolicy: "Default" },
      facts: { ...cluster, resolvConf: undefined, hostIps: ["2001:db8::1", "192.0.2.1"] },
      want: { servers: ["::1", "127.0.0.1"], searches: ["."], options: [] },
    },
    {
      name: "a node without a resolver file has no settings, which leaves them to the runtime",
      spec: { dnsPolicy: "Default" },
      facts: { ...cluster, resolvConf: "" },
      want: { servers: [], searches: [], options: [] },
    },
    {
      name: "the cluster's servers do not depend on the node's file",
      spec: {},
      facts: { ...cluster, resolvConf: undefined },
      want: { ...inCluster, searches: own },
    },
  ];
  for (const { name, spec, facts, want } of cases) {
    test(name, () => assert.deepEqual(settings(dns(spec, facts)), want));
  }
});

describe("dnsConfig", () => {
  test("adds servers and searches after the policy's, each once", () => {
    const dnsConfig = { nameservers: ["192.0.2.9", "10.96.0.10"], searches: ["more.example", "cluster.local"] };
    const got = dns({ dnsConfig });
    assert.deepEqual(got.servers, ["10.96.0.10", "192.0.2.9"]);
    assert.deepEqual(got.searches, [...inCluster.searches, "more.example"]);
  });

  test("replaces options by name", () => {
    const options = [{ name: "ndots", value: "2" }, { name: "edns0" }, { name: "rotate", value: "" }];
    assert.deepEqual(dns({ dnsConfig: { options } }).options, ["ndots:2", "edns0", "rotate"]);
  });

  test("is all there is under None", () => {
    const dnsConfig = { nameservers: ["192.0.2.9"], searches: ["a.example"], options: [{ name: "rotate" }] };
    const want = { servers: ["192.0.2.9"], searches: ["a.example"], options: ["rotate"] };
    assert.deepEqual(settings(dns({ dnsPolicy: "None", dnsConfig })), want);
  });
});

describe("limits", () => {
  const none = { dnsPolicy: "None" } as const;
  const names = (count: number, length: number): string[] =>
    Array.from({ length: count }, (_, i) => `s${i}`.padEnd(length, "x"));

  test("3 servers; what was left out is said", () => {
    const got = dns({ ...none, dnsConfig: { nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"] } });
    assert.deepEqual(got.servers, ["1.1.1.1", "2.2.2.2", "3.3.3.3"]);
    assert.deepEqual(got.warnings, [
      {
        reason: "DNSConfigForming",
        message:
          "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1.1.1.1 2.2.2.2 3.3.3.3",
      },
    ]);
  });

  const cases = [
    { name: "32 searches fit", searches: names(32, 10), kept: 32 },
    { name: "the 33rd does not", searches: names(33, 10), kept: 32 },
    { name: "one of 253 characters fits", searches: names(1, 253), kept: 1 },
    { name: "one of 254 does not", searches: names(1, 254), kept: 0 },
    // 20 × 101 and 8, with 20 spaces between.
    { name: "2048 characters together fit", searches: [...names(20, 101), "y".repeat(8)], kept: 21 },
    { name: "2049 do not: the last is dropped", searches: [...names(20, 101), "y".repeat(9)], kept: 20 },
  ];
  for (const { name, searches, kept } of cases) {
    test(name, () => {
      const got = dns({ ...none, dnsConfig: { searches } });
      assert.deepEqual(got.searches, searches.slice(0, kept));
      assert.equal(got.warnings.length, kept < searches.length ? 1 : 0);
      if (kept === searches.length) return;
      const said = `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${got.searches.join(" ")}`;
      assert.deepEqual(got.warnings[0], { reason: "DNSConfigForming", message: said });
    });
  }
  test("the table's numbers are right", () => {
    assert.equal([...names(20, 101), "y".repeat(8)].join(" ").length, 2048);
  });
});

describe("a missing cluster DNS", () => {
  const cases: { name: string; spec: Partial<PodSpec>; facts: DnsFacts; reasons: string[] }[] = [
    { name: "is not worth a word on a machine alone", spec: {}, facts: alone, reasons: [] },
    {
      name: "is told where a cluster is configured",
      spec: {},
      facts: { ...alone, clusterDomain: "cluster.local" },
      reasons: ["MissingClusterDNS"],
    },
    {
      name: "is told to a pod that asks for it by name",
      spec: { dnsPolicy: "ClusterFirstWithHostNet" },
      facts: alone,
      reasons: ["MissingClusterDNS"],
    },
    {
      name: "does not matter to Default",
      spec: { dnsPolicy: "Default" },
      facts: { ...alone, clusterDomain: "x" },
      reasons: [],
    },
  ];
  for (const { name, spec, facts, reasons } of cases) {
    test(name, () => {
      const got = dns(spec, facts).warnings.map(({ reason }) => reason);
      assert.deepEqual(got, reasons);
    });
  }
});

describe("a resolver file", () => {
  const cases: [string, string, object][] = [
    ["nothing", "", { servers: [], searches: [], options: [] }],
    [
      "comments, empty lines and blanks do not count",
      "# nameserver 1.1.1.1\n; x\n\n  nameserver \t 2.2.2.2  # ours\n",
      { servers: ["2.2.2.2"], searches: [], options: [] },
    ],
    ["a server without an address does not count", "nameserver\n", { servers: [], searches: [], options: [] }],
    [
      "of several search lines the last counts",
      "search a b\nsearch c\n",
      { servers: [], searches: ["c"], options: [] },
    ],
    [
      "the root is no search, and names lose their last dot",
      "search . a.b. c",
      { servers: [], searches: ["a.b", "c"], options: [] },
    ],
    [
      "options add up, the later one of a name wins",
      "options ndots:1 rotate\noptions ndots:3",
      { servers: [], searches: [], options: ["ndots:3", "rotate"] },
    ],
  ];
  for (const [name, text, want] of cases) test(name, () => assert.deepEqual(parseResolvConf(text), want));
});
