import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findUserPool, type UserPool, userPool } from "./user-pool.ts";

const IDS = 65_536;
const settings = { idsPerPod: IDS, maxPods: 110 };
const said = (first: number, length: number, index = 0): string => `${index}: kubelet ${first} ${length}\n`;
const good = said(IDS, 110 * IDS);
const passwd = "root:x:0:0::/root:/bin/sh\nkubelet:x:999:999::/:/bin/false\n";

const rows: [name: string, uids: string, gids: string, want: UserPool | RegExp][] = [
  ["exactly enough", good, good, { first: IDS, length: 110 * IDS }],
  [
    "more than enough, higher up",
    said(IDS * 10, 200 * IDS),
    said(IDS * 10, 200 * IDS),
    { first: IDS * 10, length: 200 * IDS },
  ],
  ["others for groups", good, said(IDS * 2, 110 * IDS), /differ/],
  ["none for groups", good, "", /differ/],
  ["none at all", "", "", /exactly one range in \/etc\/subuid, and has 0/],
  ["two ranges", good + said(IDS * 300, IDS, 1), good + said(IDS * 300, IDS, 1), /has 2/],
  ["somebody else's", "0: docker 65536 7208960\n", "0: docker 65536 7208960\n", /exactly one/],
  ["no multiple at the beginning", said(100_000, 110 * IDS), said(100_000, 110 * IDS), /multiples of 65536/],
  ["the host's own ids", said(0, 110 * IDS), said(0, 110 * IDS), /multiples/],
  ["no multiple in length", said(IDS, 110 * IDS + 1), said(IDS, 110 * IDS + 1), /multiples/],
  ["too few", said(IDS, 109 * IDS), said(IDS, 109 * IDS), /110 pods need 7208960/],
];

describe("the ids of the user kubelet", () => {
  for (const [name, uids, gids, want] of rows) {
    test(name, () => {
      if (want instanceof RegExp) assert.throws(() => userPool(uids, gids, settings), want);
      else assert.deepEqual(userPool(uids, gids, settings), want);
    });
  }

  test("are asked for only when there is such a user and the program", async () => {
    const asked: string[] = [];
    const run = async (program: string, args: readonly string[]): Promise<string> => {
      asked.push([program, ...args].join(" "));
      return good;
    };
    assert.equal(await findUserPool({ users: "root:x:0:0::/root:/bin/sh\n", run }, settings), undefined);
    assert.deepEqual(asked, []);
    assert.deepEqual(await findUserPool({ users: passwd, run }, settings), { first: IDS, length: 110 * IDS });
    assert.deepEqual(asked, ["getsubids kubelet", "getsubids -g kubelet"]);
    assert.equal(await findUserPool({ users: passwd, run: async () => undefined }, settings), undefined);
  });
});
