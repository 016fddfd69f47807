import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientConnections } from "./client-connections.ts";

function site(limits: { connections?: number; unsentBytes?: number }) {
  const closed: string[] = [];
  const connections = new ClientConnections({ connections: 3, unsentBytes: 100, ...limits });
  const add = (name: string) => connections.add(() => void closed.push(name));
  return { closed, connections, add };
}

test("a connection beyond the limit closes the one that was used longest ago", () => {
  const { closed, add } = site({ connections: 3 });
  const first = add("first");
  add("second");
  add("third");
  first.begin().end();
  add("fourth");
  assert.deepEqual(closed, ["second"]);
  add("fifth");
  assert.deepEqual(closed, ["second", "third"]);
});

test("a connection with an open call is closed only if all have one", () => {
  const { closed, add } = site({ connections: 2 });
  const first = add("first");
  const call = first.begin();
  add("second");
  const third = add("third");
  assert.deepEqual(closed, ["second"]);
  third.begin();
  add("fourth");
  assert.deepEqual(closed, ["second", "first"]);
  call.end();
});

test("a connection that its client closed makes room", () => {
  const { closed, add } = site({ connections: 1 });
  add("first").close();
  add("second");
  assert.deepEqual(closed, []);
});

test("unread answers beyond the limit close the connection with the oldest, and with it all that it has not read", () => {
  const { closed, add } = site({ unsentBytes: 100 });
  const [slow, quick] = [add("slow"), add("quick")];
  for (let at = 0; at < 2; at++) slow.begin().answered(45);
  for (let at = 0; at < 10; at++) {
    const call = quick.begin();
    call.answered(10);
    call.end();
  }
  assert.deepEqual(closed, []);
  quick.begin().answered(80);
  assert.deepEqual(closed, ["slow"]);
  quick.begin().answered(20);
  assert.deepEqual(closed, ["slow"]);
});

test("an answer that alone exceeds the limit is sent", () => {
  const { closed, add } = site({ unsentBytes: 100 });
  add("slow").begin().answered(50);
  add("large").begin().answered(1000);
  assert.deepEqual(closed, ["slow"]);
});

test("what a closed connection held counts once", () => {
  const { closed, add } = site({ unsentBytes: 100 });
  const gone = add("gone");
  const call = gone.begin();
  call.answered(90);
  gone.close();
  call.end();
  call.answered(90);
  for (const name of ["a", "b"]) add(name).begin().answered(50);
  assert.deepEqual(closed, []);
});
