import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";
import { DesiredPods } from "./desired.ts";

const list = (...pods: Pod[]) => ({ source: "file", pods: pods.map((one) => ({ pod: one, warnings: [] })) });
const uids = (pods: readonly { uid: string }[]): string[] => pods.map(({ uid }) => uid);
const web = pod("web").container("a").build();

function make(sources = ["file"]): DesiredPods {
  return new DesiredPods({ clock: new FakeClock() }, { sources });
}

test("a snapshot adds, updates and removes by UID", () => {
  const desired = make();
  assert.deepEqual(uids(desired.apply(list(web)).added), ["uid-of-web"]);
  const changed = { ...web, metadata: { ...web.metadata, labels: { a: "b" } } };
  assert.deepEqual(uids(desired.apply(list(changed)).updated), ["uid-of-web"]);
  assert.deepEqual(uids(desired.apply(list()).removed), ["uid-of-web"]);
  assert.equal(desired.get("uid-of-web"), undefined);
});

test("the same snapshot again changes nothing", () => {
  const desired = make();
  desired.apply(list(web));
  const { added, updated, removed } = desired.apply(list(structuredClone(web)));
  assert.deepEqual([added.length, updated.length, removed.length], [0, 0, 0]);
});

test("a pod that is gone and back is a removal and an addition", () => {
  const desired = make();
  desired.apply(list(web));
  assert.equal(desired.apply(list()).removed.length, 1);
  assert.equal(desired.apply(list(web)).added.length, 1);
});

test("sources do not touch each other's pods, and all must speak before they count as ready", () => {
  const desired = make(["file", "http"]);
  desired.apply(list(web));
  assert.equal(desired.allSourcesReady, false);
  const change = desired.apply({ source: "http", pods: [] });
  assert.equal(change.removed.length, 0);
  assert.equal(desired.allSourcesReady, true);
});

test("each time the list becomes complete is reported", () => {
  const desired = make(["file", "http"]);
  let reported = 0;
  desired.onComplete(() => void reported++, new AbortController());
  desired.apply(list(web));
  assert.equal(reported, 0);
  desired.apply({ source: "http", pods: [] });
  desired.apply(list());
  assert.equal(reported, 1);
  desired.apply({ ...list(), isIncomplete: true });
  desired.apply(list());
  assert.equal(reported, 2);
});
