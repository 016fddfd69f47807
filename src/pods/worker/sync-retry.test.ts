import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NetworkNotReadyError } from "../execute/network.ts";
import { SyncRetry } from "./sync-retry.ts";

describe("the back-off of a failed sync", () => {
  test("doubles from 1 s to 30 s", () => {
    const retry = new SyncRetry();
    const waits = Array.from({ length: 7 }, () => retry.failed(new Error("no"), 0) / 1000);
    assert.deepEqual(waits, [1, 2, 4, 8, 16, 30, 30]);
  });

  test("stays at 1 s while the network is not ready, and does not lengthen other waits", () => {
    const retry = new SyncRetry();
    for (let i = 0; i < 10; i++) assert.equal(retry.failed(new NetworkNotReadyError("no"), 0), 1000);
    assert.equal(retry.failed(new Error("no"), 0), 1000);
  });

  test("begins again after a success, not after a sync that only waited for it", () => {
    const retry = new SyncRetry();
    for (let i = 0; i < 3; i++) retry.failed(new Error("no"), 0);
    retry.succeeded();
    assert.equal(retry.failed(new Error("no"), 0), 8000);
    retry.unblock();
    assert.ok(retry.waitMs(0) <= 0);
    retry.succeeded();
    assert.equal(retry.failed(new Error("no"), 0), 1000);
  });
});
