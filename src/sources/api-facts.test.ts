import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod, Service } from "../model/generated/types.ts";
import { ApiFacts } from "./api-facts.ts";

const { signal } = new AbortController();
const web: Pod = pod("web").container("app").build();
const fromFile: Pod = {
  ...web,
  metadata: { ...web.metadata, annotations: { "kubernetes.io/config.source": "file" } },
};
const kubernetes: Service = {
  metadata: { name: "kubernetes", namespace: "default" },
  spec: { clusterIP: "10.96.0.1", ports: [{ port: 443 }] },
};

function facts(): ApiFacts {
  const unreachable = { list: () => Promise.reject(new Error("connection refused")) };
  return new ApiFacts({ api: unreachable as never, clock: new FakeClock(), log: silent });
}

test("a static pod gets the variables of the services that are known", async () => {
  const it = facts();
  it.restore([kubernetes], []);
  assert.equal((await it.serviceVariables(fromFile, { signal })).get("KUBERNETES_SERVICE_HOST"), "10.96.0.1");
});

test("a static pod does not wait for the first list of services", async () => {
  assert.deepEqual([...(await facts().serviceVariables(fromFile, { signal }))], []);
});

test("the handler of a pod's class is told as far as it is known", () => {
  const it = facts();
  it.restore([], [{ metadata: { name: "sandboxed" }, handler: "runsc" }]);
  const of = (runtimeClassName: string): Pod => ({ ...web, spec: { ...web.spec, runtimeClassName } });
  assert.deepEqual(
    ["", "sandboxed", "other"].map((name) => it.knownHandlerOf(of(name))),
    ["", "runsc", undefined],
  );
});
