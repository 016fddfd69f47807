import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Container, Pod } from "../../model/generated/types.ts";

const web = (more: Partial<Container> = {}): Pod => pod("web").container("app", more).build();
const sized = (cpu: string): Pod => web({ resources: { requests: { cpu }, limits: { cpu } } });

/** A ring whose container has crashed three times: the next restart waits 20 s after the last crash. */
async function crashing(of: Pod): Promise<FakeRing> {
  const ring = new FakeRing({ app: { exitAfterMs: 100, exitCode: 1 } });
  await ring.want(of);
  await ring.clock.advance(200);
  await ring.clock.advance(10_100);
  assert.equal(await attempt(ring), 2);
  assert.equal(message(ring), "back-off 20s restarting failed container=app pod=web_default(uid-of-web)");
  return ring;
}

async function attempt(ring: FakeRing): Promise<number | undefined> {
  return (await ring.containers()).at(-1)?.attempt;
}

function message(ring: FakeRing): string | undefined {
  return ring.status()?.containerStatuses?.[0]?.state?.waiting?.message;
}

/** The container crashes once more: how long is the wait after it? */
async function waitAfterNextCrash(ring: FakeRing): Promise<string | undefined> {
  await ring.clock.advance(100);
  return message(ring)?.split(" ")[1];
}

describe("the crash back-off begins anew", () => {
  test("with another image", async () => {
    const ring = await crashing(web());
    await ring.want(web({ image: "app:2" }));
    assert.equal(await attempt(ring), 3);
    assert.equal(await waitAfterNextCrash(ring), "10s");
  });

  test("with other resources, and their container starts at once", async () => {
    const ring = await crashing(sized("100m"));
    await ring.want(sized("200m"));
    assert.equal(await attempt(ring), 3);
    assert.equal(await waitAfterNextCrash(ring), "10s");
  });

  test("with another image that came while no agent ran", async () => {
    const ring = await crashing(web());
    await ring.restartAgent();
    await ring.want(web({ image: "app:2" }));
    assert.equal(await attempt(ring), 3);
    assert.equal(await waitAfterNextCrash(ring), "10s");
  });

  test("not with resources that the node has no room for", async () => {
    const ring = await crashing(sized("100m"));
    await ring.want(sized("3"));
    assert.equal(await attempt(ring), 2);
    await ring.clock.advance(20_000);
    assert.equal(await attempt(ring), 3);
    assert.equal(await waitAfterNextCrash(ring), "40s");
  });

  test("not with other labels", async () => {
    const ring = await crashing(web());
    await ring.want({ ...web(), metadata: { ...web().metadata, labels: { version: "2" } } });
    assert.equal(await attempt(ring), 2);
    await ring.clock.advance(20_000);
    assert.equal(await waitAfterNextCrash(ring), "40s");
  });
});
