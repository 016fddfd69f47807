import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openLocalPki } from "./local-pki.ts";

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 11, 1);

function inDirectory(run: (directory: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const directory = mkdtempSync(join(tmpdir(), "kts-pki-"));
    await run(join(directory, "pki")).finally(() => rmSync(directory, { recursive: true }));
  };
}

const options = (directory: string, more: { now?: number; addresses?: readonly string[] } = {}) => ({
  directory,
  dnsNames: ["localhost", "kubernetes.default.svc"],
  addresses: ["127.0.0.1"],
  now: NOW,
  ...more,
});

test(
  "certificates are made once, signed by the authority, for the names that are asked for",
  inDirectory(async (directory) => {
    const pki = await openLocalPki(options(directory));
    const authority = new X509Certificate(pki.authority);
    const serving = new X509Certificate(pki.serving.certificate);
    assert.ok(serving.verify(authority.publicKey));
    assert.equal(serving.checkHost("kubernetes.default.svc"), "kubernetes.default.svc");
    assert.equal(serving.checkIP("127.0.0.1"), "127.0.0.1");
    assert.match(new X509Certificate(pki.administrator.certificate).subject, /O=system:masters/);
    for (const name of readdirSync(directory)) assert.equal(statSync(join(directory, name)).mode & 0o777, 0o600, name);
    assert.deepEqual(await openLocalPki(options(directory)), pki);
  }),
);

test(
  "what ends soon is renewed, and the authority and the signing key stay",
  inDirectory(async (directory) => {
    const first = await openLocalPki(options(directory));
    const later = await openLocalPki(options(directory, { now: NOW + 300 * DAY }));
    assert.equal(later.authority, first.authority);
    assert.equal(later.signingKey, first.signingKey);
    assert.notEqual(later.serving.certificate, first.serving.certificate);
    assert.notEqual(later.administrator.certificate, first.administrator.certificate);
  }),
);

test(
  "a new address makes a new serving certificate and leaves the administrator's alone",
  inDirectory(async (directory) => {
    const first = await openLocalPki(options(directory));
    const moved = await openLocalPki(options(directory, { addresses: ["127.0.0.1", "10.43.0.1"] }));
    assert.notEqual(moved.serving.certificate, first.serving.certificate);
    assert.equal(moved.administrator.certificate, first.administrator.certificate);
  }),
);

for (const { name, made, opened } of [
  { name: "is set back", made: NOW, opened: Date.UTC(1970, 0, 2) },
  { name: "began in 1970 and is right by now", made: Date.UTC(1970, 0, 2), opened: NOW },
]) {
  test(
    `a clock that ${name} replaces nothing`,
    inDirectory(async (directory) => {
      const first = await openLocalPki(options(directory, { now: made }));
      assert.deepEqual(await openLocalPki(options(directory, { now: opened })), first);
      const { validFrom, validTo } = new X509Certificate(first.administrator.certificate);
      for (const now of [made, opened]) assert.ok(Date.parse(validFrom) <= now && now < Date.parse(validTo));
    }),
  );
}
