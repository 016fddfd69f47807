import assert from "node:assert/strict";
import { test } from "node:test";
import { VolumeMachine } from "../../../test/support/volume-machine.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { composeCsi } from "./compose.ts";

test("what an earlier agent left mounted is in use, also if the metadata of its stage is damaged", async () => {
  const host = new VolumeMachine();
  const stage = "/root/plugins/kubernetes.io/csi/disk.example.com";
  const text = (volumeHandle: string): string => JSON.stringify({ driverName: "disk.example.com", volumeHandle });
  await host.replaceFile(`${stage}/hash-1/vol_data.json`, text("disk-1"));
  await host.replaceFile(`${stage}/hash-2/vol_data.json`, "");
  await host.replaceFile("/root/pods/uid-a/volumes/kubernetes.io~csi/pv-2/vol_data.json", text("disk-2"));
  await host.replaceFile("/root/pods/uid-b/volumes/kubernetes.io~csi/pv-3/vol_data.json", "{");
  const clock = new FakeClock();
  const csi = composeCsi({ clock, log: silent, host, nodeName: "node-1", rootDir: "/root" });
  assert.equal(csi.volumesInUse.current, undefined);
  const stop = new AbortController();
  const running = csi.loop.run(stop.signal);
  await clock.advance(0);
  const names = ["disk-1", "disk-2"].map((handle) => `kubernetes.io/csi/disk.example.com^${handle}`);
  assert.deepEqual(csi.volumesInUse.current, names);
  stop.abort();
  await running;
});
