import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { FakeApiServer } from "./kubeapi-fake-server.ts";

test("the fake API server stops although a client never finishes its handshake", { timeout: 10_000 }, async () => {
  const server = await FakeApiServer.start();
  const client = connect(Number(new URL(server.url).port), "127.0.0.1").on("error", () => undefined);
  await once(client, "connect");
  // The server has taken it by then.
  await new Promise((resolve) => setTimeout(resolve, 50));
  await server.stop();
  client.destroy();
});
