import assert from "node:assert/strict";
import { test } from "node:test";
import { metadataText } from "./metadata.ts";

test("metadata is written as Kubernetes writes it, to the byte", () => {
  // What json.Encoder of Go makes of the same map.
  const text = metadataText({ volumeHandle: 'a<b>&c\u2028"\\é', driverName: "d" });
  assert.equal(text, '{"driverName":"d","volumeHandle":"a\\u003cb\\u003e\\u0026c\\u2028\\"\\\\é"}\n');
});
