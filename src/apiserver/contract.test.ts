import { kubeApiContract } from "../../test/contract/kubeapi-suite.ts";
import { testApiServer } from "../../test/support/local-api.ts";
import { NAMESPACES } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { SystemClock } from "../lib/clock.ts";

kubeApiContract("local API", async () => {
  const clock = new SystemClock();
  const server = await testApiServer(clock);
  const api = server.api("suite");
  await api.create(
    NAMESPACES,
    { object: { metadata: { name: "suite" }, spec: {} } },
    { signal: manyListeners().signal },
  );
  return { api, clock, namespace: "suite", stop: () => server.close() };
});
