import assert from "node:assert/strict";
import { test } from "node:test";
import type { Forwarding, ForwardingTable } from "../../src/adapters/nftables/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";

/** A table of its own for each test, a second view of the same kernel, and what an outsider may do to it. */
export interface ForwardingHarness {
  readonly table: ForwardingTable;
  /** Another agent on the same kernel: it knows nothing of what was written. */
  restarted(): ForwardingTable;
  /** Somebody else removes all tables. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

const signal = { signal: manyListeners().signal };

function forwarding(key: string, more: Partial<Forwarding> = {}): Forwarding {
  const targets = [
    { ip: "10.88.0.2", port: 8080 },
    { ip: "10.88.0.3", port: 8080 },
  ];
  return { key, protocol: "tcp", addresses: ["10.43.0.5"], port: 80, targets, ...more };
}

/** What every table of forwardings does. */
export function forwardingSuite(name: string, open: () => Promise<ForwardingHarness>): void {
  const contract = (title: string, body: (harness: ForwardingHarness) => Promise<void>): void => {
    test(`${name}: ${title}`, async () => {
      const harness = await open();
      try {
        await body(harness);
      } finally {
        await harness.close();
      }
    });
  };

  contract("there is no table before the first write", async ({ table }) => {
    assert.equal(await table.isIntact(signal), false);
    assert.equal(await table.replace([], signal), true);
    assert.equal(await table.isIntact(signal), true);
  });

  contract("what is there is not written again, not even by the next agent", async ({ table, restarted }) => {
    const all = [
      forwarding("a", { nodePort: 30_080 }),
      forwarding("b", { addresses: ["10.43.0.6"], protocol: "udp", affinitySeconds: 60 }),
      forwarding("c", { addresses: ["10.43.0.7"], protocol: "sctp" }),
    ];
    assert.equal(await table.replace(all, signal), true);
    assert.equal(await table.replace(all, signal), false);
    assert.equal(await restarted().replace(all, signal), false);
    assert.equal(await restarted().replace(all.slice(1), signal), true);
    assert.equal(await table.isIntact(signal), false);
  });

  contract("changes of any kind leave exactly what is wanted", async ({ table, restarted }) => {
    await table.replace([forwarding("a")], signal);
    const steps: Forwarding[] = [
      forwarding("a", { targets: [{ ip: "10.88.0.9", port: 1 }] }),
      forwarding("a", { affinitySeconds: 10 }),
      forwarding("a", { affinitySeconds: 20, nodePort: 30_001 }),
      forwarding("a", { port: 81, nodePort: 30_002, addresses: ["10.43.0.5", "192.0.2.1"] }),
      forwarding("a", { targets: [] }),
      forwarding("a", { protocol: "udp" }),
    ];
    for (const step of steps) {
      await table.update({ set: [step], remove: [] }, signal);
      assert.equal(await table.isIntact(signal), true);
      assert.equal(await restarted().replace([step], signal), false, JSON.stringify(step));
    }
    await table.update({ set: [], remove: ["a", "unknown"] }, signal);
    assert.equal(await table.isIntact(signal), true);
    assert.equal(await restarted().replace([], signal), false);
  });

  contract("two that have a target or an address in common do not disturb each other", async ({ table }) => {
    const [a, b] = [forwarding("a"), forwarding("b")];
    await table.replace([a, b], signal);
    assert.equal(await table.isIntact(signal), true);
    await table.update({ set: [], remove: ["a"] }, signal);
    assert.equal(await table.isIntact(signal), true);
    await table.update({ set: [a], remove: ["b"] }, signal);
    assert.equal(await table.isIntact(signal), true);
  });

  contract("a foreign flush is noticed and repaired", async ({ table, flush }) => {
    await table.replace([forwarding("a"), forwarding("b", { addresses: ["10.43.0.6"] })], signal);
    await flush();
    assert.equal(await table.isIntact(signal), false);
    await assert.rejects(table.update({ set: [], remove: ["a"] }, signal), { code: "Damaged" });
    assert.equal(await table.replace([forwarding("b", { addresses: ["10.43.0.6"] })], signal), true);
    assert.equal(await table.isIntact(signal), true);
  });
}
