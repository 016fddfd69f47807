import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { VolumeMachine } from "../../test/support/volume-machine.ts";
import { TimeLimitError } from "../lib/abort.ts";
import { silent } from "../lib/log.ts";
import { releaseHung } from "./release-hung.ts";

const POD = "/root/pods/uid";
const MOUNT = `${POD}/volumes/kubernetes.io~nfs/net`;
const OTHER = "/root/pods/other/volumes/kubernetes.io~nfs/net";
const { signal } = new AbortController();

/** A machine with one mount of a pod, whose server answers as told. */
function machine(type: string, answer: Error | "directory"): VolumeMachine {
  const host = new VolumeMachine();
  host.mounts.set(MOUNT, { type, source: "server:/export" });
  host.kindOf = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
  return host;
}

describe("processes that hang on a volume", () => {
  const late = new TimeLimitError(10_000);
  const cases = [
    { name: "of a server that does not answer are freed", type: "nfs4", answer: late, want: [MOUNT] },
    { name: "of a daemon that does not answer are freed", type: "fuse.sshfs", answer: late, want: [MOUNT] },
    { name: "of a server that answers are left", type: "nfs4", answer: "directory", want: [] },
    { name: "of a server that refuses are left", type: "nfs4", answer: new Error("Stale file handle"), want: [] },
    { name: "of a disk are left", type: "ext4", answer: late, want: [] },
  ] as const;
  for (const { name, type, answer, want } of cases) {
    test(name, async () => {
      const host = machine(type, answer);
      assert.deepEqual(await releaseHung({ host, log: silent }, POD, { signal }), want);
      assert.deepEqual(
        host.done.filter((one) => one.startsWith("force")),
        want.map((path) => `force ${path}`),
      );
    });
  }

  test("that another pod has mounted too are left: it may wait for the server to come back", async () => {
    const host = machine("nfs4", late);
    host.otherMounts = () => Promise.resolve([OTHER]);
    assert.deepEqual(await releaseHung({ host, log: silent }, POD, { signal }), []);
  });

  test("of which the pod has parts mounted are freed", async () => {
    const host = machine("nfs4", late);
    const part = `${POD}/volume-subpaths/net/main/0`;
    host.mounts.set(part, { type: "nfs4", source: "server:/export" });
    host.otherMounts = (path) => Promise.resolve([MOUNT, part].filter((one) => one !== path));
    assert.deepEqual([...(await releaseHung({ host, log: silent }, POD, { signal }))].sort(), [part, MOUNT].sort());
  });

  test("of which the pod has parts mounted are freed also below a linked directory", async () => {
    const host = machine("nfs4", late);
    const own = ["/real/pods/uid/volumes/net", "/real/pods/uid/volume-subpaths/net/main/0"];
    host.mountsBelow = () => Promise.resolve(own);
    host.mountAt = () => Promise.resolve({ type: "nfs4", source: "server:/export", options: [], superOptions: [] });
    host.otherMounts = (path) => Promise.resolve(own.filter((one) => one !== path));
    assert.deepEqual(await releaseHung({ host, log: silent }, POD, { signal }), own);
  });

  test("of one server that cannot be forced keep no others, and an abort ends it", async () => {
    const host = machine("nfs4", late);
    const second = `${MOUNT}-2`;
    host.mounts.set(second, { type: "nfs4", source: "other:/export" });
    host.unmountByForce = () => Promise.reject(new Error("no answer"));
    assert.deepEqual(await releaseHung({ host, log: silent }, POD, { signal }), [MOUNT, second]);
    const stop = new AbortController();
    host.kindOf = () => {
      stop.abort(new Error("enough"));
      return Promise.reject(late);
    };
    await assert.rejects(releaseHung({ host, log: silent }, POD, { signal: stop.signal }), /enough/);
  });
});
