import assert from "node:assert/strict";
import { test } from "node:test";
import { readTarget } from "./http-route.ts";

const accepted = [
  { target: "/pods", path: "/pods", query: "" },
  { target: "/pods?a=1&b=..", path: "/pods", query: "a=1&b=.." },
  { target: "/a%20b", path: "/a%20b", query: "" },
  { target: "/a..b/c...", path: "/a..b/c...", query: "" },
  { target: "http://host:1/pods?x=1", path: "/pods", query: "x=1" },
  { target: "http://host", path: "/", query: "" },
];
for (const c of accepted) {
  test(`${c.target} is taken`, () => {
    const read = readTarget(c.target);
    assert.ok("path" in read);
    assert.deepEqual({ path: read.path, query: read.query.toString() }, { path: c.path, query: c.query });
  });
}

const refused = [
  "/a/../b",
  "/..",
  "/%2e%2e/b",
  "/.%2E/",
  "/a%2fb",
  "/a%2Fb",
  "/a%5cb",
  "/a\\b",
  "/a%00b",
  "/%zz",
  "/%ff",
  "*",
  "x",
  "ftp://a/b",
];
for (const target of refused) test(`${target} is refused`, () => assert.ok("refused" in readTarget(target)));
