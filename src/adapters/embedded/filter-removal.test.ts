import assert from "node:assert/strict";
import { test } from "node:test";
import { filterRemoval, portmapRemoval } from "./filter-removal.ts";

const ours = "-A POSTROUTING -s 10.88.1.0/24 ! -o kts-1 -m comment --comment kubelet-ts-1 -j MASQUERADE";
const scaffolding = [
  ":CNI-HOSTPORT-DNAT - [0:0]",
  ":CNI-HOSTPORT-MASQ - [0:0]",
  ":CNI-HOSTPORT-SETMARK - [0:0]",
  "-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
  "-A OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
  '-A POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
  "-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE",
  "-A CNI-HOSTPORT-SETMARK -j MARK --set-xmark 0x2000/0x2000",
];
const mapping = (network: string, chain: string): string[] => [
  `:${chain} - [0:0]`,
  `-A CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"${network}\\" id: \\"abc\\"" -m multiport --dports 80 -j ${chain}`,
  `-A ${chain} -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.88.1.5:8080`,
];
const nat = (...lines: string[]): string =>
  [
    "*nat",
    ":PREROUTING ACCEPT [0:0]",
    ...lines.toSorted((a, b) => Number(b.startsWith(":")) - Number(a.startsWith(":"))),
    "COMMIT",
    "",
  ].join("\n");

/** What takes the port mapping of our pod away. */
const mappingGone = [
  "*nat",
  '-D CNI-HOSTPORT-DNAT -p tcp -m comment --comment "dnat name: \\"kubelet-ts-1\\" id: \\"abc\\"" -m multiport --dports 80 -j CNI-DN-a',
  "-F CNI-DN-a",
  "-X CNI-DN-a",
  "COMMIT",
];

const cases = [
  { name: "nothing of ours, nothing to do", saved: nat("-A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE"), want: [] },
  { name: "an empty rule set", saved: "", want: [] },
  { name: "our masquerade rule goes", saved: nat(ours), want: ["*nat", `-D ${ours.slice(3)}`, "COMMIT"] },
  {
    name: "a rule of another state directory stays, also when its name begins like ours",
    saved: nat(ours.replace("kubelet-ts-1", "kubelet-ts-12")),
    want: [],
  },
  {
    name: "a pod's port mapping goes with its chain; another network's stays with the scaffolding",
    saved: nat(...scaffolding, ...mapping("kubelet-ts-1", "CNI-DN-a"), ...mapping("other", "CNI-DN-b")),
    want: mappingGone,
  },
  {
    name: "the last port mapping goes by itself",
    saved: nat(...scaffolding, ...mapping("kubelet-ts-1", "CNI-DN-a")),
    want: mappingGone,
  },
];
for (const { name, saved, want } of cases) {
  test(name, () => assert.deepEqual(filterRemoval(saved, "kubelet-ts-1").split("\n").filter(Boolean), want));
}

const scaffoldings = [
  { name: "without portmap's chains there is no scaffolding to remove", saved: nat(ours), want: [] },
  {
    name: "the scaffolding stays as long as anybody has a port mapping",
    saved: nat(...scaffolding, ...mapping("other", "CNI-DN-b")),
    want: [],
  },
  {
    name: "the scaffolding goes rule by rule, and no chain is flushed",
    saved: nat(ours, ...scaffolding),
    want: [
      "*nat",
      "-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
      "-D OUTPUT -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
      '-D POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ',
      "-D CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE",
      "-D CNI-HOSTPORT-SETMARK -j MARK --set-xmark 0x2000/0x2000",
      "-X CNI-HOSTPORT-DNAT",
      "-X CNI-HOSTPORT-SETMARK",
      "-X CNI-HOSTPORT-MASQ",
      "COMMIT",
    ],
  },
];
for (const { name, saved, want } of scaffoldings) {
  test(name, () => assert.deepEqual(portmapRemoval(saved).split("\n").filter(Boolean), want));
}
