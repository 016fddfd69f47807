import assert from "node:assert/strict";
import { test } from "node:test";
import { parseAuthFile } from "./auth-file.ts";

const SERVERS = ["https://api.example:6443"];
const parse = (value: unknown) => parseAuthFile(JSON.stringify(value), "/etc/node/auth", SERVERS);

test("certificates as files, relative to the file", () => {
  assert.deepEqual(parse({ CAFile: "ca.crt", CertFile: "/abs/me.crt", KeyFile: "me.key" }), {
    servers: SERVERS,
    isInsecure: false,
    namespace: "default",
    authority: { kind: "file", path: "/etc/node/ca.crt" },
    identity: { certificate: { kind: "file", path: "/abs/me.crt" }, key: { kind: "file", path: "/etc/node/me.key" } },
  });
});

test("a token; names in any case; without a check of the server an authority says nothing", () => {
  const want = { servers: SERVERS, isInsecure: true, namespace: "default", identity: { token: "abc" } };
  assert.deepEqual(parse({ bearerToken: "abc", insecure: true, CAFile: "ca.crt", User: "old", Password: "x" }), want);
});

const refused: readonly { name: string; value: unknown; why: RegExp }[] = [
  {
    name: "only a password",
    value: { User: "me", Password: "secret-word" },
    why: /auth: User is basic authentication/,
  },
  { name: "a certificate without its key", value: { CertFile: "a" }, why: /KeyFile is missing/ },
  { name: "a number for a token", value: { BearerToken: 7 }, why: /BearerToken is not a text/ },
  { name: "a word for a flag", value: { Insecure: "yes" }, why: /Insecure is neither/ },
  { name: "a list", value: [], why: /not a JSON object/ },
];
for (const { name, value, why } of refused) {
  test(`refused: ${name}`, () => {
    assert.throws(() => parse(value), why);
    assert.throws(
      () => parse(value),
      (error: Error) => !error.message.includes("secret-word"),
    );
  });
}

test("refused: no JSON", () => {
  assert.throws(() => parseAuthFile("{", "/etc/node/auth", SERVERS), /\/etc\/node\/auth: not valid JSON/);
});
