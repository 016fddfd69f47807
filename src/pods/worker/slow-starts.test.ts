import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";

/** A ring whose pods with a card wait half a minute for its plugin before each start of a container. */
async function withSlowPlugin(): Promise<{ ring: FakeRing; asked: () => number }> {
  const ring = new FakeRing();
  ring.node = { ...ring.node, allocatable: { ...ring.node.allocatable, pods: "200" } };
  let asked = 0;
  const slow = async (name: string | undefined, interrupt: AbortSignal): Promise<Record<string, never>> => {
    if (name?.startsWith("card") !== true) return {};
    asked++;
    await ring.clock.sleep(30_000, { signal: interrupt });
    return {};
  };
  ring.contributors = [{ name: "devices", contribute: ({ pod: of, interrupt }) => slow(of.metadata.name, interrupt) }];
  await ring.restartAgent();
  return { ring, asked: () => asked };
}

test("pods that wait for a device plugin delay the start of no other pod", async () => {
  const { ring } = await withSlowPlugin();
  const cards = Array.from({ length: 40 }, (_, at) => pod(`card-${at}`).container("app").build());
  await ring.want(...cards);
  await ring.clock.advance(10_000);
  await ring.want(...cards, pod("web").container("app").build());
  await ring.clock.advance(1000);
  assert.equal(ring.status("web")?.phase, "Running");
  assert.equal(ring.status("card-39")?.phase, "Pending");
  await ring.clock.advance(30_000);
  assert.equal(ring.status("card-39")?.phase, "Running");
});

test("pods whose device plugin has answered are started in turn, as others", async () => {
  const { ring } = await withSlowPlugin();
  const create = ring.runtime.createContainer.bind(ring.runtime);
  let [active, most] = [0, 0];
  ring.runtime.createContainer = async (request, options) => {
    active++;
    most = Math.max(most, active);
    // Longer than the second after which the next pods could begin to wait for their plugins.
    await ring.clock.sleep(5000, options);
    return create(request, options).finally(() => active--);
  };
  await ring.want(...Array.from({ length: 40 }, (_, at) => pod(`card-${at}`).container("app").build()));
  await ring.clock.advance(120_000);
  assert.equal((await ring.containers()).filter(({ state }) => state === "running").length, 40);
  assert.equal(most, 8);
});

test("a pod that is deleted while it waits for a device plugin ends at once, and no failure is reported", async () => {
  const { ring, asked } = await withSlowPlugin();
  await ring.want(pod("card").container("app").build());
  await ring.clock.advance(10_000);
  assert.equal(asked(), 1);
  await ring.want();
  await ring.clock.advance(1000);
  assert.deepEqual(await ring.containers(), []);
  const warnings = ring.journal.events(0).filter(({ type }) => type === "Warning");
  assert.deepEqual(
    warnings.map(({ message }) => message),
    [],
  );
});
