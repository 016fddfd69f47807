import assert from "node:assert/strict";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { bareRequest } from "../../adapters/net/http-route.ts";
import { pageAnswer } from "./pieces.ts";

const cases = [
  { accepted: undefined, isZipped: false },
  { accepted: "identity", isZipped: false },
  { accepted: "gzip", isZipped: true },
  { accepted: "deflate, gzip;q=0.5", isZipped: true },
  { accepted: "gzip;q=0", isZipped: false },
  { accepted: "gzip; q=0.000", isZipped: false },
  { accepted: "gzipped", isZipped: false },
];

for (const { accepted, isZipped } of cases) {
  test(`a page for a client that accepts ${accepted ?? "nothing in particular"}`, async () => {
    const headers = { "accept-encoding": accepted };
    const answer = pageAnswer("up 1\n", bareRequest("GET", "/metrics", { headers }));
    assert.equal(answer.headers?.["Content-Encoding"], isZipped ? "gzip" : undefined);
    assert.equal(answer.type, "text/plain; version=0.0.4; charset=utf-8");
    if (typeof answer.body === "string") return assert.equal(answer.body, "up 1\n");
    assert.equal(gunzipSync(await buffer(answer.body as AsyncIterable<Uint8Array>)).toString(), "up 1\n");
  });
}
