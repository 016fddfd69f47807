import { ContainerAllocateResponse } from "../src/adapters/devices/generated/deviceplugin.ts";
import type { DeviceCheckpoint } from "../src/devices/checkpoint.ts";
import { CheckpointStore } from "../src/devices/checkpoint-store.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { silent } from "../src/lib/log.ts";
import type { Row } from "./table.ts";
import { watchLoop } from "./watch-loop.ts";

const CONTAINERS = 250;
const ANSWER_BYTES = 16 * 1024;
const LIMIT_MS = 50;

/** The longest time for which nothing else runs while the checkpoint of many large answers of plugins is written. */
export async function measureDevices(): Promise<readonly Row[]> {
  const answer = ContainerAllocateResponse.fromPartial({ envs: { A: "x".repeat(ANSWER_BYTES) } });
  let round = 0;
  const entries = (): DeviceCheckpoint["entries"] =>
    Array.from({ length: CONTAINERS }, (_, at) => ({
      uid: `pod-${at}-${round}`,
      container: "app",
      resource: "example.com/gpu",
      devices: { byNode: new Map([[0, [`d${at}`]]]), answer },
    }));
  const file = { readCheckpoint: () => undefined, writeCheckpoint: () => Promise.resolve(), setAside: () => "" };
  const store = new CheckpointStore({
    file,
    log: silent,
    clock: new SystemClock(),
    state: () => ({ entries: entries(), registered: new Map([["example.com/gpu", []]]) }),
    found: () => undefined,
  });
  await store.save();
  const delays = watchLoop();
  for (round = 1; round <= 10; round++) await store.save();
  const what = `device checkpoint of ${CONTAINERS} answers of ${ANSWER_BYTES / 1024} KiB: longest event loop delay`;
  return [{ what, measured: delays.stop(), limit: LIMIT_MS, unit: "ms" }];
}
