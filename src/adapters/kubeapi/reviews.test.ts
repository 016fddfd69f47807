import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { ApiError, type KubeApi } from "./port.ts";
import { ApiReviews } from "./reviews.ts";

type Answer = object | Error;

function reviews(...answers: Answer[]) {
  const clock = new FakeClock();
  const sent: unknown[] = [];
  const create = async (_resource: unknown, { object }: { object: unknown }): Promise<unknown> => {
    sent.push(object);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return { metadata: {}, spec: {}, status: answer };
  };
  const api = { create } as unknown as Pick<KubeApi, "create">; // reason: only these two kinds are created here
  return { clock, sent, it: new ApiReviews({ api, clock, random: () => 0 }, "node-1") };
}

const { signal } = new AbortController();

const tokens: { name: string; status: object; want: unknown }[] = [
  {
    name: "somebody's",
    status: { authenticated: true, user: { username: "ann", uid: "1", groups: ["dev"], extra: { k: ["v"] } } },
    want: { name: "ann", uid: "1", groups: ["dev"], extra: { k: ["v"] } },
  },
  { name: "nobody's", status: { authenticated: false }, want: undefined },
  { name: "expired", status: { authenticated: false, error: "token has expired" }, want: undefined },
  { name: "of a server that says yes without a name", status: { authenticated: true, user: {} }, want: undefined },
  { name: "of a server that says nothing", status: {}, want: undefined },
  {
    name: "of a server that says yes as a word",
    status: { authenticated: "true", user: { username: "a" } },
    want: undefined,
  },
  { name: "of somebody whose name is none", status: { authenticated: true, user: { username: 7 } }, want: undefined },
  { name: "of a user that is a word", status: { authenticated: true, user: "ann" }, want: undefined },
  {
    name: "of somebody whose groups are a word",
    status: { authenticated: true, user: { username: "ann", groups: "system:masters" } },
    want: undefined,
  },
  {
    name: "of somebody with a group that is no word",
    status: { authenticated: true, user: { username: "ann", groups: [{ name: "system:masters" }] } },
    want: undefined,
  },
];
for (const { name, status, want } of tokens) {
  test(`a token that is ${name}`, async () => {
    const { it, sent } = reviews(status);
    assert.deepEqual(await it.review("t", { signal }), want);
    assert.deepEqual(sent, [{ metadata: {}, spec: { token: "t" } }]);
  });
}

test("a question about access is asked about this node", async () => {
  const { it, sent } = reviews({ allowed: true });
  const user = { name: "ann", groups: ["dev"], extra: { k: ["v"] } };
  assert.equal(await it.isAllowed({ user, verb: "get", subresource: "log" }, { signal }), true);
  assert.deepEqual(sent, [
    {
      metadata: {},
      spec: {
        user: "ann",
        groups: ["dev"],
        extra: { k: ["v"] },
        resourceAttributes: { verb: "get", version: "v1", resource: "nodes", subresource: "log", name: "node-1" },
      },
    },
  ]);
});

test("only a clear yes is a yes", async () => {
  const question = { user: { name: "a", groups: [] }, verb: "get", subresource: "log" };
  for (const status of [{ allowed: false }, {}, { allowed: true, denied: true }, { allowed: "true" }, { allowed: 1 }]) {
    assert.equal(await reviews(status).it.isAllowed(question, { signal }), false);
  }
});

test("a server that is away is asked five times, one that says no only once", async () => {
  const away = new ApiError("Unavailable", "away");
  const { it, clock, sent } = reviews(away, away, away, away, away);
  const failed = assert.rejects(it.review("t", { signal }), /away/);
  await clock.advance(500 + 750 + 1125 + 1688);
  await failed;
  assert.equal(sent.length, 5);
  const second = reviews(away, { authenticated: true, user: { username: "ann" } });
  const found = second.it.review("t", { signal });
  await second.clock.advance(500);
  assert.equal((await found)?.name, "ann");
  const refused = reviews(new ApiError("Forbidden", "no"));
  await assert.rejects(refused.it.review("t", { signal }), /no/);
  assert.equal(refused.sent.length, 1);
});
