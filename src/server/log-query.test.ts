import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { ALL_ON, apiDeps } from "../../test/support/api-deps.ts";
import { bareRequest } from "../adapters/net/http-route.ts";
import { fixed } from "../lib/live.ts";
import { journalArguments, readLogQuery } from "./routes/log-query.ts";
import { readRange, systemLogRoutes } from "./routes/system-logs.ts";

const ranges: readonly { header: string | undefined; want: ReturnType<typeof readRange> }[] = [
  { header: undefined, want: undefined },
  { header: "bytes=0-0", want: { from: 0, to: 1 } },
  { header: "bytes=2-99", want: { from: 2, to: 10 } },
  { header: "bytes=9-", want: { from: 9, to: 10 } },
  { header: "bytes=10-", want: "unsatisfiable" },
  { header: "bytes=5-4", want: "unsatisfiable" },
  { header: "bytes=-3", want: { from: 7, to: 10 } },
  { header: "bytes=-99", want: { from: 0, to: 10 } },
  { header: "bytes=-0", want: "unsatisfiable" },
  { header: "bytes=-", want: undefined },
  { header: "bytes=0-1,4-5", want: undefined },
  { header: "lines=0-1", want: undefined },
];
for (const { header, want } of ranges) {
  test(`range ${header} of 10 bytes`, () => assert.deepEqual(readRange(header, 10), want));
}

const types = [
  { path: "syslog", want: "text/plain; charset=utf-8" },
  { path: "syslog.1.gz", want: "application/gzip" },
  { path: "journal/system.journal", want: "application/octet-stream" },
];
for (const { path, want } of types) {
  test(`/logs/${path} is ${want}`, async () => {
    const { deps } = apiDeps();
    const systemLogs = { ...deps.systemLogs, look: async () => ({ kind: "file", size: 1, modifiedMs: 0 }) as const };
    const route = systemLogRoutes.find((each) => each.path === "/logs/*");
    const request = bareRequest("GET", `/logs/${path}`, { params: { "*": path } });
    assert.equal((await route?.handle({ ...deps, systemLogs }, request))?.type, want);
  });
}

const refused = [
  { query: "query=", status: 400 },
  { query: "pattern=x", status: 400 },
  { query: "query=kubelet&sinceTime=soon", status: 400 },
  { query: "query=kubelet&tailLines=many", status: 400 },
  { query: "query=kubelet&tailLines=100001", status: 406 },
  { query: "query=kubelet&boot=1", status: 406 },
  { query: "query=kubelet&pattern=(", status: 406 },
  { query: "query=kubelet&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", status: 406 },
  { query: "query=a&query=b&query=c&query=d&query=e", status: 406 },
  { query: "query=a%20b", status: 406 },
  { query: "query=/a&query=/b", status: 406 },
  { query: "query=/a&query=b", status: 406 },
  { query: "query=/a&tailLines=1", status: 406 },
  { query: "query=/../etc/shadow", status: 406 },
  { query: `query=${"x".repeat(257)}`, status: 406 },
];
for (const { query, status } of refused) {
  test(`log query ?${query.slice(0, 80)} is ${status}`, () => {
    const answer = readLogQuery(new URLSearchParams(query));
    assert.equal("refused" in answer && answer.refused, status);
  });
}

test("the arguments of journalctl", () => {
  const query = readLogQuery(
    new URLSearchParams(
      "query=a&sinceTime=2026-01-02T03:04:05%2B01:00&untilTime=2026-01-03T00:00:00Z&tailLines=5&pattern=x.*&boot=-1",
    ),
  );
  assert.ok(!("refused" in query));
  assert.equal(
    journalArguments(query, ["a"]).join(" "),
    "--utc --no-pager --output=short-precise --since=2026-01-02 02:04:05 --until=2026-01-03 00:00:00 --pager-end --lines=5 --unit=a --grep=x.* --boot -1",
  );
});

async function ask(target: string, headers: Record<string, string> = {}): Promise<{ status: number; body: Buffer }> {
  const { deps } = apiDeps({ switches: fixed({ ...ALL_ON, systemLogQuery: true }) });
  const url = new URL(target, "http://x");
  const path = url.pathname.slice("/logs/".length);
  const route = systemLogRoutes.find((each) => each.path === (path === "" ? "/logs/" : "/logs/*"));
  assert.ok(route);
  const answer = await route.handle(deps, bareRequest("GET", target, { params: { "*": path }, headers }));
  const parts: Buffer[] = [];
  if (typeof answer.body === "string" || answer.body instanceof Uint8Array) parts.push(Buffer.from(answer.body));
  else for await (const chunk of answer.body) parts.push(Buffer.from(chunk));
  return { status: answer.status, body: Buffer.concat(parts) };
}

test("a unit is searched in the journal, another name in the files", async () => {
  assert.match(String((await ask("/logs/?query=kubelet")).body), /--unit=kubelet$/);
  assert.equal(String((await ask("/logs/?query=cron")).body), "0123456789");
  assert.equal(String((await ask("/logs/?query=/syslog")).body), "0123456789");
  assert.match(String((await ask("/logs/?query=nothing")).body), /no logs found/);
  assert.equal((await ask("/logs/syslog?query=kubelet")).status, 406);
  assert.equal((await ask("/logs/?query=a%20b")).status, 406);
});

test("the answer of a query is compressed only if the client accepts nothing else", async () => {
  const { body } = await ask("/logs/?query=/syslog", { "accept-encoding": "gzip" });
  assert.equal(String(gunzipSync(body)), "0123456789");
  assert.equal(String((await ask("/logs/?query=/syslog", { "accept-encoding": "gzip, br" })).body), "0123456789");
});
