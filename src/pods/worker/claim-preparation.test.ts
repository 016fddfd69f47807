import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { ResourceStatus } from "../../model/generated/types.ts";

const web = pod("web")
  .container("app", { resources: { claims: [{ name: "gpu" }] } })
  .with({ resourceClaims: [{ name: "gpu", resourceClaimName: "one" }] })
  .build();
const plain = pod("plain").container("app").build();

/** A ring whose claims are prepared and unprepared as a test says. */
class ClaimRing extends FakeRing {
  readonly calls: string[] = [];
  prepareFails: string | undefined;
  unprepareFails: string | undefined;
  isHeld = false;
  health: readonly ResourceStatus[] = [];

  async begin(): Promise<void> {
    this.claims = {
      prepare: ({ metadata }, { signal }) => {
        this.calls.push(`prepare ${metadata.name} ${this.count("runSandbox")} sandboxes`);
        if (this.isHeld) {
          return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
        }
        return this.prepareFails === undefined ? Promise.resolve() : Promise.reject(new Error(this.prepareFails));
      },
      holds: (uid) => this.calls.some((call) => call.startsWith("prepare")) && !this.isReleased(uid),
      unprepare: (uid) => {
        const running = this.runtime.peek().containers.filter(({ state }) => state === "running").length;
        this.calls.push(`unprepare ${uid} ${running} running ${this.status()?.phase}`);
        return this.unprepareFails === undefined ? Promise.resolve() : Promise.reject(new Error(this.unprepareFails));
      },
      healthOf: () => this.health,
    };
    await this.restartAgent();
  }

  private isReleased(uid: string): boolean {
    return this.unprepareFails === undefined && this.calls.some((call) => call.startsWith(`unprepare ${uid}`));
  }

  count(method: string): number {
    return this.runtime.control.calls.filter((call) => call.method === method).length;
  }
}

describe("claims and the ring", () => {
  test("are prepared before the sandbox, and unprepared after the containers and before the phase is terminal", async () => {
    const ring = new ClaimRing();
    await ring.begin();
    await ring.want(web);
    assert.deepEqual(ring.calls, ["prepare web 0 sandboxes"]);
    assert.equal(ring.status()?.phase, "Running");
    await ring.want();
    await ring.clock.advance(60_000);
    assert.deepEqual(ring.calls.slice(1), ["unprepare uid-of-web 0 running Running"]);
  });

  test("a failure is an event and a step, no sandbox is created, and it is tried again", async () => {
    const ring = new ClaimRing();
    await ring.begin();
    ring.prepareFails = "prepare dynamic resources: DRA driver x is not registered";
    await ring.want(web);
    assert.equal(ring.count("runSandbox"), 0);
    const event = ring.journal.events(0).find(({ reason }) => reason === "FailedPrepareDynamicResources");
    const why = "prepare dynamic resources: DRA driver x is not registered";
    assert.equal(event?.message, `Failed to prepare dynamic resources: ${why}`);
    ring.prepareFails = undefined;
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Running");
  });

  test("a deleted pod does not wait for its driver, and other pods start meanwhile", async () => {
    const ring = new ClaimRing();
    await ring.begin();
    ring.isHeld = true;
    await ring.want(web, plain);
    assert.equal(ring.status("plain")?.phase, "Running");
    await ring.want(plain);
    await ring.clock.advance(1000);
    assert.match(ring.calls.at(-1) ?? "", /^unprepare uid-of-web/);
  });

  test("a pod whose claims cannot be unprepared is not terminal before they are", async () => {
    const ring = new ClaimRing({ app: { exitAfterMs: 1000, exitCode: 0 } });
    await ring.begin();
    ring.unprepareFails = "driver is away";
    await ring.want({ ...web, spec: { ...web.spec, restartPolicy: "Never" } });
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Running");
    ring.unprepareFails = undefined;
    await ring.clock.advance(60_000);
    assert.equal(ring.status()?.phase, "Succeeded");
  });

  test("the health of devices is in the container's status", async () => {
    const ring = new ClaimRing();
    await ring.begin();
    ring.health = [{ name: "claim:gpu", resources: [{ resourceID: "example.com/gpu=0", health: "Healthy" }] }];
    await ring.want(web);
    assert.deepEqual(ring.status()?.containerStatuses?.[0]?.allocatedResourcesStatus, ring.health);
    ring.health = [{ name: "claim:gpu", resources: [{ resourceID: "example.com/gpu=0", health: "Unhealthy" }] }];
    ring.pool.wake("uid-of-web");
    await ring.clock.advance(0);
    assert.deepEqual(ring.status()?.containerStatuses?.[0]?.allocatedResourcesStatus, ring.health);
  });
});
