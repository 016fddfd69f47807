import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Pod } from "../../model/generated/types.ts";
import { CONFIG_SOURCE_ANNOTATION } from "../../model/labels.ts";
import { refusalOf, type SecurityRules } from "./refusal.ts";

const good = pod("web").container("app").build();
const bad = pod("web")
  .container("app")
  .with({ volumes: [{ name: "disk", flocker: {} }] })
  .build();

describe("a pod that asks for what is not supported", () => {
  test("is rejected with the names of the fields", () => {
    assert.equal(refusalOf(good), undefined);
    assert.match(refusalOf(bad)?.message ?? "", /spec\.volumes\[0\]\.flocker: /);
  });

  test("waits with the reason, and is not Failed: a controller would replace it without end", async () => {
    const ring = new FakeRing();
    await ring.want(bad);
    assert.equal(ring.status()?.phase, "Pending");
    const waiting = ring.status()?.containerStatuses?.[0]?.state?.waiting;
    assert.equal(waiting?.reason, "CreateContainerConfigError");
    assert.match(waiting?.message ?? "", /volumes\[0\]\.flocker/);
    assert.deepEqual(await ring.containers(), []);
    await ring.clock.advance(600_000);
    assert.equal(ring.journal.events(0).filter(({ reason }) => reason === "Failed").length, 1, "said once");
  });

  test("is started as soon as it no longer asks for it", async () => {
    const ring = new FakeRing();
    await ring.want(bad);
    await ring.want(good);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("keeps what runs already, and can be removed", async () => {
    const ring = new FakeRing();
    await ring.want(good);
    await ring.want(bad);
    assert.equal((await ring.containers()).filter(({ state }) => state === "running").length, 1);
    await ring.want();
    await ring.clock.advance(60_000);
    assert.deepEqual(await ring.containers(), []);
  });
});

const open: SecurityRules = {
  allowPrivileged: true,
  hostNetworkSources: ["*"],
  hostPIDSources: ["*"],
  hostIPCSources: ["*"],
};
const shut: SecurityRules = { allowPrivileged: false, hostNetworkSources: [], hostPIDSources: [], hostIPCSources: [] };
const privileged = { securityContext: { privileged: true } };
const plain = pod("a").container("c");
const strong = pod("a").container("c", privileged).build();
const strongInit = pod("a").container("c").init("i", privileged).build();
const modest = pod("a")
  .container("c", { securityContext: { privileged: false } })
  .build();
const network = pod("a").container("c").with({ hostNetwork: true }).build();
const processes = pod("a").container("c").with({ hostPID: true }).build();
const ipc = pod("a").container("c").with({ hostIPC: true }).build();
const all = pod("a").container("c", privileged).with({ hostNetwork: true, hostPID: true, hostIPC: true }).build();

const rows: { name: string; of: Pod; rules: Partial<SecurityRules>; source?: string; says?: string }[] = [
  { name: "an ordinary pod runs under the strictest rules", of: plain.build(), rules: shut },
  { name: "privileged, allowed", of: strong, rules: {} },
  { name: "privileged, not allowed", of: strong, rules: { allowPrivileged: false }, says: "privileged container" },
  { name: "an init container counts", of: strongInit, rules: { allowPrivileged: false }, says: "privileged container" },
  { name: "one that sets privileged to false", of: modest, rules: { allowPrivileged: false } },
  { name: "host network, source may", of: network, rules: { hostNetworkSources: ["file", "http"] }, source: "http" },
  {
    name: "host network, source may not",
    of: network,
    rules: { hostNetworkSources: ["file"] },
    says: "host networking",
  },
  { name: "host network, none may", of: network, rules: { hostNetworkSources: [] }, says: "host networking" },
  { name: "a star among others is all", of: network, rules: { hostNetworkSources: ["file", "*"] } },
  { name: "host processes, source may", of: processes, rules: { hostPIDSources: ["api"] } },
  { name: "host processes, source may not", of: processes, rules: { hostPIDSources: ["http"] }, says: "host PID" },
  { name: "host IPC, source may", of: ipc, rules: { hostIPCSources: ["file"] }, source: "file" },
  { name: "host IPC, source may not", of: ipc, rules: { hostIPCSources: ["file"] }, source: "http", says: "host ipc" },
  { name: "the first rule that forbids it is reported", of: all, rules: shut, says: "privileged container" },
  { name: "then the network", of: all, rules: { ...shut, allowPrivileged: true }, says: "host networking" },
  { name: "each namespace has its own sources", of: all, rules: { hostIPCSources: ["file"] }, says: "host ipc" },
];

describe("what the node forbids", () => {
  for (const { name, of, rules, source = "api", says } of rows) {
    test(name, () => {
      const annotations = { [CONFIG_SOURCE_ANNOTATION]: source };
      const message = `pod with UID "${of.metadata.uid}" specified ${says}, but is disallowed`;
      const want = says === undefined ? undefined : { reason: "Blocked", message };
      const asked: Pod = { ...of, metadata: { ...of.metadata, annotations } };
      assert.deepEqual(refusalOf(asked, { ...open, ...rules }), want);
    });
  }

  test("waits as Blocked and Pending, and runs once it no longer asks", async () => {
    const ring = new FakeRing();
    ring.security = { ...open, hostNetworkSources: ["api"] };
    await ring.want(pod("web").container("app").with({ hostNetwork: true }).build());
    assert.equal(ring.status()?.phase, "Pending");
    assert.equal(ring.status()?.containerStatuses?.[0]?.state?.waiting?.reason, "Blocked");
    assert.deepEqual(await ring.containers(), []);
    await ring.want(good);
    assert.equal(ring.status()?.phase, "Running");
  });
});
