import assert from "node:assert/strict";
import { test } from "node:test";
import { nameWithoutTag, requiresVerification, type VerificationPolicy } from "./policy.ts";

const image = "registry.example.com:5000/team/app:1";
const cases: readonly (VerificationPolicy & { pulled: boolean; preloaded: boolean; of?: string })[] = [
  { policy: "NeverVerify", allowlist: [], pulled: false, preloaded: false },
  { policy: "NeverVerifyPreloadedImages", allowlist: [], pulled: true, preloaded: false },
  { policy: "AlwaysVerify", allowlist: [], pulled: true, preloaded: true },
  { policy: "NeverVerifyAllowlistedImages", allowlist: [], pulled: true, preloaded: true },
  {
    policy: "NeverVerifyAllowlistedImages",
    allowlist: ["registry.example.com:5000/team/app"],
    pulled: false,
    preloaded: false,
  },
  {
    policy: "NeverVerifyAllowlistedImages",
    allowlist: ["registry.example.com:5000/team/*"],
    pulled: false,
    preloaded: false,
  },
  {
    policy: "NeverVerifyAllowlistedImages",
    allowlist: ["registry.example.com:5000/team"],
    pulled: true,
    preloaded: true,
  },
  {
    policy: "NeverVerifyAllowlistedImages",
    allowlist: ["registry.example.com:5000/team/ap/*"],
    pulled: true,
    preloaded: true,
  },
  {
    policy: "NeverVerifyAllowlistedImages",
    allowlist: ["registry.example.com:5000/te*"],
    pulled: true,
    preloaded: true,
  },
];

for (const { policy, allowlist, pulled, preloaded } of cases) {
  test(`${policy} [${allowlist}]: pulled ${pulled}, preloaded ${preloaded}`, () => {
    const of = (isPulledByAgent: boolean): boolean =>
      requiresVerification({ policy, allowlist }, { image, isPulledByAgent });
    assert.deepEqual([of(true), of(false)], [pulled, preloaded]);
  });
}

const digest = `sha256:${"a".repeat(64)}`;
const names = [
  { of: "busybox", want: "busybox" },
  { of: "busybox:1", want: "busybox" },
  { of: "localhost:5000/a", want: "localhost:5000/a" },
  { of: `localhost:5000/a:1@${digest}`, want: "localhost:5000/a" },
  { of: `a/b@${digest}`, want: "a/b" },
];
for (const { of, want } of names) test(`name of ${of}`, () => assert.equal(nameWithoutTag(of), want));
