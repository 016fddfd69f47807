import assert from "node:assert/strict";
import { test } from "node:test";
import type { VolumeHost } from "../../src/volumes/index.ts";

/** A machine to try volumes on. */
export interface VolumeHostHarness {
  readonly host: VolumeHost;
  /** An empty directory of its own. */
  readonly base: string;
  /** The texts that a container would read in a written volume, by path. */
  read(directory: string): Record<string, string>;
  /** Puts a file somewhere; its directory exists. */
  put(path: string): Promise<void>;
  exists(path: string): boolean;
  close(): Promise<void>;
}

const never = { signal: new AbortController().signal };

/** What kinds of volumes rely on: run against the machine in memory and against Linux. */
export function volumeHostContract(name: string, open: () => Promise<VolumeHostHarness>): void {
  const rule = (what: string, work: (harness: VolumeHostHarness) => Promise<void>): void => {
    test(`${name}: ${what}`, async () => {
      const harness = await open();
      try {
        await work(harness);
      } finally {
        await harness.close();
      }
    });
  };
  const files = (contents: Record<string, string>): Map<string, { bytes: Uint8Array; mode: number }> =>
    new Map(Object.entries(contents).map(([path, text]) => [path, { bytes: Buffer.from(text), mode: 0o644 }]));

  rule(
    "a tmpfs is a mount point until it is unmounted, and its content goes with it",
    async ({ host, base, put, exists }) => {
      const path = `${base}/a/b`;
      await host.makeDir(path, 0o777);
      assert.equal(await host.isMountPoint(path), false);
      await host.mountTmpfs(path, { mode: 0o777, sizeBytes: 1 << 20 });
      await put(`${path}/file`);
      assert.equal(await host.isMountPoint(path), true);
      assert.deepEqual(await host.mountsBelow(base), [path]);
      assert.deepEqual(await host.mountsBelow(`${base}/a`), [path]);
      assert.deepEqual(await host.mountsBelow(`${base}/other`), []);
      await host.unmount(path);
      assert.equal(await host.isMountPoint(path), false);
      assert.equal(exists(path), true);
      await host.unmount(path);
    },
  );

  rule("what is mounted by a command is known by the kernel's table, and so is where else it is", async (harness) => {
    const { host, base, put, exists } = harness;
    const [stage, one, two] = [`${base}/stage`, `${base}/pods/one`, `${base}/pods/two`];
    for (const path of [stage, one, two]) await host.makeDir(path, 0o755);
    assert.equal(await host.mountAt(stage), undefined);
    await host.mountByCommand({ source: "kubelet-test", target: stage, type: "tmpfs", options: ["size=1m"] }, never);
    await put(`${stage}/file`);
    const { source, type } = (await host.mountAt(stage)) ?? {};
    assert.deepEqual([source, type], ["kubelet-test", "tmpfs"]);
    assert.deepEqual(await host.otherMounts(stage), []);
    await host.bindByCommand({ source: stage, target: one, options: [] }, never);
    await host.bindByCommand({ source: stage, target: two, options: ["ro"] }, never);
    assert.equal((await host.mountAt(two))?.options.includes("ro"), true);
    assert.equal((await host.mountAt(one))?.options.includes("ro"), false);
    assert.deepEqual([...(await host.otherMounts(stage))].sort(), [one, two]);
    for (const path of [one, two, stage]) await host.unmountByCommand(path, never);
    await host.unmountByCommand(stage, { ...never, mayForce: true });
    assert.deepEqual([await host.mountAt(stage), exists(stage)], [undefined, true]);
  });

  rule("a link is replaced, read and removed", async ({ host, base }) => {
    const path = `${base}/d/link`;
    assert.equal(await host.readLink(path), undefined);
    await host.symlink("/dev/one", path);
    await host.symlink("/dev/two", path);
    assert.equal(await host.readLink(path), "/dev/two");
    await host.removeFile(path);
    assert.equal(await host.readLink(path), undefined);
  });

  rule("nothing is removed while something is mounted at or below it", async ({ host, base, exists }) => {
    const path = `${base}/v`;
    await host.makeDir(path, 0o777);
    await host.makeDir(`${base}/data`, 0o755);
    await host.makeDir(`${path}/bound`, 0o755);
    await host.bindMount(`${base}/data`, `${path}/bound`);
    await assert.rejects(host.removeTree(path));
    await assert.rejects(host.removeTree(`${path}/bound`));
    assert.equal(exists(`${base}/data`), true);
    await host.unmount(`${path}/bound`);
    await host.removeTree(path);
    assert.equal(exists(path), false);
    assert.equal(exists(`${base}/data`), true);
    await host.removeTree(path);
  });

  rule(
    "only an empty directory is removed as one; one that is gone is success",
    async ({ host, base, exists, put }) => {
      await host.makeDir(`${base}/d`, 0o755);
      await put(`${base}/d/file`);
      await assert.rejects(host.removeDir(`${base}/d`));
      await host.removeTree(`${base}/d/file`);
      await host.removeDir(`${base}/d`);
      assert.equal(exists(`${base}/d`), false);
      await host.removeDir(`${base}/d`);
    },
  );

  rule("a tree of directories is removed as long as nothing but directories is in it", async (harness) => {
    const { host, base, exists, put } = harness;
    await host.makeDir(`${base}/d/one/two`, 0o755);
    await host.makeDir(`${base}/d/three`, 0o755);
    await put(`${base}/d/one/two/file`);
    await assert.rejects(host.removeEmptyTree(`${base}/d`), /not a directory/);
    assert.equal(exists(`${base}/d/one/two/file`), true);
    await host.removeFile(`${base}/d/one/two/file`);
    await host.makeDir(`${base}/d/one/two`, 0o755);
    await host.mountTmpfs(`${base}/d/one/two`, { mode: 0o755 });
    await assert.rejects(host.removeEmptyTree(`${base}/d`), /mounted/);
    await host.unmount(`${base}/d/one/two`);
    await host.removeEmptyTree(`${base}/d`);
    assert.equal(exists(`${base}/d`), false);
    await host.removeEmptyTree(`${base}/d`);
  });

  rule("names in a directory; none where there is no directory", async ({ host, base }) => {
    await host.makeDir(`${base}/d/one`, 0o755);
    await host.makeDir(`${base}/d/two`, 0o755);
    assert.deepEqual([...(await host.list(`${base}/d`))].sort(), ["one", "two"]);
    assert.deepEqual(await host.list(`${base}/gone`), []);
  });

  rule("a small file is replaced as a whole, read and removed", async ({ host, base, exists }) => {
    const path = `${base}/vol_data.json`;
    assert.equal(await host.readFile(path), undefined);
    await host.replaceFile(path, "one");
    await host.replaceFile(path, "two");
    assert.equal(await host.readFile(path), "two");
    assert.deepEqual(await host.list(base), ["vol_data.json"]);
    await host.removeFile(path);
    assert.equal(exists(path), false);
    await host.removeFile(path);
  });

  rule("a write replaces all of a volume, and tells whether anything changed", async ({ host, base, read }) => {
    const path = `${base}/v`;
    await host.makeDir(path, 0o777);
    const write = (contents: Record<string, string>): Promise<boolean> =>
      host.writeFiles(path, { files: files(contents), stamp: "2026_01_01_00_00_00" });
    assert.equal(await write({ a: "1", "d/b": "2" }), true);
    assert.deepEqual(read(path), { a: "1", "d/b": "2" });
    assert.equal(await write({ a: "1", "d/b": "2" }), false);
    assert.equal(await write({ a: "3" }), true);
    assert.deepEqual(read(path), { a: "3" });
    assert.equal(await write({}), true);
    assert.deepEqual(read(path), {});
  });

  rule("a part of a volume is mounted where it was asked for, once", async ({ host, base }) => {
    await host.makeDir(`${base}/v`, 0o777);
    const request = { root: `${base}/v`, subPath: "made/here", target: `${base}/subpaths/v/c/0` };
    await host.bindSubPath(request);
    await host.bindSubPath(request);
    assert.deepEqual(await host.mountsBelow(`${base}/subpaths`), [request.target]);
    await host.unmount(request.target);
    assert.deepEqual(await host.mountsBelow(`${base}/subpaths`), []);
  });

  rule("what is at a path, or that nothing is", async ({ host, base, put }) => {
    await host.makeDir(`${base}/d`, 0o755);
    await put(`${base}/d/file`);
    assert.equal(await host.kindOf(`${base}/d`, never), "directory");
    assert.equal(await host.kindOf(`${base}/d/file`, never), "file");
    assert.equal(await host.kindOf(`${base}/gone`, never), undefined);
  });
}
