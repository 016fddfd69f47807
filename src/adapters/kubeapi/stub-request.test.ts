import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { stubRequest } from "./stub-request.ts";

// RSA 4096 differs from 3072 only in its length, and takes seconds.
for (const [type, words] of [
  ["RSA3072", /Public-Key: \(3072 bit\)/],
  ["ECDSAP256", /ASN1 OID: prime256v1/],
  ["ECDSAP384", /ASN1 OID: secp384r1/],
  ["ECDSAP521", /ASN1 OID: secp521r1/],
  ["ED25519", /ED25519 Public-Key/],
] as const) {
  test(`a request with a key of type ${type} is signed by it and names nobody`, async () => {
    const { keyPem, request } = await stubRequest(type);
    assert.match(keyPem, /^-----BEGIN PRIVATE KEY-----/);
    const options = { input: Buffer.from(request, "base64"), encoding: "utf8", stdio: "pipe" } as const;
    const text = execFileSync("openssl", ["req", "-inform", "DER", "-noout", "-verify", "-text"], options);
    assert.match(text, words);
    assert.match(text, /Subject: *\n/);
  });
}

test("another type of key is refused", async () => {
  await assert.rejects(stubRequest("DSA"), /unknown key type "DSA"/);
  await assert.rejects(stubRequest("constructor"), /unknown key type/);
});
