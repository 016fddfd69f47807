import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Pod } from "../model/generated/types.ts";
import { encodeList } from "./routes/pods.ts";

const read = (pods: readonly Pod[]): { items: Pod[] } & Record<string, unknown> =>
  JSON.parse(encodeList(pods).toString("utf8")) as { items: Pod[] } & Record<string, unknown>;

test("pods are a v1 PodList, also when there is none", () => {
  const [web, other] = [pod("wéb").container("app").build(), pod("other").container("app").build()];
  assert.deepEqual(read([web, other]), { kind: "PodList", apiVersion: "v1", metadata: {}, items: [web, other] });
  assert.deepEqual(read([]), { kind: "PodList", apiVersion: "v1", metadata: {}, items: [] });
});

test("a changed pod is serialized again: its status, its spec, its metadata", () => {
  const web = pod("web").container("app").build();
  const status = { phase: "Pending" };
  const seen = (now: Pod): unknown => read([now]).items[0];
  assert.deepEqual(seen({ ...web, status }), { ...web, status });
  assert.deepEqual(seen({ ...web, status: { phase: "Running" } }), { ...web, status: { phase: "Running" } });
  assert.deepEqual(seen({ ...web }), web);
  const spec = { ...web.spec, hostNetwork: true };
  assert.deepEqual(seen({ ...web, spec }), { ...web, spec });
  const metadata = { ...web.metadata, labels: { a: "b" } };
  assert.deepEqual(seen({ ...web, metadata, spec }), { ...web, metadata, spec });
});
