import assert from "node:assert/strict";
import { test } from "node:test";
import { FairShare } from "./fair-share.ts";

/** Takes as many places as the client gets. */
function takeAll(share: FairShare, client: string): (() => void)[] {
  const taken: (() => void)[] = [];
  for (;;) {
    const release = share.take(client);
    if (release === undefined) return taken;
    taken.push(release);
  }
}

test("a client that takes all it can get has a ninth, and the next one nearly as much", () => {
  const share = new FairShare(256);
  assert.deepEqual([takeAll(share, "a").length, takeAll(share, "b").length], [29, 26]);
});

test("a newcomer finds a place beside thirty greedy clients", () => {
  const share = new FairShare(256);
  for (let client = 0; client < 30; client++) assert.ok(takeAll(share, `greedy-${client}`).length > 0);
  assert.ok(share.take("newcomer") !== undefined);
});

test("all places are taken at most, and returned ones can be taken by anybody", () => {
  const share = new FairShare(4);
  const releases = ["a", "b", "c", "d"].map((client) => share.take(client));
  assert.equal(share.take("e"), undefined);
  releases[0]?.();
  assert.ok(share.take("e") !== undefined);
});
