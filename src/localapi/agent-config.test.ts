import assert from "node:assert/strict";
import { test } from "node:test";
import { bareRequest } from "../adapters/net/http-route.ts";
import { ConfigurationError } from "../config/index.ts";
import { type AgentConfiguration, configRoutes } from "./agent-config.ts";

const calls: unknown[] = [];
const config: AgentConfiguration = {
  report: () => ({ settings: [], problems: ["p"] }),
  reload: async () => ({ applied: ["maxPods"] }),
  apply: async (file) => {
    if (file === "/bad") throw new ConfigurationError("Invalid", "maxPods: must be at least 0");
    calls.push(file);
    return {};
  },
  rollback: async ({ toLocal }) => void calls.push(toLocal),
  history: async () => [],
};

async function ask(path: string, given: AgentConfiguration | undefined = config) {
  const [name] = path.split("?");
  const route = configRoutes(given).find((each) => each.path === name);
  assert.ok(route);
  const { status, body } = await route.handle(bareRequest("", path));
  return { status, body: JSON.parse(String(body) || "null") as { message?: string; problems?: string[] } };
}

test("the state is reported, and files and switches are passed on", async () => {
  assert.deepEqual((await ask("/v1/config")).body.problems, ["p"]);
  assert.equal((await ask("/v1/config/reload")).status, 200);
  await ask("/v1/config/apply?file=%2Fa%20b");
  await ask("/v1/config/rollback?toLocal=true").catch(() => undefined);
  assert.deepEqual(calls, ["/a b", true]);
});

test("a refusal is an answer with its reason", async () => {
  const { status, body } = await ask("/v1/config/apply?file=/bad");
  assert.deepEqual([status, body.message], [409, "maxPods: must be at least 0"]);
});

test("an agent without configuration files reports that", async () => {
  const [route] = configRoutes(undefined);
  const answer = await route?.handle(bareRequest("GET", "/"));
  assert.equal(answer?.status, 404);
});

test("only POST changes anything", () => {
  const changing = configRoutes(config).filter(({ path }) => /reload|apply|rollback/.test(path));
  assert.deepEqual(
    changing.map(({ methods }) => methods),
    [["POST"], ["POST"], ["POST"]],
  );
});
