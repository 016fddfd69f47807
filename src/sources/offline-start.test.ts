import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { OFFLINE_START_ANNOTATION, seal, unseal } from "./api-checkpoint.ts";
import { OfflineStart, type OfflineStartDeps } from "./offline-start.ts";

const secret = { metadata: { name: "s" }, data: { key: "aHVudGVyMg==" } };
const empty = { pods: [], configMaps: [], services: [], runtimeClasses: [] };
const key = Buffer.alloc(32, 1);

/** Runs an agent's offline start on a directory with this checkpoint until it has written its own; returns both. */
async function secretsOnDisk(mayHoldSecrets: boolean, version: number): Promise<{ purged: unknown; written: unknown }> {
  const directory = await mkdtemp(join(tmpdir(), "kt-offline-"));
  const file = join(directory, "api-checkpoint");
  const read = async (): Promise<unknown> => JSON.parse(unseal(await readFile(file, "utf8"), key)).content.secrets;
  try {
    await writeFile(`${file}.key`, key.toString("hex"));
    await writeFile(file, seal(JSON.stringify({ version, content: { ...empty, secrets: [secret] } }), key));
    const clock = new FakeClock();
    const pods = { isUnavailable: false, current: () => [] };
    const objects = { known: (kind: string) => (kind === "Secret" ? [secret] : []) };
    const facts = { known: () => ({ services: [], runtimeClasses: [] }) };
    const deps = { clock, log: silent, objects, facts, mayHoldSecrets: () => mayHoldSecrets, pods: () => pods };
    const start = new OfflineStart(deps as unknown as OfflineStartDeps, directory); // reason: it uses nothing else
    const stop = new AbortController();
    stop.abort();
    await start.run(pods as never, stop);
    const purged = await read();
    await rm(file);
    start.touch();
    await clock.advance(2000);
    // The file is renamed into place whole; each look is a turn of the event loop.
    while (!(await readdir(directory)).includes("api-checkpoint"));
    return { purged, written: await read() };
  } finally {
    await rm(directory, { recursive: true });
  }
}

for (const version of [1, 2]) {
  test(`without checkpointSecrets no Secret is written, and those of a version ${version} file are removed`, async () => {
    assert.deepEqual(await secretsOnDisk(false, version), { purged: [], written: [] });
  });
}

test("with checkpointSecrets the Secrets of the pods are written and kept", async () => {
  assert.deepEqual(await secretsOnDisk(true, 2), { purged: [secret], written: [secret] });
});

test("a pod that ended leaves the checkpoint when the server has its status", async () => {
  const directory = await mkdtemp(join(tmpdir(), "kt-offline-"));
  const file = join(directory, "api-checkpoint");
  const written = async (): Promise<number> => {
    while (!(await readdir(directory)).includes("api-checkpoint"));
    return JSON.parse(unseal(await readFile(file, "utf8"), key)).content.pods.length;
  };
  try {
    await writeFile(`${file}.key`, key.toString("hex"));
    const clock = new FakeClock();
    const annotations = { [OFFLINE_START_ANNOTATION]: "true" };
    const pod = (phase: string): Pod => ({
      metadata: { name: "once", annotations },
      spec: { containers: [] },
      status: { phase },
    });
    let current = [pod("Running")];
    const deps = {
      clock,
      log: silent,
      objects: { known: () => [] },
      facts: { known: () => ({ services: [], runtimeClasses: [] }) },
      mayHoldSecrets: () => false,
      pods: () => ({ current: () => current }),
    };
    const start = new OfflineStart(deps as unknown as OfflineStartDeps, directory); // reason: it uses nothing else
    start.touch();
    await clock.advance(2000);
    assert.equal(await written(), 1);
    await rm(file);
    current = [pod("Succeeded")];
    start.seen(pod("Succeeded"));
    await clock.advance(2000);
    assert.equal(await written(), 0);
  } finally {
    await rm(directory, { recursive: true });
  }
});
