import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { Sessions } from "./sessions.ts";

const MINUTE = 60_000;

function opened(sessions: Sessions) {
  const secrets = sessions.redeem(sessions.issueLogin());
  assert.ok(secrets);
  return secrets;
}

test("a login link opens one session, once", () => {
  const sessions = new Sessions(new FakeClock());
  const token = sessions.issueLogin();
  const secrets = sessions.redeem(token);
  assert.ok(secrets && sessions.isOpen(secrets));
  assert.equal(sessions.redeem(token), undefined);
  assert.equal(sessions.redeem("guess"), undefined);
});

test("a login link expires after five minutes", async () => {
  const clock = new FakeClock();
  const sessions = new Sessions(clock);
  const token = sessions.issueLogin();
  await clock.advance(5 * MINUTE);
  assert.equal(sessions.redeem(token), undefined);
});

test("a session needs the cookie and the key of one and the same session", () => {
  const sessions = new Sessions(new FakeClock());
  const [one, other] = [opened(sessions), opened(sessions)];
  assert.equal(sessions.isOpen({ cookie: one.cookie, key: other.key }), false);
  assert.equal(sessions.isOpen({ cookie: one.cookie, key: one.cookie }), false);
  assert.equal(sessions.isOpen({ cookie: "", key: "" }), false);
});

test("a session ends when it is closed, and after twelve hours without a request", async () => {
  const clock = new FakeClock();
  const sessions = new Sessions(clock);
  const [one, other] = [opened(sessions), opened(sessions)];
  sessions.close(one.cookie);
  assert.equal(sessions.isOpen(one), false);
  await clock.advance(11 * 60 * MINUTE);
  assert.equal(sessions.use(other), true);
  await clock.advance(11 * 60 * MINUTE);
  assert.equal(sessions.isOpen(other), true, "a request prolongs it, a look does not");
  await clock.advance(MINUTE);
  await clock.advance(59 * MINUTE);
  assert.equal(sessions.isOpen(other), false);
  assert.equal(sessions.use(other), false);
});

test("the number of links and sessions is bounded: the oldest go", () => {
  const sessions = new Sessions(new FakeClock());
  const first = sessions.issueLogin();
  for (let count = 0; count < 16; count++) sessions.issueLogin();
  assert.equal(sessions.redeem(first), undefined);
  const oldest = opened(sessions);
  for (let count = 0; count < 64; count++) opened(sessions);
  assert.equal(sessions.isOpen(oldest), false);
});

test("the end of a session is told, by its user or because it had to make room", () => {
  const sessions = new Sessions(new FakeClock());
  const watching = new AbortController();
  let ends = 0;
  sessions.onEnd(() => ends++, watching);
  const one = opened(sessions);
  sessions.close(one.cookie);
  sessions.close(one.cookie);
  assert.equal(ends, 1);
  for (let count = 0; count < 65; count++) opened(sessions);
  assert.equal(ends, 2);
  watching.abort();
  sessions.close(opened(sessions).cookie);
  assert.equal(ends, 2);
});
