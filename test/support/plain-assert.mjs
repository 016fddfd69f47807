// Loaded with the reporters. `assert.ok` without a message parses the source of its caller to quote it, which takes
// minutes in what tsx makes: a whole file on one line. The stack has the place.
import assert from "node:assert/strict";

const { ok } = assert;
assert.ok = (value, message) => ok(value, message ?? `expected something true, got ${String(value)}`);
