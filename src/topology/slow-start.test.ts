import assert from "node:assert/strict";
import { test } from "node:test";
import { machine } from "../../test/support/machine.ts";
import { pod } from "../../test/support/pods.ts";
import { TopologyNode } from "../../test/support/topology-node.ts";
import { fixed } from "../lib/live.ts";
import type { Pod } from "../model/generated/types.ts";
import { DesiredPods } from "../pods/desired.ts";
import { FileSource } from "../sources/file-source.ts";

const PERIOD_MS = 10_000;
const { signal } = new AbortController();

/** A source whose only manifest takes `readMs` to be read. */
function slowSource(node: TopologyNode, manifest: Pod, { readMs }: { readMs: number }) {
  const desired = new DesiredPods(node, { sources: ["file"] });
  const snapshots: string[] = [];
  const isDirectory = (path: string): boolean => path === "/pods";
  const source = new FileSource(
    {
      clock: node.clock,
      files: {
        stat: async (path) => ({ kind: isDirectory(path) ? "directory" : "file", size: 1, stamp: path }),
        list: async () => ["web.json"],
        read: async () => {
          await node.clock.sleep(readMs, { signal });
          return JSON.stringify({ apiVersion: "v1", kind: "Pod", ...manifest });
        },
      },
      parse: async (text) => ({ documents: [{ value: JSON.parse(text) as unknown, line: 1 }], warnings: [] }),
      watch: () => Promise.resolve(),
      publish: (snapshot) => {
        snapshots.push(`${snapshot.pods.length}${snapshot.isIncomplete ? " ?" : ""}`);
        desired.apply(snapshot);
      },
      report: ({ message }) => snapshots.push(message),
    },
    fixed({ path: "/pods", nodeName: "n", checkFrequencyMs: 60_000 }),
  );
  return { desired, source, snapshots };
}

test("on a slow machine, whose agent knows its pods later than its first look for stale CPUs, none are lost", async () => {
  const limits = { cpu: "2", memory: "1Gi" };
  const web = pod("web")
    .container("app", { image: "i:1", resources: { limits, requests: limits } })
    .build();
  const node = new TopologyNode(machine({ sockets: 1, cores: 4 }), ["--cpu-manager-policy=static"], { cpus: 1 });
  await node.admit(web);
  const holders = (): readonly string[] => node.topology.report().holdings.map(({ uid }) => uid);
  assert.deepEqual(holders(), ["uid-of-web"]);

  // The next agent: the runtime has listed its pods, and nobody has read one yet.
  const { desired, source, snapshots } = slowSource(node, web, { readMs: PERIOD_MS + 5000 });
  node.wanted = desired;
  const { loops } = node.start();
  const stop = new AbortController();
  const running = [source.run(stop.signal), ...loops.map((loop) => loop.run(stop.signal))];
  await node.clock.advance(PERIOD_MS);
  assert.deepEqual([snapshots, desired.allSourcesReady], [["0 ?"], true], "the source has delivered, without the pod");
  assert.deepEqual(holders(), ["uid-of-web"]);
  await node.clock.advance(PERIOD_MS);
  assert.deepEqual(snapshots, ["0 ?", "1"]);
  assert.deepEqual(holders(), ["uid-of-web"]);
  stop.abort();
  await Promise.allSettled(running);
});
