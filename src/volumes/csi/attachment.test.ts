import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import type { VolumeAttachment } from "../../model/generated/types.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import type { NodeVolumes } from "../volumes-in-use.ts";
import { AttachedVolumes } from "./attachment.ts";

const METADATA = { driverName: "d", volumeHandle: "h", attachmentID: "csi-1", volumeLifecycleMode: "Persistent" };
const STAGE = { directory: "/stage", metadata: METADATA };
const NAME = "kubernetes.io/csi/d^h";
const { signal } = new AbortController();

function site(attachment?: VolumeAttachment) {
  const clock = new FakeClock();
  const reported = new LiveValue<NodeVolumes>({ inUse: [], attached: [] });
  const attached = new AttachedVolumes({ clock, reported });
  const objects = { get: () => Promise.resolve(attachment), onChange: () => undefined } as unknown as ObjectSource;
  return { clock, reported, attached, objects };
}

function attachment(status: VolumeAttachment["status"], deletionTimestamp?: string): VolumeAttachment {
  return {
    metadata: { name: "csi-1", ...(deletionTimestamp !== undefined && { deletionTimestamp }) },
    spec: { attacher: "d", nodeName: "n", source: {} },
    ...(status && { status }),
  };
}

describe("a volume that has to be attached", () => {
  test("is named as in use before it is mounted, and mounted only when the API server knows that", async () => {
    const { attached, reported, objects, clock } = site(
      attachment({ attached: true, attachmentMetadata: { dev: "x" } }),
    );
    attached.restore([]);
    let result: unknown;
    void attached.wait(STAGE, objects, { signal }).then((context) => (result = context));
    await clock.advance(0);
    assert.deepEqual(attached.inUse.current, [NAME]);
    assert.equal(result, undefined);
    // Attached, but the attach controller does not know yet that it is in use, and may be about to detach it.
    reported.set({ inUse: ["other"], attached: [NAME] });
    await clock.advance(0);
    assert.equal(result, undefined);
    // It has begun to detach it: the attachment is still there.
    reported.set({ inUse: [NAME, "other"], attached: [] });
    await clock.advance(0);
    assert.equal(result, undefined);
    reported.set({ inUse: [NAME, "other"], attached: [NAME] });
    await clock.advance(0);
    assert.deepEqual(result, { dev: "x" });
    assert.equal(clock.waiting, 0);
    attached.remove(STAGE);
    assert.deepEqual(attached.inUse.current, []);
  });

  test("that the node's status does not name in time is not mounted", async () => {
    const { attached, objects, clock } = site(attachment({ attached: true }));
    const waiting = assert.rejects(attached.wait(STAGE, objects, { signal }), /has not been added to the list/);
    await clock.advance(10_000);
    await waiting;
  });

  test("that is not attached in time is not mounted, with what its attachment says", async () => {
    const failed = attachment({ attached: false, attachError: { message: "no slot left" } });
    for (const [found, want] of [
      [undefined, /^VolumePendingError: Volume not attached according to node status$/],
      [failed, /^VolumePendingError: Volume not attached according to node status: no slot left$/],
    ] as const) {
      const { attached, objects, clock, reported } = site(found);
      reported.set({ inUse: [NAME], attached: [] });
      const waiting = assert.rejects(attached.wait(STAGE, objects, { signal }), want);
      await clock.advance(10_000);
      await waiting;
    }
  });

  test("that is no longer wanted is not waited for", async () => {
    const { attached, objects, clock } = site(attachment({ attached: true }));
    const stop = new AbortController();
    const waiting = assert.rejects(attached.wait(STAGE, objects, { signal: stop.signal }), /enough/);
    await clock.advance(0);
    stop.abort(new Error("enough"));
    await waiting;
    assert.equal(clock.waiting, 0);
  });

  test("and that an earlier agent left staged is in use from the start; before that nothing is reported", () => {
    const { attached } = site();
    assert.equal(attached.inUse.current, undefined);
    attached.restore([STAGE]);
    assert.deepEqual(attached.inUse.current, [NAME]);
  });

  test("and that was unmounted while an earlier agent's stages were read is not in use", () => {
    const { attached } = site();
    attached.remove(STAGE);
    attached.restore([STAGE]);
    assert.deepEqual(attached.inUse.current, []);
  });

  test("and stages of which it is not known what they use keep in use what they may be, until they are known or gone", () => {
    const { attached, reported } = site();
    const any = (stage: string) => ({ stage, mayUse: (_name: string, { isNamed = false }) => !isNamed });
    attached.restore([STAGE], { unnamed: [any("/a"), any("/b")], signal });
    const other = "kubernetes.io/csi/d^x";
    reported.set({ inUse: [NAME], attached: [other] });
    assert.deepEqual(attached.inUse.current, [NAME, other]);
    attached.remove(STAGE);
    assert.deepEqual(attached.inUse.current, [other], "what was known to be elsewhere is given up");
    void attached.wait({ directory: "/a", metadata: { ...METADATA, volumeHandle: "y" } }, {} as ObjectSource, {
      signal,
    });
    assert.deepEqual(attached.inUse.current, [other, "kubernetes.io/csi/d^y"]);
    attached.discarded("/b");
    assert.deepEqual(attached.inUse.current, ["kubernetes.io/csi/d^y"]);
  });

  const refusals: [string, VolumeAttachment | undefined, RegExp][] = [
    ["has no attachment", undefined, /volume h has no volume attachment csi-1/],
    ["is not attached yet", attachment({ attached: false }), /volume h is not attached for volume attachment csi-1/],
    ["has an attachment without status", attachment(undefined), /is not attached/],
    [
      "failed to attach",
      attachment({ attached: false, attachError: { message: "no slot left" } }),
      /^Error: no slot left$/,
    ],
    ["is being detached", attachment({ attached: true }, "2026-01-01T00:00:00Z"), /attachment is being deleted/],
  ];
  for (const [name, found, want] of refusals) {
    test(`that ${name} is an error with the reason`, async () => {
      const { attached, objects } = site(found);
      await assert.rejects(attached.context(METADATA, objects, { signal }), want);
    });
  }
});
