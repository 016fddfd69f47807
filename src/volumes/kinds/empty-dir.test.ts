import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { POD_DIR, VolumeScene } from "../../../test/support/volumes.ts";
import type { Container, Pod, Volume } from "../../model/generated/types.ts";

const EMPTY_DIRS = `${POD_DIR}/volumes/kubernetes.io~empty-dir`;
const disk: Volume = { name: "disk", emptyDir: {} };
const memory: Volume = { name: "fast", emptyDir: { medium: "Memory" } };

describe("emptyDir", () => {
  test("is a directory of its own that everybody in the pod may write to, below one that is closed to others", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    assert.deepEqual(
      [...scene.machine.modes],
      [
        [POD_DIR, 0o750],
        [`${EMPTY_DIRS}/disk`, 0o777],
      ],
    );
    assert.deepEqual(scene.volumes.source(scene.web, "disk"), {
      kind: "path",
      path: `${EMPTY_DIRS}/disk`,
      readonly: false,
    });
    assert.equal(scene.machine.mounts.size, 0);
  });

  const counting: { name: string; volume: Volume; hostUsers?: boolean; want: readonly string[] }[] = [
    { name: "of a pod with users of its own is counted", volume: disk, hostUsers: false, want: [`${EMPTY_DIRS}/disk`] },
    { name: "of a pod with the node's users is not: they could take files out", volume: disk, want: [] },
    { name: "of a pod that says so is not either", volume: disk, hostUsers: true, want: [] },
    { name: "of memory is not: it is a filesystem of its own", volume: memory, hostUsers: false, want: [] },
  ];
  for (const { name, volume, hostUsers, want } of counting) {
    test(`${name}, until it is removed`, async () => {
      const scene = new VolumeScene([volume]);
      const own = hostUsers === undefined ? {} : { hostUsers };
      await scene.prepare(
        pod()
          .container("app")
          .with({ volumes: [volume], ...own })
          .build(),
      );
      assert.deepEqual([...scene.machine.counted], want);
      await scene.volumes.teardown("uid-of-web", scene.never);
      assert.deepEqual([...scene.machine.counted], []);
    });
  }

  test("of memory is mounted once, however often it is prepared, also by the next agent", async () => {
    const scene = new VolumeScene([memory]);
    await scene.prepare();
    await scene.prepare();
    scene.volumes = scene.newAgent();
    await scene.prepare();
    assert.deepEqual([...scene.machine.mounts.keys()], [`${EMPTY_DIRS}/fast`]);
    assert.equal(scene.machine.modes.get(`${EMPTY_DIRS}/fast`), 0o1777);
  });

  test("of memory that a reboot or somebody unmounted is mounted again", async () => {
    const scene = new VolumeScene([memory]);
    await scene.prepare();
    scene.machine.mounts.clear();
    await scene.prepare();
    assert.equal(scene.machine.mounts.size, 1);
  });

  const limited = { resources: { limits: { memory: "64Mi" } } };
  const sizes: { name: string; sizeLimit?: string; pod: (volume: Volume) => Pod; want: number }[] = [
    {
      name: "no limit at all is the memory of the node",
      pod: (volume) =>
        pod()
          .container("app")
          .with({ volumes: [volume] })
          .build(),
      want: 8 * 2 ** 30,
    },
    {
      name: "its own limit is the size, rounded up to bytes",
      sizeLimit: "1500m",
      pod: (volume) =>
        pod()
          .container("app")
          .with({ volumes: [volume] })
          .build(),
      want: 2,
    },
    {
      name: "a limit of 0 is none",
      sizeLimit: "0",
      pod: (volume) =>
        pod()
          .container("app")
          .with({ volumes: [volume] })
          .build(),
      want: 8 * 2 ** 30,
    },
    {
      name: "the pod's memory limit bounds it, being the memory that it comes from",
      sizeLimit: "1Gi",
      pod: (volume) =>
        pod()
          .container("a", limited)
          .container("b", limited)
          .with({ volumes: [volume] })
          .build(),
      want: 128 * 2 ** 20,
    },
    {
      name: "a smaller limit of its own stays",
      sizeLimit: "1Mi",
      pod: (volume) =>
        pod()
          .container("a", limited)
          .with({ volumes: [volume] })
          .build(),
      want: 2 ** 20,
    },
    {
      name: "a pod with one unlimited container has no memory limit",
      pod: (volume) =>
        pod()
          .container("a", limited)
          .container("b")
          .with({ volumes: [volume] })
          .build(),
      want: 8 * 2 ** 30,
    },
  ];
  for (const { name, sizeLimit, pod: build, want } of sizes) {
    test(`of memory: ${name}`, async () => {
      const scene = new VolumeScene();
      const volume = { name: "fast", emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } };
      await scene.prepare(build(volume));
      assert.deepEqual([...scene.machine.mounts.values()], [{ type: "tmpfs", size: want }]);
    });
  }

  const asking = (...pages: string[]): Partial<Container> => ({
    resources: { limits: Object.fromEntries(pages.map((page) => [`hugepages-${page}`, "4Mi"])) },
  });
  const pages: [string, string, Partial<Container>, number | RegExp][] = [
    ["the size in its name, which a container asks for", "HugePages-1Gi", asking("2Mi", "1Gi"), 2 ** 30],
    ["the size in its name, which nobody asks for", "HugePages-1Gi", asking("2Mi"), /request no huge pages of 1Gi/],
    ["of 32Mi", "HugePages-32Mi", asking("32Mi"), 2 ** 25],
    ["the size that the containers ask for", "HugePages", asking("2Mi"), 2 ** 21],
    ["no size at all", "HugePages", {}, /request no huge pages/],
    ["two sizes", "HugePages", asking("2Mi", "1Gi"), /request several huge page sizes/],
    ["a size that is none", "HugePages-big", {}, /"HugePages-big" does not name a huge page size/],
  ];
  for (const [name, medium, container, want] of pages) {
    test(`of huge pages: ${name}`, async () => {
      const scene = new VolumeScene();
      const volumes = [{ name: "huge", emptyDir: { medium } }];
      const web = pod().container("app", container).with({ volumes }).build();
      if (want instanceof RegExp) return assert.match(await scene.refusal(web), want);
      await scene.prepare(web);
      assert.deepEqual([...scene.machine.mounts.values()], [{ type: "hugetlbfs", size: want }]);
    });
  }

  test("is removed with its content, unmounted first", async () => {
    const scene = new VolumeScene([disk, memory]);
    await scene.prepare();
    scene.machine.done.length = 0;
    await scene.volumes.teardown("uid-of-web", scene.never);
    const of = (name: string): readonly string[] => scene.machine.done.filter((step) => step.endsWith(`/${name}`));
    assert.deepEqual(of("disk"), [`remove ${EMPTY_DIRS}/disk`]);
    assert.deepEqual(of("fast"), [`unmount ${EMPTY_DIRS}/fast`, `remove ${EMPTY_DIRS}/fast`]);
  });
});
