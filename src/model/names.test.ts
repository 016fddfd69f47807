import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodSpec } from "./generated/types.ts";
import { isIpAddress } from "./ip.ts";
import {
  containerLogPath,
  isDnsLabel,
  isDnsSubdomain,
  isEnvName,
  isLabelValue,
  isPortName,
  isQualifiedName,
  logLinkName,
  podHostName,
  podLogDirectoryName,
} from "./names.ts";

const checks: [string, (text: string) => boolean, string[], string[]][] = [
  [
    "DNS label",
    isDnsLabel,
    ["a", "a-1", "1", "a".repeat(63)],
    ["", "A", "-a", "a-", "a.b", "a_b", "a".repeat(64), "a\n"],
  ],
  ["DNS name", isDnsSubdomain, ["a", "a.b", "a-1.b2"], ["", ".a", "a.", "a..b", "A.b", "a/b", "..", "a".repeat(254)]],
  [
    "key",
    isQualifiedName,
    ["a", "A_b.c", "x.io/a", "kubernetes.io/config.source"],
    ["", "/a", "a/", "a/b/c", "X/a", "-a", "a".repeat(64)],
  ],
  ["label value", isLabelValue, ["", "a", "A_b.c-1"], ["-a", "a b", "a".repeat(64)]],
  ["port name", isPortName, ["http", "h2", "a-b"], ["", "80", "a--b", "-a", "A", "a".repeat(16)]],
  ["variable name", isEnvName, ["A", "a.b", "1x", "with blank"], ["", "A=B", "é", "a\nb"]],
  [
    "IP address",
    isIpAddress,
    ["10.0.0.1", "255.255.255.255", "::1", "fd00::10", "::ffff:1.2.3.4"],
    ["", "1.2.3", "256.1.1.1", "1.2.3.4.5", "1.2.3.4.", "01.2.3.4", "::g", ":", "fe80::1%eth0", "localhost"],
  ],
];
for (const [what, check, good, bad] of checks) {
  for (const text of good) test(`${JSON.stringify(text)} is a ${what}`, () => assert.equal(check(text), true));
  for (const text of bad) test(`${JSON.stringify(text)} is no ${what}`, () => assert.equal(check(text), false));
}

test("log names", () => {
  assert.equal(podLogDirectoryName({ namespace: "default", name: "web-n1", uid: "u1" }), "default_web-n1_u1");
  assert.equal(containerLogPath("web", 3), "web/3.log");
  assert.equal(logLinkName({ pod: "p", namespace: "ns", container: "c", containerId: "abc" }), "p_ns_c-abc.log");
});

test("a link's name fits a file name", () => {
  const name = logLinkName({ pod: "p".repeat(253), namespace: "ns", container: "c", containerId: "abc" });
  assert.equal(name.length, 255);
  assert.ok(name.endsWith(".log"));
});

function podOf(name: string, spec: Partial<PodSpec>): Pod {
  return { metadata: { name, namespace: "ns" }, spec: { containers: [], ...spec } };
}

const hosts: {
  name: string;
  pod: Pod;
  domain: string;
  want: { hostname: string; domain: string; sandboxHostname: string };
}[] = [
  {
    name: "the pod's name",
    pod: podOf("web", {}),
    domain: "",
    want: { hostname: "web", domain: "", sandboxHostname: "web" },
  },
  {
    name: "the given name",
    pod: podOf("web", { hostname: "h" }),
    domain: "c.local",
    want: { hostname: "h", domain: "", sandboxHostname: "h" },
  },
  {
    name: "with a subdomain",
    pod: podOf("web", { hostname: "h", subdomain: "s" }),
    domain: "c.local",
    want: { hostname: "h", domain: "s.ns.svc.c.local", sandboxHostname: "h" },
  },
  {
    name: "without a cluster domain the trailing dot stays",
    pod: podOf("web", { subdomain: "s", setHostnameAsFQDN: true }),
    domain: "",
    want: { hostname: "web", domain: "s.ns.svc.", sandboxHostname: "web.s.ns.svc." },
  },
  {
    name: "the override wins and has no domain",
    pod: podOf("web", { hostnameOverride: "x.y", subdomain: "s" }),
    domain: "c.local",
    want: { hostname: "x.y", domain: "", sandboxHostname: "x.y" },
  },
  {
    name: "a long name is cut and does not end in a dash",
    pod: podOf(`${"a".repeat(60)}---b`, {}),
    domain: "",
    want: { hostname: "a".repeat(60), domain: "", sandboxHostname: "a".repeat(60) },
  },
];
for (const { name, pod, domain, want } of hosts) {
  test(`host name: ${name}`, () => assert.deepEqual(podHostName(pod, domain), want));
}

test("host name: a full name over 64 characters is an error that names both lengths", () => {
  const pod = podOf("a".repeat(60), { subdomain: "s", setHostnameAsFQDN: true });
  assert.match(
    podHostName(pod, "c.local").error ?? "",
    /is too long \(64 characters is the max, 77 characters requested\)$/,
  );
});
