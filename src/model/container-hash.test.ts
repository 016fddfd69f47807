import assert from "node:assert/strict";
import { test } from "node:test";
import { containerHash } from "./container-hash.ts";
import { fnv1a32 } from "./fnv.ts";

test("the check value of the specification", () => {
  assert.equal(containerHash({ name: "test_container", image: "foo/image:v1" }), "8e45cbd0");
});

test("only name and image count", () => {
  const hash = containerHash({ name: "web", image: "nginx" });
  const extended = { name: "web", image: "nginx", env: [{ name: "A", value: "1" }] };
  assert.equal(containerHash(extended), hash);
  assert.notEqual(containerHash({ name: "web", image: "nginx:1" }), hash);
  assert.notEqual(containerHash({ name: "web2", image: "nginx" }), hash);
});

test("characters that HTML would notice are escaped before hashing", () => {
  assert.notEqual(containerHash({ name: "a", image: "<" }), containerHash({ name: "a", image: "&" }));
});

test("published values of FNV-1a", () => {
  assert.equal(fnv1a32(new Uint8Array()), 0x811c9dc5);
  assert.equal(fnv1a32(new TextEncoder().encode("a")), 0xe40c292c);
  assert.equal(fnv1a32(new TextEncoder().encode("foobar")), 0xbf9cf968);
});
