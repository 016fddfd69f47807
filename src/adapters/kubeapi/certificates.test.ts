import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { certificate, certificateRequest, newKey } from "./certificates.ts";
import { addressBytes } from "./der.ts";

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;
const needsOpenssl = { skip: hasOpenssl ? false : "no openssl on this machine" };

function openssl(args: readonly string[], input: string): string {
  const { status, stdout, stderr } = spawnSync("openssl", args, { input, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout + stderr;
}

const node = { commonName: "system:node:größe-1", organizations: ["system:nodes"] };

test("openssl accepts a client request and its signature", needsOpenssl, () => {
  const request = certificateRequest(newKey(), { subject: { ...node, commonName: "system:node:web-1" } });
  const text = openssl(["req", "-verify", "-noout", "-text", "-nameopt", "RFC2253"], request);
  assert.match(text, /verify OK/);
  assert.match(text, /Subject: CN=system:node:web-1,O=system:nodes/);
  assert.match(text, /ASN1 OID: prime256v1/);
  assert.doesNotMatch(text, /Alternative/);
});

test("openssl reads names and addresses of a serving request", needsOpenssl, () => {
  const request = certificateRequest(newKey(), {
    subject: node,
    dnsNames: ["web-1", "web-1.example"],
    addresses: ["10.0.0.7", "fd00::1:2"],
  });
  const text = openssl(["req", "-verify", "-noout", "-text", "-nameopt", "RFC2253,-esc_msb,utf8"], request);
  assert.match(text, /verify OK/);
  assert.match(text, /CN=system:node:größe-1/);
  assert.match(text, /DNS:web-1, DNS:web-1\.example, IP Address:10\.0\.0\.7, IP Address:FD00:0:0:0:0:0:1:2/);
});

test("a self-signed certificate belongs to its key and says what was asked", () => {
  const key = newKey();
  const notBefore = Date.UTC(2026, 0, 1);
  const notAfter = Date.UTC(2051, 5, 1, 12, 30, 15);
  const pem = certificate(key, {
    subject: { commonName: "web-1@1700000000" },
    dnsNames: ["web-1"],
    addresses: ["127.0.0.1"],
    notBefore,
    notAfter,
    usages: ["server"],
  });
  const parsed = new X509Certificate(pem);
  assert.ok(parsed.checkPrivateKey(createPrivateKey(key)));
  assert.ok(parsed.verify(parsed.publicKey));
  assert.equal(Date.parse(parsed.validFrom), notBefore);
  assert.equal(Date.parse(parsed.validTo), notAfter);
  assert.equal(parsed.checkHost("web-1"), "web-1");
  assert.equal(parsed.checkIP("127.0.0.1"), "127.0.0.1");
  assert.equal(parsed.ca, false);
  assert.deepEqual(parsed.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
});

test("openssl verifies a chain of our own authority, also strictly", needsOpenssl, (t) => {
  const now = Date.now();
  const span = { notBefore: now - 60_000, notAfter: now + 3_600_000 };
  const authorityKey = newKey();
  const subject = { commonName: "test-authority" };
  const authority = certificate(authorityKey, { subject, ...span, usages: [], isAuthority: true });
  const leaf = certificate(newKey(), { subject: node, ...span, usages: ["client"] }, { subject, keyPem: authorityKey });
  const dir = mkdtempSync(join(tmpdir(), "kts-chain-"));
  t.after(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, "authority"), authority);
  openssl(["verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", join(dir, "authority")], leaf);
  assert.ok(new X509Certificate(leaf).checkIssued(new X509Certificate(authority)));
});

for (const [address, bytes] of [
  ["10.0.0.7", "0a000007"],
  ["::", "00000000000000000000000000000000"],
  ["::1", "00000000000000000000000000000001"],
  ["fe80::1:2", "fe800000000000000000000000010002"],
  ["::ffff:10.0.0.7", "00000000000000000000ffff0a000007"],
  ["1:2:3:4:5:6:7:8", "00010002000300040005000600070008"],
] as const) {
  test(`the bytes of ${address}`, () => assert.equal(addressBytes(address).toString("hex"), bytes));
}

test("what is no address is refused", () => {
  assert.throws(
    () => certificateRequest(newKey(), { subject: node, addresses: ["10.0.0"] }),
    /"10\.0\.0" is not an IP/,
  );
});
