import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";
import { ApiTokens } from "./api-tokens.ts";

const pod = (uid: string): Pod => ({
  metadata: { name: "web", namespace: "ns", uid },
  spec: { containers: [], serviceAccountName: "robot" },
});
const wish = { pod: pod("u1"), audience: "", expirationSeconds: 3600 };
const never = { signal: manyListeners().signal };

function site() {
  const clock = new FakeClock();
  const asked: unknown[] = [];
  const metadata: unknown[] = [];
  const world = { away: false };
  const api = {
    createToken: async (at: unknown, request: { metadata: object; spec: { expirationSeconds: number } }) => {
      if (world.away) throw new ApiError("Unavailable", "away");
      asked.push([at, request.spec]);
      metadata.push(request.metadata);
      const ends = clock.now().wall + request.spec.expirationSeconds * 1000;
      return { status: { token: `t${asked.length}`, expirationTimestamp: new Date(ends).toISOString() } };
    },
  };
  // The fake speaks of tokens only.
  return { clock, asked, metadata, world, tokens: new ApiTokens({ api: api as never, clock, random: () => 0 }) };
}

test("a token is bound to its pod and asked for once", async () => {
  const { asked, tokens } = site();
  const both = await Promise.all([tokens.token(wish, never), tokens.token(wish, never)]);
  assert.deepEqual(
    both.map(({ token }) => token),
    ["t1", "t1"],
  );
  assert.deepEqual(asked, [
    [
      { namespace: "ns", name: "robot" },
      { expirationSeconds: 3600, boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "web", uid: "u1" } },
    ],
  ]);
});

test("a token for a certain service account is asked for with its uid, and apart from others", async () => {
  const { metadata, tokens } = site();
  await tokens.token(wish, never);
  await tokens.token({ ...wish, accountUid: "sa-1" }, never);
  assert.deepEqual(metadata, [{}, { uid: "sa-1" }]);
});

test("it is asked for anew at four fifths of its life", async () => {
  const { clock, tokens } = site();
  const { refreshAt } = await tokens.token(wish, never);
  assert.equal(refreshAt - clock.now().wall, 2_880_000);
  await clock.advance(2_879_000);
  assert.equal((await tokens.token(wish, never)).token, "t1");
  await clock.advance(1000);
  assert.equal((await tokens.token(wish, never)).token, "t2");
});

test("one of a long life is asked for anew after a day", async () => {
  const { clock, tokens } = site();
  const { refreshAt } = await tokens.token({ ...wish, expirationSeconds: 10 * 86_400 }, never);
  assert.equal(refreshAt - clock.now().wall, 86_400_000);
});

test("while the server is away the old one is given out, until it ends", async () => {
  const { clock, world, tokens } = site();
  await tokens.token(wish, never);
  world.away = true;
  await clock.advance(3_000_000);
  const old = await tokens.token(wish, never);
  assert.deepEqual([old.token, old.refreshAt - clock.now().wall], ["t1", 10_000]);
  await clock.advance(700_000);
  await assert.rejects(tokens.token(wish, never), /away/);
});

test("tokens of pods that are gone are forgotten, others are not", async () => {
  const { tokens } = site();
  await tokens.token(wish, never);
  await tokens.token({ ...wish, pod: pod("u2") }, never);
  tokens.wanted([pod("u2")]);
  assert.equal((await tokens.token({ ...wish, pod: pod("u2") }, never)).token, "t2");
  assert.equal((await tokens.token(wish, never)).token, "t3");
});
