import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { apiDeps } from "../../test/support/api-deps.ts";
import { dispatcher } from "../adapters/net/http-dispatch.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import { toHttpRoutes } from "./api-route.ts";
import { Authenticator } from "./authenticate.ts";
import { type AccessQuestion, Authorizer } from "./authorize.ts";
import { accessGuard } from "./guard.ts";
import { API_ROUTES } from "./table.ts";

/** First part of a path → what one must be allowed on the node; one of them is enough. Written by hand, on purpose. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  healthz: ["healthz", "proxy"],
  pods: ["pods", "proxy"],
  runningpods: ["pods", "proxy"],
  metrics: ["metrics"],
  stats: ["stats"],
  spec: ["spec"],
  containerLogs: ["proxy"],
  exec: ["proxy"],
  attach: ["proxy"],
  portForward: ["proxy"],
  run: ["proxy"],
  checkpoint: ["checkpoint"],
  configz: ["configz", "proxy"],
  flagz: ["configz"],
  statusz: ["statusz"],
  logs: ["log"],
  debug: ["proxy"],
};
/** These act inside containers, by whatever method. */
const ACTING = ["exec", "attach", "portForward", "run"];
const VERBS: Readonly<Record<string, string>> = { GET: "get", POST: "create", PUT: "update", DELETE: "delete" };

/** A request that fits a row of the table, about the pod that there is, or about one that is not. */
function fill(path: string, pod: string): string {
  return path
    .replace(":namespace", "default")
    .replace(":pod", pod)
    .replace(":uid", "u1")
    .replace(":container", "main")
    .replace(/:path|\*/, "syslog")
    .replace(/:\w+/g, "x");
}

/** The main port for a user who may do what `allows` says. */
function port(allows: (question: AccessQuestion) => boolean) {
  const clock = new FakeClock();
  const { deps, calls } = apiDeps();
  const reviewer = { review: async (token: string) => (token === "good" ? { name: "ann", groups: [] } : undefined) };
  const guard = accessGuard({
    log: silent,
    authenticator: new Authenticator(
      { clock, log: silent, reviewer },
      fixed({ anonymous: false, tokenTtlMs: 120_000 }),
    ),
    authorizer: new Authorizer(
      { clock, reviewer: { isAllowed: async (question) => allows(question) } },
      fixed({ mode: "Webhook", allowedTtlMs: 0, deniedTtlMs: 0 }),
    ),
  });
  const dispatch = dispatcher(toHttpRoutes(API_ROUTES, deps, "main"), guard);
  const ask = async (method: string, target: string, token: string) => {
    const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
    const signal = new AbortController().signal;
    const answer = await dispatch({ method, target, headers, signal, readBody: async () => Buffer.from("") });
    return { status: answer.status, body: typeof answer.body === "string" ? answer.body : "" };
  };
  return { ask, calls };
}

describe("who may use which endpoint", () => {
  for (const { path, methods } of API_ROUTES) {
    const [, first = ""] = path.split("/");
    const needed = NEEDED[first];
    for (const method of methods === "any" ? ["GET", "POST"] : methods) {
      const verb = ACTING.includes(first) ? "create" : VERBS[method];
      const target = fill(path, "web");

      test(`${method} ${path}: nobody without credentials, nobody with wrong ones`, async () => {
        const { ask, calls } = port(() => true);
        for (const token of ["", "bad"]) {
          assert.deepEqual(await ask(method, target, token), { status: 401, body: "Unauthorized" });
        }
        assert.deepEqual(calls, []);
      });

      test(`${method} ${path}: not with all other rights together, and nothing is told`, async () => {
        assert.ok(needed && verb, `${path} has no line in this test`);
        const { ask, calls } = port((asked) => !(asked.verb === verb && needed.includes(asked.subresource)));
        const refused = await ask(method, target, "good");
        assert.equal(refused.status, 403);
        assert.equal(
          refused.body,
          `Forbidden (user=ann, verb=${verb}, resource=nodes, subresource(s)=[${needed.join(" ")}])`,
        );
        assert.deepEqual(await ask(method, fill(path, "nope"), "good"), refused);
        assert.deepEqual(calls, []);
      });

      for (const right of needed ?? []) {
        test(`${method} ${path}: ${verb} on nodes/${right} alone is enough`, async () => {
          const { ask } = port((asked) => asked.verb === verb && asked.subresource === right);
          const { status } = await ask(method, target, "good");
          assert.ok(status !== 401 && status !== 403, `${status}`);
        });
      }
    }
  }
});
