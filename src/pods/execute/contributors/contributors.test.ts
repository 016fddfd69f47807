import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeAllocator } from "../../../../test/support/allocator.ts";
import { pod } from "../../../../test/support/pods.ts";
import { FakeRing } from "../../../../test/support/ring.ts";
import type { ContainerConfig } from "../../../adapters/runtime/port.ts";
import type { ContainerContributor, Contribution } from "./contributor.ts";

/** What containers get of the cards that the allocator gave to their pods. */
function cards(allocator: FakeAllocator): ContainerContributor {
  return {
    name: "cards",
    contribute({ pod: of }): Contribution {
      const card = allocator.given.get(of.metadata.uid ?? "");
      if (card === undefined) return {};
      return {
        env: [{ name: "CARD", value: card }],
        mounts: [{ containerPath: "/card", hostPath: `/cards/${card}`, readonly: true, propagation: "private" }],
        devices: [{ containerPath: "/dev/card", hostPath: `/dev/${card}`, permissions: "rw" }],
        cdiDevices: [`example.com/card=${card}`],
        annotations: { "example.com/card": card },
        resources: { cpusetCpus: "1" },
      };
    },
  };
}

async function machine(): Promise<{ ring: FakeRing; newest: () => ContainerConfig | undefined }> {
  const ring = new FakeRing();
  ring.allocators = () => {
    const allocator = new FakeAllocator(["card-0", "card-1"]);
    ring.contributors = [cards(allocator)];
    return [allocator];
  };
  await ring.restartAgent();
  const newest = (): ContainerConfig | undefined => {
    const { id = "" } = ring.runtime.peek().containers.at(-1) ?? {};
    return ring.runtime.configOf(id);
  };
  return { ring, newest };
}

describe("what a contributor adds", () => {
  const web = pod("web").container("app").build();

  test("is in the created container, beside everything else", async () => {
    const { ring, newest } = await machine();
    await ring.want(web);
    const made = newest();
    assert.deepEqual(made?.envs, [{ name: "CARD", value: "card-0" }]);
    assert.deepEqual(
      made?.mounts.map(({ containerPath }) => containerPath),
      ["/card", "/etc/hosts"],
    );
    assert.deepEqual(made?.devices, [{ containerPath: "/dev/card", hostPath: "/dev/card-0", permissions: "rw" }]);
    assert.deepEqual(made?.cdiDevices, ["example.com/card=card-0"]);
    assert.equal(made?.annotations["example.com/card"], "card-0");
    assert.equal(made?.linux.resources.cpusetCpus, "1");
    assert.ok((made?.linux.resources.cpuShares ?? 0) > 0);
  });

  test("is the same in the next instance of a container after kill -9 of the agent", async () => {
    const { ring, newest } = await machine();
    const other = pod("other").container("app").build();
    await ring.want(other, web);
    const before = newest()?.cdiDevices;
    await ring.restartAgent();
    await ring.want(web);
    await ring.clock.advance(60_000);
    await ring.want({ ...web, spec: { ...web.spec, containers: [{ name: "app", image: "app:2" }] } });
    await ring.clock.advance(60_000);
    assert.equal(newest()?.image.userSpecified, "app:2");
    assert.deepEqual(newest()?.cdiDevices, before);
  });

  test("is seen by the command, and the author's own variable wins", async () => {
    const { ring, newest } = await machine();
    await ring.want(
      pod("web")
        .container("app", { command: ["run", "$(CARD)"] })
        .build(),
    );
    assert.deepEqual(newest()?.command, ["run", "card-0"]);
    const env = [{ name: "CARD", value: "mine" }];
    await ring.want(
      pod("own")
        .container("app", { env, command: ["run", "$(CARD)"] })
        .build(),
    );
    assert.deepEqual([newest()?.envs, newest()?.command], [env, ["run", "mine"]]);
  });

  test("gives way to a volume that the author mounts at the same path, as in Kubernetes", async () => {
    const { ring, newest } = await machine();
    const volumeMounts = [{ name: "data", mountPath: "/card" }];
    const volumes = [{ name: "data", emptyDir: {} }];
    await ring.want(pod("web").container("app", { volumeMounts }).with({ volumes }).build());
    assert.equal(ring.status()?.phase, "Running");
    const mounts = newest()?.mounts.filter(({ containerPath }) => containerPath === "/card");
    assert.deepEqual(
      mounts?.map(({ hostPath }) => hostPath),
      ["/volumes/data"],
    );
  });
});

describe("the files that the agent writes for a container", () => {
  const data = { volumes: [{ name: "data", emptyDir: {} }] };

  test("give way to volumes that the container mounts there itself", async () => {
    const { ring, newest } = await machine();
    const volumeMounts = ["/etc/hosts", "/dev/termination-log"].map((mountPath) => ({ name: "data", mountPath }));
    const own = { volumeMounts, terminationMessagePath: "/dev/termination-log" };
    await ring.want(pod("web").container("app", own).with(data).build());
    const paths = newest()?.mounts.map(({ containerPath, hostPath }) => `${containerPath} ${hostPath}`);
    assert.deepEqual(paths?.slice(1), ["/etc/hosts /volumes/data", "/dev/termination-log /volumes/data"]);
  });
});
