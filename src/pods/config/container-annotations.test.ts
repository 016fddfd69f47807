import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { containerHash } from "../../model/container-hash.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { containerAnnotations } from "./container-annotations.ts";

function build(more: Partial<Container> = {}, change: (of: Pod) => Pod = (of) => of): Record<string, string> {
  const of = change(pod("web", "uid-1").container("app", more).build());
  return containerAnnotations({ pod: of, container: of.spec.containers[0] ?? { name: "" }, attempt: 3 });
}

describe("annotations, which tell the next agent what the spec said", () => {
  test("hash, restart count, message path and policy, grace", () => {
    const message = { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" };
    assert.deepEqual(build(message), {
      "io.kubernetes.container.hash": containerHash({ name: "app", image: "app:1" }),
      "io.kubernetes.container.restartCount": "3",
      "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
      "io.kubernetes.container.terminationMessagePolicy": "File",
      "io.kubernetes.pod.terminationGracePeriod": "30",
    });
  });

  test("ports and the preStop hook, as JSON", () => {
    const ports = [{ containerPort: 80, protocol: "TCP" }];
    const preStop = { exec: { command: ["bye"] } };
    const annotations = build({ ports, lifecycle: { preStop } });
    assert.deepEqual(JSON.parse(annotations["io.kubernetes.container.ports"] ?? ""), ports);
    assert.deepEqual(JSON.parse(annotations["io.kubernetes.container.preStopHandler"] ?? ""), preStop);
  });

  test("the grace of a deletion that was asked for already, also 0", () => {
    const annotations = build({}, (of) => ({ ...of, metadata: { ...of.metadata, deletionGracePeriodSeconds: 0 } }));
    assert.equal(annotations["io.kubernetes.pod.deletionGracePeriod"], "0");
  });

  test("no ports: no annotation of them", () => {
    assert.equal("io.kubernetes.container.ports" in build({ ports: [] }), false);
  });
});
