import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { RuntimeError } from "../../adapters/runtime/port.ts";
import { manyListeners } from "../../lib/abort.ts";
import { CodedError } from "../../lib/errors.ts";
import { Metrics } from "../../lib/metrics.ts";
import type { Pod, ResourceRequirements } from "../../model/generated/types.ts";
import { countOutcomes, poolCounters } from "./outcome-metrics.ts";
import { countRequestedResizes, countResizes, pendingReasons, resourceChanges } from "./resize-metrics.ts";

const signal = manyListeners().signal;

/** A ring whose numbers are read by `lines`. */
function counted(ring: FakeRing): { lines(pattern: RegExp): Promise<string[]> } {
  const metrics = new Metrics();
  const { clock, journal, pool, view } = ring;
  const desired = {
    get: (uid: string) => {
      const found = view.pods().find(({ metadata }) => metadata.uid === uid);
      return found && { uid, pod: found, source: "file", warnings: [], seenAt: 0 };
    },
  };
  for (const count of [countOutcomes, countResizes, countRequestedResizes]) {
    count({ clock, metrics, journal, desired, pool }, { signal });
  }
  return {
    lines: async (pattern) =>
      (await metrics.expose()).body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line)),
  };
}

describe("how things turned out", () => {
  test("each end of a container is counted once, by its kind, exit code and reason", async () => {
    const ring = new FakeRing({ first: { exitAfterMs: 1000, exitCode: 0 }, app: { exitAfterMs: 5000, exitCode: 3 } });
    const { lines } = counted(ring);
    await ring.want(pod("web").init("first").container("app").build());
    await ring.clock.advance(8000);
    assert.deepEqual(await lines(/^kubelet_terminated/), [
      'kubelet_terminated_containers_total{container_type="init_container",exit_code="0",reason="Completed"} 1',
      'kubelet_terminated_containers_total{container_type="container",exit_code="3",reason="Error"} 1',
    ]);
    await ring.clock.advance(300_000);
    const restarts = (await ring.containers()).find(({ name }) => name === "app")?.attempt ?? 0;
    assert.ok(restarts >= 3);
    const line = (await lines(/exit_code="3"/))[0] ?? "";
    assert.ok(Number(line.split(" ").at(-1)) >= restarts, line);
  });

  test("what ended before the agent began is not counted", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 1000, exitCode: 3 } });
    const web = pod("web").container("app").build();
    const never = { ...web, spec: { ...web.spec, restartPolicy: "Never" as const } };
    await ring.want(never);
    await ring.clock.advance(60_000);
    await ring.restartAgent();
    const { lines } = counted(ring);
    await ring.want(never);
    await ring.clock.advance(1000);
    assert.equal(ring.status()?.phase, "Failed");
    assert.deepEqual(await lines(/^kubelet_terminated/), []);
  });

  test("hooks that fell back to plain HTTP, and sleeps that were cut short", async () => {
    const ring = new FakeRing();
    const { lines } = counted(ring);
    ring.httpGet = async ({ scheme }) => {
      if (scheme === "https") throw new CodedError("PlainAnswer", "this is no TLS");
      return { status: 200 };
    };
    const postStart = { httpGet: { scheme: "HTTPS", port: 80, host: "h" } };
    const long = { preStop: { sleep: { seconds: 60 } } };
    await ring.want(
      pod("web").container("app", { lifecycle: { postStart } }).container("b", { lifecycle: long }).build(),
    );
    assert.deepEqual(await lines(/fallbacks/), ["kubelet_lifecycle_handler_http_fallbacks_total 1"]);
    await ring.want();
    await ring.clock.advance(31_000);
    assert.deepEqual(await lines(/^kubelet_sleep/), ["kubelet_sleep_action_terminated_early_total 1"]);
  });

  test("pods with users of their own, and those whose first containers did not come up, once each", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 1000, exitCode: 3 } });
    ring.runtime.hasUserNamespaces = true;
    const { lines } = counted(ring);
    const own = (name: string): Pod => {
      const built = pod(name).container("app").build();
      return { ...built, spec: { ...built.spec, hostUsers: false } };
    };
    await ring.want(own("good"));
    await ring.clock.advance(60_000);
    ring.runtime.control.fail("startContainer", new RuntimeError("Unknown", "no such program"));
    // A container that did run once fails on its own account.
    await ring.clock.advance(300_000);
    assert.deepEqual(await lines(/user_namespaced/), [
      "kubelet_started_user_namespaced_pods_total 1",
      "kubelet_started_user_namespaced_pods_errors_total 0",
    ]);
    ring.runtime.control.fail("startContainer", new RuntimeError("Unknown", "no such program"));
    await ring.want(own("good"), own("bad"));
    await ring.clock.advance(60_000);
    assert.deepEqual(await lines(/user_namespaced/), [
      "kubelet_started_user_namespaced_pods_total 2",
      "kubelet_started_user_namespaced_pods_errors_total 1",
    ]);
  });

  test("changes of resources are counted, and how long they took", async () => {
    const ring = new FakeRing();
    const { lines } = counted(ring);
    const web = (cpu: string): Pod =>
      pod("web")
        .container("app", { resources: { requests: { cpu }, limits: { cpu } } })
        .build();
    await ring.want(web("500m"));
    await ring.want(web("1"));
    await ring.clock.advance(1000);
    assert.deepEqual(await lines(/^kubelet_container_requested_resizes/), [
      'kubelet_container_requested_resizes_total{resource="cpu",requirement="requests",operation="increase"} 1',
      'kubelet_container_requested_resizes_total{resource="cpu",requirement="limits",operation="increase"} 1',
    ]);
    assert.deepEqual(await lines(/^kubelet_pod_resize_duration_milliseconds_count/), [
      'kubelet_pod_resize_duration_milliseconds_count{success="true"} 1',
    ]);
    assert.deepEqual(await lines(/^kubelet_pod_in_progress/), ["kubelet_pod_in_progress_resizes 0"]);
    await ring.want(web("50"));
    await ring.clock.advance(1000);
    assert.deepEqual(await lines(/^kubelet_pod_(infeasible|pending)/), [
      'kubelet_pod_pending_resizes{reason="deferred"} 1',
    ]);
    ring.resizeProblem = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    await ring.want(web("51"));
    await ring.clock.advance(1000);
    assert.deepEqual(await lines(/^kubelet_pod_(infeasible|pending)/), [
      'kubelet_pod_infeasible_resizes_total{reason_detail="guaranteed_pod_cpu_manager_static_policy"} 1',
      'kubelet_pod_pending_resizes{reason="infeasible"} 1',
    ]);
  });
});

