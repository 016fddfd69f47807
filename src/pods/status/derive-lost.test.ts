import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { derive } from "../../../test/support/derive.ts";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import type { ContainerStatus, Pod, PodStatus } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";

const app = { name: "app", image: "app:1" };
const init = { name: "init", image: "init:1" };
const ended = { state: "exited" } as const;
const always = pod().container("app").build();
const never = pod().container("app").restart("Never").build();
const withInit = pod().init("init").container("app").build();

/** The status of the only regular container after each of these observations in turn. */
function follow(of: Pod, ...observations: readonly ObservedPod[]): ContainerStatus | undefined {
  let previous: PodStatus | undefined;
  for (const what of observations) previous = derive(of, what, { previous });
  return previous?.containerStatuses?.[0];
}

describe("a container that the runtime lost", () => {
  for (const [exitCode, phase] of [
    [0, "Succeeded"],
    [3, "Failed"],
  ] as const) {
    test(`stays terminated when it had exited with ${exitCode}, and the Never pod is ${phase}`, () => {
      // The agent saw the exit, but not yet the end of the pod.
      const seenExit = derive(never, observed(never, [sandbox()], [seen(app, { ...ended, exitCode })]));
      const previous = { ...seenExit, phase: "Running" };
      const lost = derive(never, observed(never), { previous });
      assert.equal(lost.containerStatuses?.[0]?.state?.terminated?.exitCode, exitCode);
      assert.equal(lost.containerStatuses?.[0]?.containerID, "containerd://app-0");
      assert.equal(lost.phase, phase);
    });
  }

  test("stays as it was in a pod that had completed", () => {
    const completed = derive(never, observed(never, [sandbox()], [seen(app, ended)]), { finished: true });
    const lost = derive(never, observed(never), { previous: completed, terminating: true, finished: true });
    assert.deepEqual(lost, completed);
  });

  test("has ended with an unknown code when it had run, and the Never pod is Failed", () => {
    const running = derive(never, observed(never, [sandbox()], [seen(app)]));
    const lost = derive(never, observed(never), { previous: running });
    assert.equal(lost.containerStatuses?.[0]?.state?.terminated?.reason, "ContainerStatusUnknown");
    assert.equal(lost.phase, "Failed");
  });

  test("keeps its restart count and its last state when the runtime counts anew", () => {
    const second = seen(app, { attempt: 2 });
    const first = seen(app, { ...ended, exitCode: 7, attempt: 1 });
    const fresh = seen(app, { id: "fresh", attempt: 0 });
    const running = follow(always, observed(always, [sandbox()], [second, first]), observed(always));
    assert.deepEqual([running?.restartCount, running?.lastState?.terminated?.exitCode], [2, 7]);
    const again = follow(
      always,
      observed(always, [sandbox()], [second, first]),
      observed(always),
      observed(always, [sandbox()], [fresh]),
    );
    assert.deepEqual([again?.restartCount, again?.lastState?.terminated?.exitCode], [2, 7]);
  });

  test("that had exited counts one more restart once it runs again, and its exit is its last state", () => {
    const crashed = observed(always, [sandbox()], [seen(app, { ...ended, exitCode: 7, attempt: 2 })]);
    const fresh = observed(always, [sandbox({ attempt: 1 })], [seen(app, { id: "fresh", attempt: 0 })]);
    const status = follow(always, crashed, observed(always), fresh, fresh);
    assert.deepEqual([status?.restartCount, status?.lastState?.terminated?.exitCode], [3, 7]);
  });
});

