import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, Pod, PodSpec, PodStatus } from "../../../model/generated/types.ts";
import { ephemeralContainersUpdate, resizeUpdate, validatePodUpdate } from "./pod-updates.ts";

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "x:1", ...more });
const pod = (spec: Partial<PodSpec> = {}, status?: PodStatus): Pod => ({
  metadata: { name: "p", namespace: "default", resourceVersion: "7" },
  spec: { containers: [container("c")], ...spec },
  ...(status && { status }),
});

interface Change {
  readonly name: string;
  readonly old?: Partial<PodSpec>;
  readonly next: Partial<PodSpec>;
  /** The fields that are refused. */
  readonly refused?: readonly string[];
}

const key = (name: string, tolerationSeconds?: number) => ({
  key: name,
  operator: "Exists",
  ...(tolerationSeconds !== undefined && { tolerationSeconds }),
});

const changes: readonly Change[] = [
  { name: "nothing", next: {} },
  { name: "another image", next: { containers: [container("c", { image: "x:2" })] } },
  {
    name: "another image of an init container",
    old: { initContainers: [container("i")] },
    next: { initContainers: [container("i", { image: "x:2" })] },
  },
  { name: "another command", next: { containers: [container("c", { command: ["sh"] })] }, refused: ["spec"] },
  {
    name: "another command of an init container",
    old: { initContainers: [container("i")] },
    next: { initContainers: [container("i", { command: ["sh"] })] },
    refused: ["spec"],
  },
  { name: "one more container", next: { containers: [container("c"), container("d")] }, refused: ["spec.containers"] },
  { name: "one more init container", next: { initContainers: [container("i")] }, refused: ["spec.initContainers"] },
  { name: "another node", old: { nodeName: "a" }, next: { nodeName: "b" }, refused: ["spec"] },
  { name: "a field that is removed", old: { hostname: "h" }, next: {}, refused: ["spec"] },
  { name: "one more toleration", old: { tolerations: [key("a")] }, next: { tolerations: [key("a"), key("b")] } },
  { name: "the first toleration", next: { tolerations: [key("a")] } },
  { name: "a toleration for longer", old: { tolerations: [key("a", 5)] }, next: { tolerations: [key("a", 9)] } },
  { name: "one toleration less", old: { tolerations: [key("a")] }, next: {}, refused: ["spec.tolerations"] },
  {
    name: "another toleration",
    old: { tolerations: [key("a")] },
    next: { tolerations: [key("b")] },
    refused: ["spec.tolerations"],
  },
  { name: "a first deadline", next: { activeDeadlineSeconds: 9 } },
  { name: "the same deadline", old: { activeDeadlineSeconds: 9 }, next: { activeDeadlineSeconds: 9 } },
  { name: "an earlier deadline", old: { activeDeadlineSeconds: 9 }, next: { activeDeadlineSeconds: 8 } },
  {
    name: "a later deadline",
    old: { activeDeadlineSeconds: 9 },
    next: { activeDeadlineSeconds: 10 },
    refused: ["spec.activeDeadlineSeconds"],
  },
  {
    name: "no deadline any more",
    old: { activeDeadlineSeconds: 9 },
    next: {},
    refused: ["spec.activeDeadlineSeconds"],
  },
  {
    name: "a gate less",
    old: { schedulingGates: [{ name: "a" }, { name: "b" }] },
    next: { schedulingGates: [{ name: "b" }] },
  },
  { name: "no gate any more", old: { schedulingGates: [{ name: "a" }] }, next: {} },
  {
    name: "another gate",
    old: { schedulingGates: [{ name: "a" }] },
    next: { schedulingGates: [{ name: "a" }, { name: "b" }] },
    refused: ["spec.schedulingGates[1].name"],
  },
  { name: "a first gate", next: { schedulingGates: [{ name: "a" }] }, refused: ["spec.schedulingGates[0].name"] },
  {
    name: "a grace period of 1 instead of a negative one",
    old: { terminationGracePeriodSeconds: -1 },
    next: { terminationGracePeriodSeconds: 1 },
  },
  {
    name: "another grace period",
    old: { terminationGracePeriodSeconds: 30 },
    next: { terminationGracePeriodSeconds: 1 },
    refused: ["spec"],
  },
];
for (const { name, old = {}, next, refused = [] } of changes) {
  test(`${refused.length === 0 ? "a running pod may get" : "a running pod does not get"} ${name}`, () => {
    const found = validatePodUpdate(pod(next), pod(old)).map(({ field }) => field);
    assert.deepEqual(found, refused);
  });
}

