import assert from "node:assert/strict";
import { test } from "node:test";
import { countCpu } from "../../../test/support/cpu-time.ts";
import { passwordsIn, redact } from "./redact.ts";

const cases = [
  { text: "no access to r.io", want: "no access to r.io" },
  { text: "said s3cret-word twice: s3cret-word", want: "said [redacted] twice: [redacted]" },
  { text: "jwt eyJhbGci.eyJzdWIi.sig end", want: "jwt [redacted] end" },
  { text: "see docs.r.io.eyJx", want: "see docs.r.io.eyJx" },
  { text: "id=x.eyJhbGci.eyJzdWIi.sig", want: "id=x.[redacted]" },
  { text: "Authorization: Basic dXNlcjpwYXNz", want: "Authorization: Basic [redacted]" },
  { text: "GET https://user:pw@r.io/v2", want: "GET https://[redacted]@r.io/v2" },
  { text: '{"password":"hunter2"}', want: '{"password":"[redacted]"}' },
  { text: "token=abc; next", want: "token=[redacted]; next" },
];
for (const { text, want } of cases) test(text, () => assert.equal(redact(text, ["s3cret-word", "a"], 200), want));

test("what is left is bounded", () => assert.ok(Buffer.byteLength(redact("x".repeat(10_000), [], 100)) <= 100));

test("a text made of beginnings of tokens takes no time, and a long one is not looked through", () => {
  const cpuMs = countCpu();
  assert.ok(redact("eyJ".repeat(10_000), [], 1000).startsWith("eyJeyJ"));
  assert.equal(redact("eyJ".repeat(40_000), [], 100), "wrote 120000 characters to its standard error");
  assert.ok(cpuMs() < 1000);
});

test("passwords are found in a broken response", () => {
  assert.deepEqual(passwordsIn('{"auth":{"a":{"password":"one\\"two"},"b":{"password": "three"'), ['one"two', "three"]);
});
