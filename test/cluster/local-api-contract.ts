/** The local API and the real one, asked the same: what differs is listed here with its reason, and nothing else does. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { KubeApi } from "../../src/adapters/kubeapi/index.ts";
import { ApiError } from "../../src/adapters/kubeapi/index.ts";
import type { ApiServer } from "../../src/apiserver/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { normalized } from "../contract/apiserver-normal.ts";
import type { Step } from "../contract/apiserver-step.ts";
import { STEPS } from "../contract/apiserver-steps.ts";
import { skipWithoutControlPlane, TestControlPlane } from "../support/control-plane.ts";
import { testApiServer } from "../support/local-api.ts";

skipWithoutControlPlane();

const options = { signal: manyListeners().signal };

/** Steps whose answers may differ, with the reason. */
const DIFFERENT: Readonly<Record<string, string>> = {
  "create node": "a node that is not ready is known by its condition, not by a taint",
  "label node": "the same",
  "table daemonSet": "the original leaves the annotation of an old field out of tables only",
  "label revision": "the original compares the bytes of the data, and a patch writes them in another order",
  "broken continue token": "the words of Go's decoder",
  "patch: an element that is no object": "Go prints the list",
  "patch: a null element": "Go prints the list",
  "patch: a list that is an object": "the original's decoder is asked before the patch is applied",
  "patch: a directive of another type": "Go prints the type of the number",
  "patch: no object": "the words of Go's decoder",
  "patch: json: a wrong type": "the message has the whole object with its versions and times",
  "patch: merge: a wrong type": "the same",
  "patch: merge: an unknown field when it is strict": "the same",
  "apply: conflicts of several fields": "the original names the owners in no order",
  "apply: a duplicate key": "refused with other words, and 400 instead of 500",
  "apply: a list element without its key": "the words of the agent's own check of containers",
  "apply: a wrong type": "refused with other words, and 400 instead of 500",
  "who am I": "reviews are not stored, so nobody owns their fields",
};

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

async function ask(api: KubeApi, step: Step, earlier: ReadonlyMap<string, Answer>): Promise<Answer> {
  const { method, path, contentType, accept, from } = step;
  const source = from && (earlier.get(from.step)?.body as never);
  const body = from === undefined ? step.body : from.change(source as never);
  const request = {
    method,
    path,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(contentType !== undefined && { contentType }),
    ...(accept !== undefined && { accept }),
  };
  try {
    const answer = await api.raw(request, options);
    return { status: answer.status, body: parsed(answer.body.toString("utf8")) };
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return { status: error.httpStatus, body: error.status ?? error.message };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

describe("the local API answers as the real one", () => {
  let plane: TestControlPlane;
  let local: ApiServer;
  let real: KubeApi;
  let own: KubeApi;
  const answers = { real: new Map<string, Answer>(), own: new Map<string, Answer>() };

  before(async () => {
    plane = await TestControlPlane.start({ accounts: true });
    real = plane.clients().calls;
    local = await testApiServer(new SystemClock());
    own = local.api("kubelet-ts-test");
    for (const api of [real, own]) {
      const body = JSON.stringify({ metadata: { name: "suite" } });
      await api.raw({ method: "POST", path: "/api/v1/namespaces", body }, options);
    }
    // A controller makes these in a cluster.
    const account = JSON.stringify({ metadata: { name: "default" } });
    await real.raw({ method: "POST", path: "/api/v1/namespaces/suite/serviceaccounts", body: account }, options);
  });
  after(async () => {
    await local.close();
    await plane.stop();
  });

  for (const step of STEPS) {
    test(step.name, async () => {
      const [expected, found] = [await ask(real, step, answers.real), await ask(own, step, answers.own)];
      answers.real.set(step.name, expected);
      answers.own.set(step.name, found);
      if (DIFFERENT[step.name] !== undefined) return;
      assert.deepEqual(normalized(found), normalized(expected));
    });
  }
});
