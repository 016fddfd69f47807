import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { NftTable } from "./nft-table.ts";

const OPTIONS = { name: "t", serviceSubnet: "10.43.0.0/16", podSubnet: "10.88.0.0/16", bridge: "b", hidesPods: true };

for (const stdout of ["", "{", '{"nftables": 1}', '{"nftables": [{"map": {"name": "hairpin", "elem": [null]}}]}']) {
  test(`output of nft that is not understood is an error of netfilter: ${stdout || "nothing"}`, async () => {
    const table = new NftTable({ exec: async () => ({ code: 0, stdout, stderr: "" }) }, OPTIONS);
    const { signal } = manyListeners();
    await assert.rejects(table.isIntact({ signal }), { name: "NetfilterError", code: "Refused" });
  });
}
