import assert from "node:assert/strict";
import { test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { type FakeApiOptions, FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { type KubeApiHarness, kubeApiContract } from "../../../test/contract/kubeapi-suite.ts";
import { SystemClock } from "../../lib/clock.ts";

async function start(options: FakeApiOptions): Promise<KubeApiHarness & { readonly server: FakeApiServer }> {
  const server = await FakeApiServer.start(options);
  const clock = new SystemClock();
  const clients = testClients(clock, clientConfig([server.url], server.authorityPem));
  const stop = async (): Promise<void> => {
    clients.close();
    await server.stop();
  };
  return { server, api: clients.calls, clock, namespace: "suite", stop };
}

kubeApiContract("scripted server", () => start({}));
kubeApiContract("scripted server without HTTP/2", () => start({ http1: true }));
kubeApiContract("scripted server below a path", () => start({ basePath: "/clusters/one" }));

test("requests say who asks and what they take", async (t) => {
  const { server, api, stop } = await start({});
  t.after(stop);
  await api.raw({ method: "GET", path: "/version" }, { signal: new AbortController().signal });
  const { headers } = server.requests[0] ?? {};
  assert.equal(headers?.["user-agent"], "kubelet-test");
  assert.equal(headers?.accept, "application/json");
  assert.equal(headers?.["content-type"], undefined);
});