describe("a pod that ends before its containers began", () => {
  const over = { terminating: true, finished: true };

  test("shows each as ended with an unknown code", () => {
    const status = derive(always, observed(always), over);
    assert.equal(status.phase, "Failed");
    assert.deepEqual(status.containerStatuses?.[0]?.state, {
      terminated: {
        reason: "ContainerStatusUnknown",
        exitCode: 137,
        message: "The container could not be located when the pod was terminated",
      },
    });
  });

  test("shows only its first init container so when that never began either", () => {
    const twoInits = pod().init("init").init("other").container("app").build();
    const status = derive(twoInits, observed(twoInits), over);
    assert.equal(status.initContainerStatuses?.[0]?.state?.terminated?.exitCode, 137);
    assert.equal(status.initContainerStatuses?.[1]?.state?.waiting?.reason, "PodInitializing");
    assert.equal(status.containerStatuses?.[0]?.state?.waiting?.reason, "PodInitializing");
  });

  test("shows its regular containers so once the last init container has completed", () => {
    const status = derive(withInit, observed(withInit, [sandbox()], [seen(init, ended)]), over);
    assert.equal(status.initContainerStatuses?.[0]?.state?.terminated?.exitCode, 0);
    assert.equal(status.containerStatuses?.[0]?.state?.terminated?.exitCode, 137);
  });

  test("shows them so once the sidecar that is its last init container had started", () => {
    const withSidecar = pod().init("init", { restartPolicy: "Always" }).container("app").build();
    const regularAfter = (previous: PodStatus | undefined): string | undefined => {
      const killed = observed(withSidecar, [sandbox()], [seen(init, { ...ended, exitCode: 137 })]);
      const status = derive(withSidecar, killed, { ...over, previous });
      return Object.keys(status.containerStatuses?.[0]?.state ?? {})[0];
    };
    const started = derive(withSidecar, observed(withSidecar, [sandbox()], [seen(init)]));
    assert.equal(started.initContainerStatuses?.[0]?.started, true);
    assert.equal(regularAfter(started), "terminated");
    assert.equal(regularAfter(undefined), "waiting");
  });
});

test("a pod in the host network has the host's IPs, also without a sandbox", () => {
  const host = pod().container("app").with({ hostNetwork: true }).build();
  const hostIps = ["192.0.2.1", "2001:db8::1"];
  const first = derive(host, observed(host), { hostIps });
  assert.deepEqual([first.podIP, first.podIPs], ["192.0.2.1", hostIps.map((ip) => ({ ip }))]);
  const before = derive(host, observed(host, [sandbox()]), { hostIps });
  assert.equal(derive(host, observed(host), { hostIps, previous: before }).podIP, "192.0.2.1");
});

describe("init containers that run again in a new sandbox", () => {
  const before = derive(withInit, observed(withInit, [sandbox()], [seen(app), seen(init, ended)]));
  const old = seen(app, { ...ended, exitCode: 255 });
  const rebooted = [sandbox({ attempt: 1 }), sandbox({ state: "notReady" })];
  const again = seen(init, { id: "init-again", sandboxId: "sandbox-1", attempt: 1 });

  test("make the pod Pending until they have completed, and keep how they ended before", () => {
    const status = derive(withInit, observed(withInit, rebooted, [again, old]), { previous: before });
    assert.equal(status.phase, "Pending");
    assert.equal(status.initContainerStatuses?.[0]?.restartCount, 1);
    assert.deepEqual(
      status.initContainerStatuses?.[0]?.lastState?.terminated,
      before.initContainerStatuses?.[0]?.state?.terminated,
    );
  });

  test("make it Running again once the regular containers do", () => {
    const fresh = seen(app, { id: "fresh", sandboxId: "sandbox-1", attempt: 1 });
    const what = observed(withInit, rebooted, [fresh, { ...again, ...ended }, old]);
    assert.equal(derive(withInit, what, { previous: before }).phase, "Running");
  });
});

describe("the pod's addresses", () => {
  const dual = observed(always, [sandbox({ ips: ["fd00::5", "10.0.0.5", "10.0.0.6"] })], [seen(app)]);
  const cases: [string, readonly string[], readonly string[]][] = [
    ["IPv4 first on a node whose first address is IPv4", ["192.0.2.1"], ["10.0.0.5", "fd00::5"]],
    ["IPv6 first on a node whose first address is IPv6", ["2001:db8::1", "192.0.2.1"], ["fd00::5", "10.0.0.5"]],
    ["IPv4 first as long as the node has no address", [], ["10.0.0.5", "fd00::5"]],
  ];
  for (const [name, hostIps, want] of cases) {
    test(name, () => {
      const { podIP, podIPs } = derive(always, dual, { hostIps });
      assert.deepEqual([podIP, podIPs?.map(({ ip }) => ip)], [want[0], want]);
    });
  }
});
