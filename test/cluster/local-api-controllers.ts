/** The controllers of the local API and kube-controller-manager, on the same objects: what they make of them is the same. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ROLLOUT_FILES, STAGES } from "../contract/rollout-script.ts";
import { until } from "../integration/support/until.ts";
import { skipWithoutControlPlane } from "../support/control-plane.ts";
import { FakeKubelet } from "../support/fake-kubelet.ts";
import { ComparableObjects, differences, unsettled } from "../support/same-objects.ts";
import { normalOutput, type Place, TwoServers } from "../support/two-servers.ts";

skipWithoutControlPlane();

/** Of what the kubelet writes, on both sides. */
const MANAGER = "kubelet-ts-test";
/** Ends a comparison that does not come out equal. */
const SETTLE_LIMIT_MS = 60_000;

/** A server with its node. */
interface Side {
  readonly place: Place;
  readonly kubelet: FakeKubelet;
  readonly objects: ComparableObjects;
}

describe("controllers do the same as kube-controller-manager", () => {
  let servers: TwoServers;
  let real: Side;
  let own: Side;

  before(async () => {
    const started = await TwoServers.start({ files: ROLLOUT_FILES, withControllers: true });
    servers = started.servers;
    const sideOf = async (place: Place): Promise<Side> => {
      const kubelet = new FakeKubelet(place.api(MANAGER));
      await kubelet.start();
      await servers.run(place, { line: "create namespace work" });
      await until("the account of the namespace", async () => {
        const { code } = await servers.run(place, { line: "get -n work serviceaccount default" });
        return code === 0;
      });
      return { place, kubelet, objects: new ComparableObjects(place.api("reader")) };
    };
    [real, own] = await Promise.all([sideOf(started.real), sideOf(started.own)]);
  });
  after(async () => {
    await Promise.all([real?.kubelet.close(), own?.kubelet.close()]);
    await servers?.close();
    assert.deepEqual(servers?.bugs, []);
  });

  for (const { name, commands } of STAGES) {
    test(name, async () => {
      for (const command of commands) {
        const [expected, found] = await Promise.all([real, own].map(({ place }) => servers.run(place, command)));
        assert.ok(expected && found);
        if (command.waits === true) {
          for (const { code, stderr } of [expected, found]) assert.equal(code, 0, `kubectl ${command.line}: ${stderr}`);
        }
        await same();
        if (command.waits === true) continue;
        const texts = [own, real].map(({ place, objects }, index) =>
          objects.text(normalOutput(place, index === 0 ? found : expected)),
        );
        assert.equal(texts[0], texts[1], `kubectl ${command.line}`);
      }
      await same();
    });
  }

  /** Waits until the objects of both are the same; shows what differs if they do not become so. */
  async function same(): Promise<void> {
    let left: string[] = [];
    const look = async (): Promise<boolean> => {
      const [expected, found] = await Promise.all([real, own].map(({ objects }) => objects.read("work")));
      left = [...differences(found, expected), ...unsettled(expected ?? {}), ...unsettled(found ?? {})];
      return left.length === 0;
    };
    await until("the same objects", look, { limitMs: SETTLE_LIMIT_MS, seen: () => left.join("\n") });
  }
});
