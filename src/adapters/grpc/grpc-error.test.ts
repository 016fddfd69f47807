import assert from "node:assert/strict";
import { test } from "node:test";
import { RuntimeError, type RuntimeErrorCode } from "../runtime/port.ts";
import { socketPath } from "./endpoint.ts";
import { grpcStatus, toRuntimeError } from "./grpc-error.ts";

const live = new AbortController().signal;
const grpc = (code: number, details: string): Error =>
  Object.assign(new Error(`${code}: ${details}`), { code, details });

const cases: { name: string; error: Error; want: RuntimeErrorCode; overdue?: boolean }[] = [
  { name: "a cancellation by somebody else", error: grpc(1, "cancelled"), want: "Unavailable" },
  { name: "a cancellation after the deadline", error: grpc(1, "Call cancelled"), want: "Timeout", overdue: true },
  { name: "an unknown failure", error: grpc(2, "failed to create task"), want: "Unknown" },
  { name: "a bad argument", error: grpc(3, "bad"), want: "InvalidArgument" },
  { name: "a deadline", error: grpc(4, "Deadline exceeded"), want: "Timeout" },
  { name: "not found", error: grpc(5, "not found"), want: "NotFound" },
  { name: "already there", error: grpc(6, "exists"), want: "AlreadyExists" },
  { name: "refused", error: grpc(7, "no"), want: "PermissionDenied" },
  { name: "too much", error: grpc(8, "too large"), want: "ResourceExhausted" },
  { name: "not in this state", error: grpc(9, "not running"), want: "FailedPrecondition" },
  { name: "a taken name, containerd 1.6", error: grpc(2, 'x: name "a_0" is reserved for "b"'), want: "AlreadyExists" },
  { name: "a taken name, containerd 2.4", error: grpc(9, 'x: name "a_0" is reserved for "b"'), want: "AlreadyExists" },
  { name: "a missing method", error: grpc(12, "unknown method"), want: "Unimplemented" },
  { name: "a reset stream", error: grpc(13, "Received RST_STREAM with code 2"), want: "Unavailable" },
  { name: "an internal failure", error: grpc(13, "assertion"), want: "Unknown" },
  { name: "no connection", error: grpc(14, "No connection established"), want: "Unavailable" },
  { name: "an error of another kind", error: new TypeError("oops"), want: "Unknown" },
];
for (const { name, error, want, overdue = false } of cases) {
  test(`${name} becomes ${want}`, () => {
    const mapped = toRuntimeError(error, live, overdue);
    assert.ok(mapped instanceof RuntimeError);
    assert.equal(mapped.code, want);
    assert.equal(mapped.cause, error);
  });
}

test("the runtime's words come without gRPC's prefixes", () => {
  const mapped = toRuntimeError(grpc(2, "pull: rpc error: code = Unknown desc = no such host"), live);
  assert.equal((mapped as RuntimeError).message, "pull: no such host");
});

test("a cancellation by our own abort is the signal's reason", () => {
  const reason = new Error("stop");
  assert.equal(toRuntimeError(grpc(1, "Cancelled on client"), AbortSignal.abort(reason)), reason);
});

test("an endpoint is a unix socket by URL or by path", () => {
  assert.equal(socketPath("unix:///run/a.sock"), "/run/a.sock");
  assert.equal(socketPath("unix:/run/a.sock"), "/run/a.sock");
  assert.equal(socketPath("/run/a.sock"), "/run/a.sock");
  for (const bad of ["", "tcp://1.2.3.4:5", "run/a.sock", `/${"x".repeat(120)}`]) assert.throws(() => socketPath(bad));
});

test("a message of megabytes is clipped and its cause let go", () => {
  const details = `rpc error: code = Unknown desc = ${"x".repeat(5_000_000)}`;
  const foreign = Object.assign(new Error(details), { code: 2, details });
  const error = toRuntimeError(foreign, new AbortController().signal);
  assert.ok(error instanceof RuntimeError);
  assert.ok(Buffer.byteLength(error.message) <= 4096, `${error.message.length} characters`);
  assert.equal(error.cause, undefined);
});

const statuses: { name: string; error: Error; want: number | undefined; overdue?: boolean }[] = [
  { name: "the server's code", error: grpc(10, "pending"), want: 10 },
  { name: "a killed server", error: grpc(13, "Received RST_STREAM with code 2"), want: 14 },
  { name: "a cancellation by somebody else", error: grpc(1, "cancelled"), want: 14 },
  { name: "a cancellation after the deadline", error: grpc(1, "Call cancelled"), want: 4, overdue: true },
  { name: "words about a connection in another failure", error: grpc(5, "no volume: ECONNRESET"), want: 5 },
  { name: "no status", error: new TypeError("oops"), want: undefined },
];
for (const { name, error, want, overdue = false } of statuses) {
  test(`the status of ${name} is ${want ?? "unknown"}`, () => {
    assert.equal(grpcStatus(error, overdue)?.code, want);
  });
}
