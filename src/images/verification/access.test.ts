import assert from "node:assert/strict";
import { test } from "node:test";
import type { PullCredential } from "../../model/pull-credential.ts";
import { NO_ACCESS, provenAccess } from "./access.ts";

const secret = (name: string, hash: string): PullCredential => ({
  auth: { username: "u" },
  owner: { kind: "Secret", uid: `uid-${name}`, namespace: "ns", name },
  hash,
});

/** A record of so many secrets: `s0` with the hash `h0`, and so on. */
function recorded(count: number) {
  const secrets = Array.from({ length: count }, (_, index) => ({
    uid: `uid-s${index}`,
    namespace: "ns",
    name: `s${index}`,
    credentialHash: `h${index}`,
  }));
  return { ...NO_ACCESS, secrets };
}

test("a secret that has changed is known by its name up to a hundred secrets, as in Kubernetes", () => {
  const changed = [secret("s7", "other")];
  assert.equal(provenAccess(recorded(99), changed)?.add?.secrets.length, 1);
  assert.equal(provenAccess(recorded(100), changed), undefined);
});

test("a credential is known by its hash, and is added under another secret up to a hundred secrets", () => {
  const same = [secret("elsewhere", "h7")];
  assert.equal(provenAccess(recorded(99), same)?.add?.secrets[0]?.name, "elsewhere");
  assert.deepEqual(provenAccess(recorded(100), same), {});
});
