import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import { type ImageUsers, imageHolds, imagesOf } from "./image-holds.ts";

const ID = `sha256:${"a".repeat(64)}`;
const DIGEST = `sha256:${"d".repeat(64)}`;

function image(more: Partial<RuntimeImage> = {}): RuntimeImage {
  return { id: ID, tags: [], digests: [], sizeBytes: 1, username: "", pinned: false, ...more };
}

const NOBODY: ImageUsers = {
  containers: [],
  mounted: [],
  wanted: [],
  pulling: [],
  sandboxImage: undefined,
  isLocal: () => false,
};

function held(images: RuntimeImage, users: Partial<ImageUsers>, byHandler = false): string | undefined {
  return [...imageHolds([images], { ...NOBODY, ...users }, byHandler).values()][0]?.keep;
}

const container = { name: "app", image: "", imageRef: "", labels: {} };

describe("a pod names an image", () => {
  const busybox = image({
    tags: ["docker.io/library/busybox:1.36"],
    digests: [`docker.io/library/busybox@${DIGEST}`],
  });
  const local = image({
    tags: ["registry.test:5000/team/app:latest"],
    digests: [`registry.test:5000/team/app@${DIGEST}`],
  });
  const cases: readonly { named: string; of: RuntimeImage; holds: boolean }[] = [
    { named: "busybox:1.36", of: busybox, holds: true },
    { named: "library/busybox:1.36", of: busybox, holds: true },
    { named: "docker.io/busybox:1.36", of: busybox, holds: true },
    { named: "index.docker.io/library/busybox:1.36", of: busybox, holds: true },
    { named: "busybox", of: busybox, holds: false },
    { named: "busybox:1.37", of: busybox, holds: false },
    { named: `busybox@${DIGEST}`, of: busybox, holds: true },
    { named: `busybox:other@${DIGEST}`, of: busybox, holds: true },
    { named: "quay.io/library/busybox:1.36", of: busybox, holds: false },
    { named: "registry.test:5000/team/app", of: local, holds: true },
    { named: "registry.test:5000/team/app:latest", of: local, holds: true },
    // A runtime may be set up to search this registry for names without one.
    { named: "team/app", of: local, holds: true },
    { named: "registry.test/team/app", of: local, holds: false },
    { named: ID, of: local, holds: true },
    { named: ID.slice("sha256:".length), of: local, holds: true },
    { named: "Not An Image", of: local, holds: false },
  ];
  for (const { named, of, holds } of cases) {
    test(`${named} ${holds ? "holds" : "does not hold"} ${of.tags[0]}`, () => {
      const keep = held(of, { wanted: [{ reference: named, by: "default/web" }] });
      assert.equal(keep, holds ? "wanted" : undefined);
    });
  }
});

describe("a container uses an image", () => {
  const of = image({ tags: ["docker.io/library/app:2"], digests: [`docker.io/library/app@${DIGEST}`] });
  for (const [name, more] of Object.entries({
    "by its id": { imageId: ID },
    "by the id as its reference": { imageRef: ID },
    "by a digest": { imageRef: `docker.io/library/app@${DIGEST}` },
    "by the name that it was created with": { image: "app:2" },
  })) {
    test(name, () => assert.equal(held(of, { containers: [{ ...container, ...more }] }), "inUse"));
  }

  test("also after its tag has moved to another image", () => {
    const newer = image({ id: `sha256:${"b".repeat(64)}`, tags: ["docker.io/library/app:2"] });
    const older = image({});
    const users = { ...NOBODY, containers: [{ ...container, imageRef: ID }] };
    assert.deepEqual([...imageHolds([newer, older], users, false).keys()], [ID]);
  });

  test("by an image volume", () => {
    assert.equal(held(of, { mounted: [{ reference: ID, by: "default/web" }] }), "inUse");
  });

  test("of its own runtime handler only, where copies are told apart", () => {
    const users = { containers: [{ ...container, imageId: ID, imageHandler: "kata" }] };
    assert.equal(held(image({ runtimeHandler: "kata" }), users, true), "inUse");
    assert.equal(held(image({ runtimeHandler: "runc" }), users, true), undefined);
    assert.equal(held(image({ runtimeHandler: "runc" }), users, false), "inUse");
  });
});

test("an image stays while it is pulled, if it is pinned, if sandboxes need it, and if it is only here", () => {
  const of = image({ tags: ["docker.io/library/app:2"] });
  assert.equal(held(of, {}), undefined);
  assert.equal(held(of, { pulling: ["app:2"] }), "pulling");
  assert.equal(held({ ...of, pinned: true }, {}), "pinned");
  assert.equal(held(of, { sandboxImage: "docker.io/library/app:2" }), "sandbox");
  assert.equal(held(of, { isLocal: () => true }), "local");
  assert.equal(held(image({ tags: ["kubelet.local/demo:1"] }), {}), "local");
});

test("a pod names the images of its containers of all kinds and of its image volumes", () => {
  const of = pod("web")
    .init("first")
    .container("app")
    .with({
      ephemeralContainers: [{ name: "debug", image: "debug:1" }],
      volumes: [{ name: "data", image: { reference: "data:1" } }, { name: "scratch" }],
    })
    .build();
  assert.deepEqual(
    imagesOf(of).map(({ reference, by }) => `${by} ${reference}`),
    ["app:1", "first:1", "debug:1", "data:1"].map((reference) => `default/web ${reference}`),
  );
});
