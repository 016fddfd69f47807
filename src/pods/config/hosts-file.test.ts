import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { PodSpec } from "../../model/generated/types.ts";
import { hostsFile } from "./hosts-file.ts";

const HEAD = `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
`;
const NODE = "127.0.0.1 localhost\n192.0.2.1 node\n";

const cases: {
  name: string;
  spec?: Partial<PodSpec>;
  ips?: string[];
  domain?: string;
  nodeHosts?: string;
  want: string;
}[] = [
  { name: "the pod's own line", want: `${HEAD}10.0.0.5\tweb\n` },
  { name: "a line for each address", ips: ["10.0.0.5", "fd00::5"], want: `${HEAD}10.0.0.5\tweb\nfd00::5\tweb\n` },
  { name: "the host name that the spec gives", spec: { hostname: "db-0" }, want: `${HEAD}10.0.0.5\tdb-0\n` },
  {
    name: "the full name first where there is a subdomain",
    spec: { hostname: "db-0", subdomain: "db" },
    domain: "cluster.local",
    want: `${HEAD}10.0.0.5\tdb-0.db.default.svc.cluster.local\tdb-0\n`,
  },
  {
    name: "without a cluster domain the full name keeps its last dot",
    spec: { subdomain: "db" },
    want: `${HEAD}10.0.0.5\tweb.db.default.svc.\tweb\n`,
  },
  {
    name: "aliases come last, one line an address",
    spec: {
      hostAliases: [
        { ip: "192.0.2.7", hostnames: ["a", "b"] },
        { ip: "192.0.2.8", hostnames: ["c"] },
      ],
    },
    want: `${HEAD}10.0.0.5\tweb\n\n# Entries added by HostAliases.\n192.0.2.7\ta\tb\n192.0.2.8\tc\n`,
  },
  {
    name: "on the host's network it is the node's file",
    spec: { hostNetwork: true },
    want: `# Kubernetes-managed hosts file (host network).\n${NODE}`,
  },
  {
    name: "the node's file need not end with a line break",
    spec: { hostNetwork: true, hostAliases: [{ ip: "192.0.2.7", hostnames: ["a"] }] },
    nodeHosts: "127.0.0.1 localhost",
    want: "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n\n# Entries added by HostAliases.\n192.0.2.7\ta\n",
  },
];

describe("/etc/hosts", () => {
  for (const { name, spec = {}, ips = ["10.0.0.5"], domain = "", nodeHosts = NODE, want } of cases) {
    test(name, () => {
      const of = pod("web").container("app").with(spec).build();
      assert.equal(hostsFile(of, { ips, nodeHosts, clusterDomain: domain }), want);
    });
  }
});
