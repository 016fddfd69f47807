import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultPullPolicy, type ImageRef, ImageRefError, parseImageRef, withDefaultTag } from "./image-ref.ts";

const digest = `sha256:${"0a".repeat(32)}`;
const good: [string, Partial<ImageRef>][] = [
  ["nginx", { repository: "nginx" }],
  ["nginx:1.25", { repository: "nginx", tag: "1.25" }],
  ["library/nginx", { repository: "library/nginx" }],
  ["example.org/a/b:v1", { registry: "example.org", repository: "a/b", tag: "v1" }],
  ["localhost/a", { registry: "localhost", repository: "a" }],
  ["localhost:5000/a", { registry: "localhost:5000", repository: "a" }],
  ["host:5000/a:b", { registry: "host:5000", repository: "a", tag: "b" }],
  ["[::1]:5000/a", { registry: "[::1]:5000", repository: "a" }],
  [`a@${digest}`, { repository: "a", digest }],
  [`a:v1@${digest}`, { repository: "a", tag: "v1", digest }],
  ["a__b/c-d.e_f", { repository: "a__b/c-d.e_f" }],
  ["[2001:db8::1]/a:b", { registry: "[2001:db8::1]", repository: "a", tag: "b" }],
  ["[fe80::AB]:80/a", { registry: "[fe80::AB]:80", repository: "a" }],
  ["127.0.0.1:5000/a/b/c", { registry: "127.0.0.1:5000", repository: "a/b/c" }],
  // A first part with a capital letter is a registry: repositories have none.
  ["Host/a", { registry: "Host", repository: "a" }],
  ["EXAMPLE.org:443/a:B", { registry: "EXAMPLE.org:443", repository: "a", tag: "B" }],
  ["my_host.org/a", { registry: "my_host.org", repository: "a" }],
  ["localhost", { repository: "localhost" }],
  ["localhost:5000", { repository: "localhost", tag: "5000" }],
  ["example.org", { repository: "example.org" }],
  ["a---b/c", { repository: "a---b/c" }],
  ["a:_x", { repository: "a", tag: "_x" }],
  [`${"f".repeat(64)}:1`, { repository: "f".repeat(64), tag: "1" }],
  [`r.example.org/${"f".repeat(64)}`, { registry: "r.example.org", repository: "f".repeat(64) }],
  [`a@sha384:${"0".repeat(96)}`, { repository: "a", digest: `sha384:${"0".repeat(96)}` }],
  [`a@sha512:${"0".repeat(128)}`, { repository: "a", digest: `sha512:${"0".repeat(128)}` }],
  // Only the repository is limited, and `library/` belongs to it.
  ["a".repeat(247), { repository: "a".repeat(247) }],
  [`long.example.org/${"a".repeat(255)}`, { registry: "long.example.org", repository: "a".repeat(255) }],
];
for (const [text, want] of good) {
  test(`${text.slice(0, 60)} is understood`, () => {
    assert.deepEqual(parseImageRef(text), { registry: "", repository: "", tag: "", digest: "", ...want });
  });
}

const bad = [
  "",
  " nginx",
  "nginx ",
  "Nginx",
  "a//b",
  "/a",
  "a/",
  ":tag",
  "a:",
  "a:-x",
  "a@sha256:12",
  "a@",
  "a b",
  "http://a/b",
  "-a",
  "a..b",
  "f".repeat(64),
  "a".repeat(248),
  `r.example.org/${"a".repeat(256)}`,
  // Digests are of a known algorithm, of its length, and in lower case.
  `a@sha256:${"0".repeat(63)}`,
  `a@sha256:${"A".repeat(64)}`,
  `a@SHA256:${"0".repeat(64)}`,
  `a@sha1:${"0".repeat(40)}`,
  `a@${digest}@${digest}`,
  `a@${digest}:1`,
  "::1/a",
  "[::1/a",
  "[::1]a/b",
  "host:port/a",
  "host:/a",
  ".org/a",
  "example.org/",
  "example.org/a/",
  "example.org//a",
  "localhost/A",
  "a___b",
  "a_-b",
  "a-",
  "_a",
  "ä/b",
  "a:b:c",
  "a\n",
  `a:${"t".repeat(129)}`,
];
for (const text of bad) {
  test(`${JSON.stringify(text.slice(0, 40))} is refused`, () =>
    assert.throws(() => parseImageRef(text), ImageRefError));
}

test("upper case is named as the reason", () => {
  assert.throws(() => parseImageRef("example.org/Foo"), /repository name must be lowercase/);
});

const defaults = [
  ["nginx", "nginx:latest", "Always"],
  ["nginx:latest", "nginx:latest", "Always"],
  ["nginx:1", "nginx:1", "IfNotPresent"],
  [`nginx@${digest}`, `nginx@${digest}`, "IfNotPresent"],
  [`nginx:latest@${digest}`, `nginx:latest@${digest}`, "Always"],
  ["localhost:5000/a", "localhost:5000/a:latest", "Always"],
] as const;
for (const [image, tagged, policy] of defaults) {
  test(`${image} is pulled ${policy} as ${tagged}`, () => {
    assert.equal(withDefaultTag(image), tagged);
    assert.equal(defaultPullPolicy(image), policy);
  });
}

test("an invalid name has a pull policy all the same", () =>
  assert.equal(defaultPullPolicy("Not Valid"), "IfNotPresent"));