const context = {
  now: "2026-01-01T00:00:00Z",
  user: { name: "u", groups: [] },
  read: { get: () => undefined, list: () => [] },
  suffix: () => "abcde",
  warn: () => undefined,
};
const shell = (image: string) => ({
  name: "debug",
  image,
  terminationMessagePolicy: "File",
  imagePullPolicy: "Always",
});

test("a debug container is added, and nothing else of the pod changes with it", () => {
  const old = pod({ nodeName: "n" });
  const asked = pod({ nodeName: "other", ephemeralContainers: [shell("x")] });
  const next = ephemeralContainersUpdate.prepare(
    { ...asked, metadata: { name: "q", resourceVersion: "8" } },
    old,
    context,
  );
  assert.deepEqual(next.spec, { ...old.spec, ephemeralContainers: [shell("x")] });
  assert.deepEqual([next.metadata.name, next.metadata.resourceVersion], ["p", "8"]);
});

test("a debug container is never changed nor removed", () => {
  const old = pod({ ephemeralContainers: [shell("x")] });
  const fields = (spec: Partial<PodSpec>) =>
    ephemeralContainersUpdate.validate?.(pod(spec), old).map(({ field, body }) => [field, body.includes("removed")]);
  assert.deepEqual(fields({ ephemeralContainers: [shell("x"), { ...shell("y"), name: "more" }] }), []);
  assert.deepEqual(fields({}), [["spec.ephemeralContainers", true]]);
  assert.deepEqual(fields({ ephemeralContainers: [shell("y")] }), [["spec.ephemeralContainers[0]", false]]);
});

const cpu = (amount: string) => ({ resources: { requests: { cpu: amount } } });

test("a resize changes requests, limits and policies, by the name of the container, and nothing else", () => {
  const policy = [{ resourceName: "cpu", restartPolicy: "NotRequired" }];
  const old = pod({
    containers: [container("a", cpu("1")), container("b", cpu("2"))],
    initContainers: [container("i")],
  });
  const asked = pod({
    containers: [container("b", { ...cpu("4"), image: "evil" }), container("a", { ...cpu("3"), resizePolicy: policy })],
    initContainers: [container("i", cpu("5"))],
    nodeName: "other",
  });
  assert.deepEqual(resizeUpdate.prepare(asked, old, context).spec, {
    containers: [container("a", { ...cpu("3"), resizePolicy: policy }), container("b", cpu("4"))],
    initContainers: [container("i", cpu("5"))],
  });
});

test("a resize that would change the class of the pod is refused, and so is one that its node cannot do", () => {
  const refused = (next: Pod, old: Pod) => resizeUpdate.validate?.(next, old).map(({ body }) => body);
  const old = pod({ containers: [container("c", cpu("1"))] });
  assert.deepEqual(refused(pod({ containers: [container("c", cpu("2"))] }), old), []);
  assert.match(String(refused(pod({ containers: [container("c")] }), old)), /QOS Class may not change/);
  const status = (resources?: object) => ({
    containerStatuses: [
      { name: "c", image: "x", imageID: "", ready: true, restartCount: 0, ...(resources && { resources }) },
    ],
  });
  assert.match(String(refused(old, pod(old.spec, status()))), /without support for resize/);
  assert.deepEqual(refused(old, pod(old.spec, status({}))), []);
});
