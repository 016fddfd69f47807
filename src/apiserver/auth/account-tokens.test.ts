import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { test } from "node:test";
import { newKey } from "../../adapters/kubeapi/certificates.ts";
import { PODS, SERVICE_ACCOUNTS } from "../../adapters/kubeapi/index.ts";
import { FakeClock } from "../../lib/clock.ts";
import { AccountTokens, ISSUER, type TokenOrder } from "./account-tokens.ts";

const KEY = newKey();
const POD = { kind: "Pod", name: "web", uid: "p1" };

/** Tokens of the account a/robot, and the UIDs that the API has for it and its pod. */
function bench() {
  const clock = new FakeClock();
  const uids: Record<string, string | undefined> = {
    [`${SERVICE_ACCOUNTS.plural} a/robot`]: "u1",
    [`${PODS.plural} a/web`]: "p1",
  };
  const read = {
    get: <T>({ plural }: { plural: string }, at: { namespace?: string; name: string }): T | undefined => {
      const uid = uids[`${plural} ${at.namespace}/${at.name}`];
      return uid === undefined ? undefined : ({ metadata: { uid } } as T); // reason: all that a review reads
    },
  };
  const make = (signingKey: string): AccountTokens => new AccountTokens({ clock, read, signingKey });
  const tokens = make(KEY);
  const issue = (order: Partial<TokenOrder> = {}, by = tokens): string =>
    by.issue({
      account: { metadata: { namespace: "a", name: "robot", uid: "u1" } },
      audiences: [],
      seconds: 600,
      bound: undefined,
      ...order,
    }).token;
  return {
    clock,
    uids,
    make,
    issue,
    review: (token: string, ...audiences: string[]) => tokens.review(token, audiences),
  };
}

const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8")) as Record<string, unknown>;

/** A token with these claims, signed with the right key. */
function signed(claims: unknown): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "ES256", typ: "JWT" })}.${part(claims)}`;
  const key = { key: createPrivateKey(KEY), dsaEncoding: "ieee-p1363" } as const;
  return `${text}.${sign("sha256", Buffer.from(text), key).toString("base64url")}`;
}

test("a token is its account's, in the groups of its namespace", () => {
  const { issue, review } = bench();
  assert.deepEqual(review(issue()), {
    name: "system:serviceaccount:a:robot",
    uid: "u1",
    groups: ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"],
    audiences: [ISSUER],
  });
});

test("a token names its pod to whoever reviews it", () => {
  const { issue, review } = bench();
  assert.deepEqual(review(issue({ bound: POD }))?.extra, {
    "authentication.kubernetes.io/pod-name": ["web"],
    "authentication.kubernetes.io/pod-uid": ["p1"],
  });
});

test("a token ends at its time, and the caller learns which that is", async () => {
  const { clock, issue, make, review } = bench();
  const token = issue();
  const order = { account: { metadata: {} }, audiences: [], seconds: 600, bound: undefined };
  assert.equal(make(KEY).issue(order).expiresAt, clock.now().wall + 600_000);
  await clock.advance(599_999);
  assert.ok(review(token));
  await clock.advance(1);
  assert.equal(review(token), undefined);
});

test("a clock that was set back by less than ten seconds does no harm", () => {
  const { clock, issue, review } = bench();
  const token = issue();
  const { wall } = clock.now();
  clock.setWall(wall - 9999);
  assert.ok(review(token));
  clock.setWall(wall - 10_000);
  assert.equal(review(token), undefined);
});

test("a token is only for its audiences; without a wish it is for the API", () => {
  const { issue, review } = bench();
  assert.deepEqual(review(issue({ audiences: ["vault", "db"] }), "db", "other")?.audiences, ["db"]);
  assert.equal(review(issue({ audiences: ["vault"] })), undefined);
  assert.equal(review(issue(), "vault"), undefined);
});

const ends: readonly (readonly [string, Readonly<Record<string, string | undefined>>])[] = [
  ["account that was deleted", { [`${SERVICE_ACCOUNTS.plural} a/robot`]: undefined }],
  ["account that was made anew", { [`${SERVICE_ACCOUNTS.plural} a/robot`]: "u2" }],
  ["pod that was deleted", { [`${PODS.plural} a/web`]: undefined }],
  ["pod that was made anew", { [`${PODS.plural} a/web`]: "p2" }],
];
for (const [name, change] of ends) {
  test(`a token of a ${name} is not valid any more`, () => {
    const { uids, issue, review } = bench();
    const token = issue({ bound: POD });
    assert.ok(review(token));
    Object.assign(uids, change);
    assert.equal(review(token), undefined);
  });
}

test("what another key signed, or was changed, is not a token", () => {
  const { make, issue, review } = bench();
  const token = issue();
  const [head = "", , signature = ""] = token.split(".");
  const body = Buffer.from(JSON.stringify({ ...claimsOf(token), exp: 9_999_999_999 })).toString("base64url");
  const foreign = issue({}, make(newKey()));
  for (const text of [foreign, `${head}.${body}.${signature}`, `${token}.x`, `${head}.${body}`, "", "..", "x.y.z"]) {
    assert.equal(review(text), undefined, text);
  }
});

test("what we signed for another purpose is not a token", () => {
  const { issue, review } = bench();
  const claims = claimsOf(issue());
  assert.ok(review(signed(claims)));
  const others = { ...claims, iss: "https://other" };
  const { exp: _exp, ...endless } = claims;
  const { nbf: _nbf, ...beginless } = claims;
  const { "kubernetes.io": _own, ...nobody } = claims;
  for (const wrong of [others, endless, beginless, nobody, { ...claims, aud: ISSUER }, [], "text", null]) {
    assert.equal(review(signed(wrong)), undefined, JSON.stringify(wrong));
  }
});