test("the pool's own counts carry Kubernetes' labels", async () => {
  const metrics = new Metrics();
  const counters = poolCounters(metrics);
  counters.orphaned();
  counters.restarted(pod("web").build());
  counters.preempted("OutOfcpu");
  const { body } = await metrics.expose();
  assert.match(body, /^kubelet_orphaned_runtime_pods_total 1$/m);
  assert.match(body, /^kubelet_restarted_pods_total\{static=""\} 1$/m);
  assert.match(body, /^kubelet_preemptions\{preemption_signal="cpu"\} 1$/m);
});

const amounts = (cpu?: string, memory?: string): ResourceRequirements => ({
  requests: { ...(cpu && { cpu }), ...(memory && { memory }) },
});
const changes = [
  { name: "nothing", before: amounts("1"), after: amounts("1000m"), want: [] },
  { name: "less", before: amounts("1"), after: amounts("500m"), want: [["cpu", "requests", "decrease"]] },
  { name: "a new one", before: amounts(), after: amounts("1"), want: [["cpu", "requests", "add"]] },
  {
    name: "one that is gone",
    before: amounts("1", "1Gi"),
    after: amounts("1"),
    want: [["memory", "requests", "remove"]],
  },
];
for (const { name, before, after, want } of changes) {
  test(`what is asked of resources: ${name}`, () => {
    const of = (resources: ResourceRequirements): Pod => pod("web").container("app", { resources }).build();
    assert.deepEqual(resourceChanges(of(before), of(after)), want);
  });
}

test("pods that wait for a resize are counted by the reason in their condition", () => {
  const waits = (reason: string) => ({ conditions: [{ type: "PodResizePending", status: "True", reason }] });
  assert.deepEqual(pendingReasons([waits("Deferred"), waits("Deferred"), waits("Infeasible"), {}]), [
    [["deferred"], 2],
    [["infeasible"], 1],
  ]);
});
