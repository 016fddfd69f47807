import assert from "node:assert/strict";
import { test } from "node:test";
import { clientConfig, testClients } from "../../../test/contract/kubeapi-clients.ts";
import { FakeApiServer } from "../../../test/contract/kubeapi-fake-server.ts";
import { FakeClock } from "../../lib/clock.ts";
import { NODES } from "./resources.ts";

test("reviews have a rate limit of their own", async (t) => {
  const server = await FakeApiServer.start();
  t.after(() => server.stop());
  // The clock stands: a budget that is used up stays so.
  const clients = testClients(new FakeClock(), clientConfig([server.url], server.authorityPem), { qps: 1, burst: 1 });
  t.after(() => clients.close());
  const ended = new AbortController();
  t.after(() => ended.abort());
  const call = (api: typeof clients.calls): Promise<unknown> =>
    api.get(NODES, { name: "n1" }, ended).catch((error: unknown) => error);
  await call(clients.calls);
  let isAnswered = false;
  void call(clients.calls).then(() => {
    isAnswered = true;
  });
  await call(clients.reviews);
  assert.equal(isAnswered, false);
});
