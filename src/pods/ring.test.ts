import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { DesiredPods } from "./desired.ts";
import { PodRing } from "./ring.ts";

/** A ring of two sources, and what it called, in order. */
function ring() {
  const clock = new FakeClock();
  const calls: string[] = [];
  const desired = new DesiredPods({ clock }, { sources: ["file", "http"] });
  const swept: string[][] = [];
  const left: string[] = [];
  const cgroups: string[] = [];
  const made = new PodRing<string>(
    {
      clock,
      log: silent,
      desired,
      pool: {
        worker: () => undefined,
        apply: ({ added }) => calls.push(`workers ${added.length}`),
        listed: (pods) => calls.push(`listed ${pods.size}`),
      },
      objects: { apply: (source, objects) => calls.push(`objects ${source} ${objects}`) },
      desiredChanged: (pods) => calls.push(`desired ${pods.length}`),
      volumes: {
        removeOrphans: async (isKnown) => {
          const all = ["uid-of-web", "in-runtime", "orphan"];
          swept.push(all.filter((uid) => !isKnown(uid)));
          return left;
        },
      },
      execute: {
        files: { list: async () => [] },
        node: { paths: { containerLogsDir: "/logs" } },
        cgroups: {
          uids: () => ["uid-of-web", "in-runtime", "orphan"],
          remove: async (uid: string) => void cgroups.push(uid),
        },
      } as never, // reason: only the directory of log links and the cgroups are read here
    },
    manyListeners().signal,
  );
  return { made, calls, swept, left, clock, cgroups };
}

const web = { pod: pod("web").container("app").build(), warnings: [] };
const listed = new Map([["in-runtime", { name: "x", namespace: "default", annotations: {} }]]);
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a snapshot reaches objects, then followers of desired pods, then workers", () => {
  const { made, calls } = ring();
  made.publish({ source: "file", pods: [web], objects: "config" });
  assert.deepEqual(calls, ["objects file config", "desired 1", "workers 1"]);
});

test("orphaned pods are removed only once every source and the runtime have listed their pods", async () => {
  const { made, swept, clock } = ring();
  made.publish({ source: "file", pods: [web], objects: "" });
  made.listed(listed);
  assert.deepEqual(made.listedAt, clock.now());
  assert.deepEqual(swept, []);
  made.publish({ source: "http", pods: [], objects: "", isIncomplete: true });
  assert.deepEqual(swept, []);
  made.publish({ source: "http", pods: [], objects: "" });
  assert.deepEqual(swept, [["orphan"]]);
  await settled();
  made.listed(listed);
  assert.equal(swept.length, 1);
});

test("directories that could not be removed are tried again at the next relist", async () => {
  const { made, swept, left } = ring();
  left.push("orphan");
  for (const source of ["file", "http"]) made.publish({ source, pods: [], objects: "" });
  made.listed(listed);
  await settled();
  made.listed(listed);
  assert.equal(swept.length, 2);
});

test("cgroups of pods that neither a source nor the runtime knows are removed", async () => {
  const { made, cgroups } = ring();
  for (const source of ["file", "http"]) made.publish({ source, pods: source === "file" ? [web] : [], objects: "" });
  made.listed(listed);
  await settled();
  assert.deepEqual(cgroups, ["orphan"]);
});
