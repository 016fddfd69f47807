import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutOf } from "./layout.ts";
import { networkRules, renderConflist } from "./network.ts";

const layout = layoutOf({ stateDir: "/var/lib/kubelet-ts" });
const network = { bridge: layout.bridge, podCidr: "10.88.1.0/24" };

test("names follow from the state directory and fit where they are used", () => {
  assert.deepEqual(layoutOf({ stateDir: "/var/lib/kubelet-ts/" }), layout);
  assert.notEqual(layoutOf({ stateDir: "/var/lib/other" }).name, layout.name);
  assert.ok(layout.bridge.length <= 15);
  assert.ok(layout.runtimeCgroup.startsWith(`${layout.cgroupRoot}/`));
});

const policies = [
  { policy: "ACCEPT", chains: ["nat POSTROUTING"] },
  { policy: "DROP", chains: ["nat POSTROUTING", "filter FORWARD", "filter FORWARD", "filter FORWARD"] },
];
for (const { policy, chains } of policies) {
  test(`with FORWARD policy ${policy} the rules are in ${chains.join(", ")}`, () => {
    const rules = networkRules(layout, network, policy);
    assert.deepEqual(
      rules.map(({ table, chain }) => `${table} ${chain}`),
      chains,
    );
    for (const { words } of rules) assert.equal(words[words.indexOf("--comment") + 1], layout.name);
  });
}

test("the bridge leaves masquerading to the one static rule and keeps addresses in the state directory", () => {
  const { name, plugins } = JSON.parse(renderConflist(layout, network));
  assert.equal(name, layout.name);
  assert.equal(plugins[0].ipMasq, false);
  assert.equal(plugins[0].ipam.dataDir, layout.ipamDir);
  assert.deepEqual(plugins[1].capabilities, { portMappings: true });
});
