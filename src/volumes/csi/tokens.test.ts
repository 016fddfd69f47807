import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { CSIDriver } from "../../model/generated/types.ts";
import { serviceAccountTokens } from "./tokens.ts";

const { signal } = new AbortController();
const web = pod("web").container("app").build();
const driver = (...tokenRequests: NonNullable<CSIDriver["spec"]["tokenRequests"]>): CSIDriver => ({
  metadata: { name: "d" },
  spec: { tokenRequests },
});
const HOUR = 3_600_000;
/** Answers each request with its own words; a token lives as long as it is asked for. */
const tokens = {
  token: ({ audience, expirationSeconds }: { audience: string; expirationSeconds: number }) => {
    const expiresAt = expirationSeconds * 1000 + 123;
    return Promise.resolve({ token: `for ${audience}`, expiresAt, refreshAt: expiresAt * 0.8 });
  },
};

describe("tokens of the pod's account for a driver", () => {
  test("are one attribute with the tokens by audience, their times in whole seconds as in Kubernetes", async () => {
    const object = driver({ audience: "vault", expirationSeconds: 7200 }, { audience: "" });
    const { attributes, refreshAt } = await serviceAccountTokens(object, web, { tokens, signal });
    assert.deepEqual(attributes, {
      "csi.storage.k8s.io/serviceAccount.tokens":
        '{"vault":{"token":"for vault","expirationTimestamp":"1970-01-01T02:00:00Z"},' +
        '"":{"token":"for ","expirationTimestamp":"1970-01-01T01:00:00Z"}}',
    });
    assert.equal(refreshAt, (HOUR + 123) * 0.8, "the first that runs out; an hour unless the driver says otherwise");
  });

  test("are none if the driver asks for none, or has no object", async () => {
    for (const object of [undefined, driver()]) {
      assert.deepEqual(await serviceAccountTokens(object, web, { signal }), { attributes: {}, refreshAt: undefined });
    }
  });

  test("need an API server", async () => {
    const asked = serviceAccountTokens(driver({ audience: "vault" }), web, { signal });
    await assert.rejects(asked, /tokens of service accounts need an API server/);
  });
});
