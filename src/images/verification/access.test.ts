import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PullCredential } from "../../model/pull-credential.ts";
import { accessBy, addAccess, NO_ACCESS, provenAccess } from "./access.ts";
import type { PulledRecord, RecordedAccess } from "./record-format.ts";

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

test("a secret of the same name and UID in another namespace is another secret", () => {
  const [known] = accessBy(secret("s", "h")).secrets;
  assert.ok(known);
  const elsewhere = { ...NO_ACCESS, secrets: [{ ...known, namespace: "other", credentialHash: "old" }] };
  assert.equal(provenAccess(elsewhere, [secret("s", "h")]), undefined);
});

describe("adding access to a record", () => {
  const record = (access: RecordedAccess): PulledRecord => ({
    imageRef: "ref",
    updatedAt: 0,
    access: new Map([["app", access]]),
  });
  const account = (namespace: string, name: string): RecordedAccess => ({
    ...NO_ACCESS,
    accounts: [{ uid: `uid-${name}`, namespace, name }],
  });

  const unchanged: readonly { name: string; known: RecordedAccess; added: RecordedAccess }[] = [
    { name: "a known secret", known: recorded(2), added: { ...NO_ACCESS, secrets: recorded(1).secrets } },
    { name: "a known service account", known: account("ns", "a"), added: account("ns", "a") },
    { name: "anything to an open record", known: { ...NO_ACCESS, isOpen: true }, added: recorded(1) },
    { name: "nothing", known: recorded(1), added: NO_ACCESS },
  ];
  for (const { name, known, added } of unchanged) {
    test(`${name} leaves the record, which then is not written`, () => {
      const before = record(known);
      assert.equal(addAccess(before, "app", added), before);
    });
  }

  test("nothing under a new name leaves the record", () => {
    const before = record(recorded(1));
    assert.equal(addAccess(before, "other", NO_ACCESS), before);
  });

  test("entries are ordered by namespace, name and UID, as in Kubernetes", () => {
    const added = [account("b", "a"), account("a", "b"), account("a", "a")];
    const after = added.reduce((known, one) => addAccess(known, "app", one), record(NO_ACCESS));
    assert.deepEqual(
      after.access.get("app")?.accounts.map(({ namespace, name }) => `${namespace}/${name}`),
      ["a/a", "a/b", "b/a"],
    );
  });

  test("a secret with another credential replaces its old entry", () => {
    const after = addAccess(record(recorded(2)), "app", accessBy(secret("s0", "new")));
    assert.deepEqual(
      after.access.get("app")?.secrets.map(({ name, credentialHash }) => `${name} ${credentialHash}`),
      ["s0 new", "s1 h1"],
    );
  });

  test("an anonymous pull opens the record", () => {
    const after = addAccess(record(recorded(2)), "app", accessBy(undefined));
    assert.deepEqual(after.access.get("app"), { ...NO_ACCESS, isOpen: true });
  });
});

test("a credential is known by its hash, and is added under another secret up to a hundred secrets", () => {
  const same = [secret("elsewhere", "h7")];
  assert.equal(provenAccess(recorded(99), same)?.add?.secrets[0]?.name, "elsewhere");
  assert.deepEqual(provenAccess(recorded(100), same), {});
});
