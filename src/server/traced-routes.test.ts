import assert from "node:assert/strict";
import { test } from "node:test";
import { type HttpRoute, type RouteRequest, textAnswer } from "../adapters/net/http-route.ts";
import { FakeClock } from "../lib/clock.ts";
import { type EndedSpan, Tracer } from "../lib/tracer.ts";
import { tracedRoutes } from "./traced-routes.ts";

const TRACEPARENT = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;

function site(status = 200) {
  const ended: EndedSpan[] = [];
  const tracer = new Tracer(
    { clock: new FakeClock(), ended: (span) => void ended.push(span) },
    { samplingRatePerMillion: 1_000_000 },
  );
  const routes: readonly HttpRoute[] = [
    {
      path: "/pods/:name",
      methods: "any",
      handle: async () => {
        tracer.begin("call", { parent: tracer.active }).end();
        return textAnswer(status, "");
      },
    },
  ];
  const ask = (isPublic: boolean) => {
    const request = { method: "GET", path: "/pods/web", headers: { traceparent: TRACEPARENT } } as unknown;
    return tracedRoutes(tracer, routes, { isPublic })[0]?.handle(request as RouteRequest); // reason: no more is read
  };
  return { ended, ask, routes };
}

test("a request continues the trace that it carries, and what it calls is part of it", async () => {
  const { ended, ask } = site();
  await ask(false);
  const [call, request] = ended;
  assert.deepEqual([request?.name, request?.kind, request?.traceId], ["/pods/:name", "server", "a".repeat(32)]);
  assert.equal(request?.parentSpanId, "b".repeat(16));
  assert.equal(call?.parentSpanId, request?.spanId);
  assert.deepEqual(request?.attributes, {
    "http.request.method": "GET",
    "http.route": "/pods/:name",
    "url.path": "/pods/web",
    "http.response.status_code": 200,
  });
});

test("on a port without authentication a request begins a trace of its own; an error of the server is one of the span", async () => {
  const { ended, ask } = site(500);
  await ask(true);
  assert.notEqual(ended[1]?.traceId, "a".repeat(32));
  assert.equal(ended[1]?.error, "status 500");
});

test("without a tracer routes are as they were", () => {
  const { routes } = site();
  assert.equal(tracedRoutes(undefined, routes, { isPublic: false }), routes);
});
