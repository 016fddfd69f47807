import assert from "node:assert/strict";
import { test } from "node:test";
import { InterceptingCall, type InterceptingListener } from "@grpc/grpc-js";
import { ReadOnDemandCall } from "./read-on-demand-call.ts";

class CountedCall extends InterceptingCall {
  reads = 0;

  override startRead(): void {
    this.reads++;
  }
}

test("messages that grpc-js would receive ahead are received on demand only, one for each demand", () => {
  const unused = {} as unknown as InterceptingListener & CountedCall; // reason: the call below is not forwarded
  const counted = new CountedCall(unused);
  const call = new ReadOnDemandCall(counted);
  call.startRead();
  assert.equal(counted.reads, 0);
  call.demand();
  assert.equal(counted.reads, 1);
  call.startRead();
  call.startRead();
  assert.equal(counted.reads, 1);
  call.demand();
  call.demand();
  assert.equal(counted.reads, 2);
  call.startRead();
  assert.equal(counted.reads, 3);
  call.startRead();
  assert.equal(counted.reads, 3);
});

test("nothing is received on a demand before grpc-js is ready to", () => {
  const unused = {} as unknown as InterceptingListener & CountedCall; // reason: the call below is not forwarded
  const counted = new CountedCall(unused);
  const call = new ReadOnDemandCall(counted);
  call.demand();
  assert.equal(counted.reads, 0);
  call.startRead();
  assert.equal(counted.reads, 1);
});
