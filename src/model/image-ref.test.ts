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
];
for (const [text, want] of good) {
  test(`${text} is understood`, () => {
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
  "a".repeat(256),
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
