import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedFields, testApiServer } from "../../../../test/support/local-api.ts";
import { JOBS } from "../../../adapters/kubeapi/index.ts";
import { FakeClock } from "../../../lib/clock.ts";
import type { JobSpec, ObjectMeta } from "../../../model/generated/types.ts";

const UID = "batch.kubernetes.io/controller-uid";
const spec = (labels: ObjectMeta["labels"], more: Partial<JobSpec> = {}): JobSpec => ({
  template: {
    metadata: { ...(labels && { labels }) },
    spec: { containers: [{ name: "c", image: "x" }], restartPolicy: "Never" },
  },
  ...more,
});

for (const { name, given, fields } of [
  { name: "a job finds its pods by its UID", given: spec(undefined), fields: [] },
  {
    name: "a job brings its selector",
    given: spec({ a: "b" }, { manualSelector: true, selector: { matchLabels: { a: "b" } } }),
    fields: [],
  },
  {
    name: "labels of another job in the template",
    given: spec({ [UID]: "1-2" }),
    fields: [`spec.template.metadata.labels[${UID}]`, "spec.template.metadata.labels"],
  },
  {
    name: "a selector of other labels without being asked for it",
    given: spec({ a: "b" }, { selector: { matchLabels: { a: "b" } } }),
    fields: ["spec.selector"],
  },
  {
    name: "a selector that does not mean the template",
    given: spec({ a: "b" }, { manualSelector: true, selector: { matchLabels: { a: "c" } } }),
    fields: ["spec.template.metadata.labels"],
  },
  {
    name: "no selector",
    given: spec({ a: "b" }, { manualSelector: true }),
    fields: ["spec.selector", "spec.template.metadata.labels"],
  },
]) {
  test(`${name}${fields.length > 0 ? " is refused: its pods would never be its own" : ""}`, async (t) => {
    const server = await testApiServer(new FakeClock());
    t.after(() => server.close());
    const object = { metadata: { name: "j" }, spec: given };
    const { signal } = new AbortController();
    const creation = server.api("user").create(JOBS, { namespace: "default", object }, { signal });
    assert.deepEqual(await refusedFields(creation), fields);
  });
}

for (const { name, labels, given, want } of [
  { name: "no labels anywhere", labels: undefined, given: undefined, want: ["batch.kubernetes.io/job-name"] },
  { name: "labels of the template", labels: undefined, given: { a: "b" }, want: ["a", "batch.kubernetes.io/job-name"] },
  { name: "labels of its own", labels: { c: "d" }, given: { a: "b" }, want: ["c"] },
]) {
  test(`a job with ${name} has ${want.join(" and ")}`, async (t) => {
    const server = await testApiServer(new FakeClock());
    t.after(() => server.close());
    const object = { metadata: { name: "j", ...(labels && { labels }) }, spec: spec(given) };
    const { signal } = new AbortController();
    const made = await server.api("user").create(JOBS, { namespace: "default", object }, { signal });
    const generated = ["controller-uid", UID, "job-name"];
    assert.deepEqual(
      Object.keys(made.metadata.labels ?? {}).filter((key) => !generated.includes(key)),
      want,
    );
  });
}
