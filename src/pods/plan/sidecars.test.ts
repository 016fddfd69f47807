import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Container } from "../../model/generated/types.ts";

const always: Partial<Container> = { restartPolicy: "Always" };
const withSidecars = pod("web").init("logger", always).init("setup").init("proxy", always).container("app");

async function running(ring: FakeRing): Promise<string[]> {
  return (await ring.containers()).filter(({ state }) => state === "running").map(({ name }) => name);
}

describe("sidecars", () => {
  test("start in their place among the init containers and go on running", async () => {
    const ring = new FakeRing({ setup: { exitAfterMs: 100 } });
    await ring.want(withSidecars.build());
    assert.deepEqual(await running(ring), ["logger", "setup"]);
    assert.equal(ring.status()?.phase, "Pending");
    await ring.clock.advance(100);
    assert.deepEqual(await running(ring), ["logger", "proxy", "app"]);
    assert.equal(ring.status()?.phase, "Running");
    const ready = ring.status()?.conditions?.find(({ type }) => type === "Ready");
    assert.equal(ready?.status, "True");
  });

  test("are restarted while the regular containers run, without touching them", async () => {
    const ring = new FakeRing({ setup: { exitAfterMs: 100 } });
    await ring.want(withSidecars.build());
    await ring.clock.advance(100);
    const before = await ring.containers();
    const logger = before.find(({ name }) => name === "logger");
    ring.runtime.exit(logger?.id ?? "", 1);
    await ring.clock.advance(0);
    const after = await ring.containers();
    assert.equal(after.find(({ name, state }) => name === "logger" && state === "running")?.attempt, 1);
    assert.equal(after.find(({ name }) => name === "app")?.id, before.find(({ name }) => name === "app")?.id);
    assert.equal(after.filter(({ name }) => name === "setup").length, 1);
  });

  test("are restarted also while later init containers still run", async () => {
    const ring = new FakeRing({ setup: { exitAfterMs: 5000 } });
    await ring.want(withSidecars.build());
    const logger = (await ring.containers()).find(({ name }) => name === "logger");
    ring.runtime.exit(logger?.id ?? "", 0);
    await ring.clock.advance(0);
    assert.deepEqual(await running(ring), ["setup", "logger"]);
  });

  test("do not keep a finished pod alive", async () => {
    const ring = new FakeRing({ app: { exitAfterMs: 100 } });
    await ring.want(pod("web").init("logger", always).container("app").restart("Never").build());
    await ring.clock.advance(100);
    assert.deepEqual(await running(ring), []);
    assert.equal(ring.status()?.phase, "Succeeded");
  });

  test("stop after the regular containers, from last to first", async () => {
    const ring = new FakeRing({
      setup: { exitAfterMs: 100 },
      app: { termMs: 3000 },
      proxy: { termMs: 1000 },
      logger: { termMs: 1000 },
    });
    await ring.want(withSidecars.build());
    await ring.clock.advance(100);
    ring.publish();
    await ring.clock.advance(2999);
    assert.deepEqual(await running(ring), ["logger", "proxy", "app"]);
    await ring.clock.advance(1);
    assert.deepEqual(await running(ring), ["logger", "proxy"]);
    await ring.clock.advance(1000);
    assert.deepEqual(await running(ring), ["logger"]);
    await ring.clock.advance(1000);
    assert.deepEqual(await ring.containers(), []);
  });

  test("whose turn does not come within the grace period get their signal at its end, and two seconds", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true }, logger: { ignoresTerm: true } });
    const grace = { terminationGracePeriodSeconds: 5 };
    await ring.want(pod("web").init("logger", always).container("app").with(grace).build());
    ring.publish();
    await ring.clock.advance(5000);
    assert.deepEqual(await running(ring), ["logger"]);
    await ring.clock.advance(2000);
    assert.deepEqual(await ring.containers(), []);
  });
});

describe("a restart policy of the container's own", () => {
  const cases = [
    { name: "Always in a Never pod restarts", spec: { restartPolicy: "Always" }, code: 0, want: 1 },
    { name: "Never in an Always pod does not", pod: "Always", spec: { restartPolicy: "Never" }, code: 1, want: 0 },
    { name: "OnFailure restarts a failure", spec: { restartPolicy: "OnFailure" }, code: 2, want: 1 },
    {
      name: "a rule that names the exit code restarts",
      spec: {
        restartPolicy: "Never",
        restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
      },
      code: 42,
      want: 1,
    },
    {
      name: "a rule that names another exit code does not",
      spec: {
        restartPolicy: "Never",
        restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
      },
      code: 41,
      want: 0,
    },
    {
      name: "a NotIn rule restarts on all others",
      spec: {
        restartPolicy: "Never",
        restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "NotIn", values: [42] } }],
      },
      code: 41,
      want: 1,
    },
  ] satisfies { name: string; pod?: "Always"; spec: Partial<Container>; code: number; want: number }[];
  for (const c of cases) {
    test(c.name, async () => {
      const ring = new FakeRing();
      const policy = "pod" in c ? "Always" : "Never";
      await ring.want(pod("web").container("app", c.spec).container("side").restart(policy).build());
      const app = (await ring.containers()).find(({ name }) => name === "app");
      ring.runtime.exit(app?.id ?? "", c.code);
      await ring.clock.advance(0);
      const status = ring.status()?.containerStatuses?.find(({ name }) => name === "app");
      assert.equal(status?.restartCount, c.want);
      assert.equal(ring.status()?.phase, "Running");
    });
  }
});
