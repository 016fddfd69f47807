import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { manyListeners } from "../lib/abort.ts";
import type { Logger } from "../lib/log.ts";
import type { Secret } from "../model/generated/types.ts";
import { pullSecrets } from "./pull-secrets.ts";

const secret = (text: string): Secret => ({
  metadata: {},
  type: "kubernetes.io/dockerconfigjson",
  data: { ".dockerconfigjson": Buffer.from(text).toString("base64") },
});
const stored: Readonly<Record<string, Secret>> = {
  good: secret('{"auths": {"r.example.com": {"username": "ada", "password": "p"}}}'),
  malformed: secret('{"auths": {"r.example.com": {"username": "ada", "password": "hunter2"'),
  other: { ...secret("{"), type: "Opaque" },
  empty: secret(""),
};

/** Users of the credentials that a pod with these secrets has, and what it is told. */
async function site(...names: readonly string[]): Promise<{ users: unknown[]; events: string[]; logged: string }> {
  const events: string[] = [];
  const lines: unknown[] = [];
  const log = { warn: (...line: unknown[]) => void lines.push(line) };
  const get = async ({ name }: { name: string }): Promise<Secret> => {
    const found = Object.hasOwn(stored, name) ? stored[name] : undefined;
    if (found === undefined) throw new Error("not found");
    return found;
  };
  const built = pod().container("app", { image: "r.example.com/a:1" }).build();
  const of = { ...built, spec: { ...built.spec, imagePullSecrets: names.map((name) => ({ name })) } };
  const [container = { name: "" }] = of.spec.containers;
  const journal = {
    begin: () => assert.fail("nothing is pulled here"),
    event: (_type: string, reason: string, what: unknown) => void events.push(`${reason} ${String(what)}`),
  };
  // The fakes do what is asked of them here.
  const source = pullSecrets({ objects: { get } as never, log: log as unknown as Logger });
  const request = { pod: of, container, journal, slot: { release: () => undefined } };
  const found = await source(request, manyListeners());
  return { users: found.map(({ auth }) => auth.username), events, logged: JSON.stringify(lines) };
}

test("a secret that does not exist is told, and the others are used", async () => {
  const { users, events } = await site("gone", "good", "");
  assert.deepEqual(users, ["ada"]);
  assert.deepEqual(events, [
    "FailedToRetrieveImagePullSecret Unable to retrieve some image pull secrets (gone); attempting to pull the image may not succeed.",
  ]);
});

test("a malformed secret is told without its content, and the others are used", async () => {
  const { users, events, logged } = await site("malformed", "good", "other", "empty");
  assert.deepEqual(users, ["ada"]);
  assert.deepEqual(events, [
    "FailedToRetrieveImagePullSecret Unable to parse some image pull secrets (malformed); attempting to pull the image may not succeed.",
  ]);
  assert.match(logged, /malformed/);
  assert.doesNotMatch(logged, /hunter2/);
});
