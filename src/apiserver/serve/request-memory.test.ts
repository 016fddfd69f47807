import assert from "node:assert/strict";
import { test } from "node:test";
import { bareRequest } from "../../adapters/net/http-route.ts";
import { manyListeners } from "../../lib/abort.ts";
import type { StatusError } from "../status/status-error.ts";
import { RequestMemory } from "./request-memory.ts";

const ADMIN = { name: "admin", groups: ["system:masters"] };
const POD = { name: "system:serviceaccount:default:web", groups: ["system:serviceaccounts"] };

function request(length?: string) {
  const leaving = manyListeners();
  const headers = length === undefined ? { "transfer-encoding": "chunked" } : { "content-length": length };
  return { leaving, request: bareRequest("POST", "/", { headers, signal: leaving.signal }) };
}

const isTooMany = (error: StatusError): boolean => error.code === 429;

test("bodies in flight are counted until their answer was sent", async () => {
  const memory = new RequestMemory({ bytes: 100, othersBytes: 10 });
  const first = request("60");
  await memory.counted(first.request, ADMIN).readBody(80);
  await assert.rejects(memory.counted(request("60").request, ADMIN).readBody(80), isTooMany);
  first.leaving.abort();
  await memory.counted(request("60").request, ADMIN).readBody(80);
});

test("a body without a length counts as the longest, one that lies about it not more than that", async () => {
  const memory = new RequestMemory({ bytes: 100, othersBytes: 10 });
  await memory.counted(request("999999999").request, ADMIN).readBody(80);
  await assert.rejects(memory.counted(request().request, ADMIN).readBody(80), isTooMany);
  await memory.counted(request("20").request, ADMIN).readBody(80);
});

test("answers are counted too, and those of pods do not keep administrators out", () => {
  const memory = new RequestMemory({ bytes: 100, othersBytes: 10 });
  assert.equal(memory.counted(request("0").request, POD).hold?.(8), true);
  assert.equal(memory.counted(request("0").request, POD).hold?.(8), false);
  assert.equal(memory.counted(request("0").request, ADMIN).hold?.(100), true);
  assert.equal(memory.counted(request("0").request, ADMIN).hold?.(1), false);
});

test("what a client asks for that has left already is free at once", () => {
  const memory = new RequestMemory({ bytes: 100, othersBytes: 10 });
  const { leaving, request: left } = request("0");
  leaving.abort();
  memory.counted(left, ADMIN).hold?.(100);
  assert.equal(memory.counted(request("0").request, ADMIN).hold?.(100), true);
});
