import assert from "node:assert/strict";
import { test } from "node:test";
import { agentOptions, OptionStore, parseAgentOptions } from "../config/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { agentGuard } from "./agent-guard.ts";
import type { ServerDeps } from "./compose.ts";

/** The warnings of a main port that is configured by this command line. */
function warnings(argv: readonly string[]): string[] {
  const logged: string[] = [];
  const { values, problems } = parseAgentOptions(argv);
  assert.deepEqual(problems, []);
  agentGuard({
    clock: new FakeClock(),
    log: { ...silent, warn: (message: string) => void logged.push(message) },
    store: new OptionStore(agentOptions, values),
    nodeName: "node",
  } as unknown as ServerDeps); // reason: the guard reads nothing else
  return logged;
}

const cases = [
  { argv: ["--pod-manifest-path=/m"], isWarned: false },
  { argv: ["--pod-manifest-path=/m", "--anonymous-auth=true"], isWarned: false },
  { argv: ["--pod-manifest-path=/m", "--anonymous-auth=true", "--address=0.0.0.0"], isWarned: true },
  { argv: ["--pod-manifest-path=/m", "--anonymous-auth=true", "--address=127.0.0.1"], isWarned: false },
  { argv: ["--pod-manifest-path=/m", "--anonymous-auth=true", "--address=::1"], isWarned: false },
  { argv: ["--kubeconfig=/k"], isWarned: true },
  { argv: ["--kubeconfig=/k", "--anonymous-auth=false"], isWarned: false },
  { argv: ["--kubeconfig=/k", "--authorization-mode=Webhook"], isWarned: false },
];
for (const { argv, isWarned } of cases) {
  test(`${argv.join(" ")}: ${isWarned ? "warns" : "does not warn"} that everybody is allowed everything`, () => {
    assert.equal(warnings(argv).length, isWarned ? 1 : 0);
  });
}

test("reviews use their own client, so that they never wait for the calls of pods", async () => {
  const { values } = parseAgentOptions(["--kubeconfig=/k", "--anonymous-auth=false", "--authorization-mode=Webhook"]);
  const refuse = { create: () => assert.fail("not for reviews") };
  const status = { authenticated: true, user: { username: "jane" }, allowed: true };
  const clients = { calls: refuse, events: refuse, heartbeat: refuse, reviews: { create: async () => ({ status }) } };
  const guard = agentGuard({
    clock: new FakeClock(),
    log: silent,
    store: new OptionStore(agentOptions, { ...values, webhookAuthentication: true }),
    connection: { clients },
    nodeName: "node",
  } as unknown as ServerDeps); // reason: the guard reads nothing else
  const answer = await guard({
    method: "GET",
    path: "/pods",
    params: {},
    query: new URLSearchParams(),
    headers: { authorization: "Bearer token" },
    readBody: () => assert.fail("no body"),
    signal: new AbortController().signal,
  });
  assert.equal(answer, undefined);
});
