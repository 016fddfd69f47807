import assert from "node:assert/strict";
import { test } from "node:test";
import { refusedFields, testApiServer } from "../../../../test/support/local-api.ts";
import { STATEFUL_SETS } from "../../../adapters/kubeapi/index.ts";
import { FakeClock } from "../../../lib/clock.ts";
import type { PersistentVolumeClaim, PodSpec } from "../../../model/generated/types.ts";

const claim = (name: string, more: PersistentVolumeClaim["spec"] = {}): PersistentVolumeClaim => ({
  metadata: { name },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...more },
});
const mounting = (name: string, more: Partial<PodSpec> = {}): PodSpec => ({
  containers: [{ name: "c", image: "x", volumeMounts: [{ name, mountPath: "/data" }] }],
  ...more,
});

for (const { name, spec, claims, fields } of [
  { name: "a container mounts the claim of its ordinal", spec: mounting("data"), claims: [claim("data")], fields: [] },
  {
    name: "a claim replaces a volume of its name",
    spec: mounting("data", { volumes: [{ name: "data", emptyDir: {} }] }),
    claims: [claim("data")],
    fields: [],
  },
  {
    name: "host name and subdomain of the template, which the controller replaces, are not looked at",
    spec: mounting("data", { hostname: "Not_A_Name", subdomain: "Nor_This" }),
    claims: [claim("data")],
    fields: [],
  },
  {
    name: "a mount without a claim or a volume is refused",
    spec: mounting("other"),
    claims: [claim("data")],
    fields: ["spec.template.spec.containers[0].volumeMounts[0].name"],
  },
  {
    name: "a claim without access modes is refused",
    spec: mounting("data"),
    claims: [claim("data", { accessModes: [] })],
    fields: ["spec.volumeClaimTemplates[0].spec.accessModes"],
  },
]) {
  test(`StatefulSet: ${name}`, async (t) => {
    const server = await testApiServer(new FakeClock());
    t.after(() => server.close());
    const labels = { app: "s" };
    const object = {
      metadata: { name: "s" },
      spec: {
        serviceName: "s",
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
        volumeClaimTemplates: claims,
      },
    };
    const { signal } = new AbortController();
    const creation = server.api("user").create(STATEFUL_SETS, { namespace: "default", object }, { signal });
    assert.deepEqual(await refusedFields(creation), fields);
  });
}
