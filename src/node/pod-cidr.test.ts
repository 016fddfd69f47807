import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Node } from "../model/generated/types.ts";
import { standalonePodCidr, syncPodCidr } from "./pod-cidr.ts";

const node = (podCIDRs: readonly string[]): Node => ({
  metadata: { name: "n1" },
  spec: { podCIDR: podCIDRs[0] ?? "", podCIDRs: [...podCIDRs] },
});

/** A runtime that fails `failures` times, and a node that changes. */
function site(current: Node | undefined, failures = 0) {
  const clock = new FakeClock();
  const stop = manyListeners();
  const sent: string[] = [];
  let left = failures;
  let changed: ((node: Node) => void) | undefined;
  const runtime = {
    setPodCidr: async (cidr: string): Promise<void> => {
      if (left-- > 0) throw new Error("unavailable");
      sent.push(cidr);
    },
  };
  const reporter = { current, onNode: (fn: (node: Node) => void) => void (changed = fn) };
  const common = { clock, log: silent, runtime };
  return { clock, stop, sent, common, reporter, change: (next: Node) => changed?.(next) };
}

test("the subnet of the node is passed on, each once, and again until the runtime takes it", async () => {
  const { clock, stop, sent, common, reporter, change } = site(undefined, 2);
  const done = syncPodCidr({ ...common, node: reporter, configured: "" }, stop.signal);
  await clock.advance(1000);
  assert.deepEqual(sent, []);
  change(node(["10.1.0.0/24", "fd00::/64"]));
  await clock.advance(5000);
  assert.deepEqual(sent, ["10.1.0.0/24,fd00::/64"]);
  change(node(["10.1.0.0/24", "fd00::/64"]));
  await clock.advance(5000);
  assert.equal(sent.length, 1);
  stop.abort();
  await done;
});

test("the configured subnet holds until the node has one", async () => {
  const { clock, stop, sent, common, reporter, change } = site(undefined);
  const done = syncPodCidr({ ...common, node: reporter, configured: "10.9.0.0/24" }, stop.signal);
  await clock.advance(0);
  change(node([]));
  await clock.advance(0);
  change(node(["10.1.0.0/24"]));
  await clock.advance(0);
  assert.deepEqual(sent, ["10.9.0.0/24", "10.1.0.0/24"]);
  stop.abort();
  await done;
});

test("without a Node object there is a loop only for a configured subnet", async () => {
  const { clock, stop, sent, common } = site(undefined, 1);
  assert.deepEqual(standalonePodCidr({ ...common, configured: "" }), []);
  const [loop] = standalonePodCidr({ ...common, configured: "10.9.0.0/24" });
  const done = loop?.run(stop.signal);
  await clock.advance(1000);
  assert.deepEqual(sent, ["10.9.0.0/24"]);
  stop.abort();
  await done;
});
