import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rename, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { ApiCheckpoint, type CheckpointContent, maySafelyRunTwice, seal, unseal } from "./api-checkpoint.ts";

const pod = (metadata: Pod["metadata"], spec: Partial<Pod["spec"]> = {}): Pod => ({
  metadata: { name: "p", namespace: "ns", uid: "u", ...metadata },
  spec: { containers: [], ...spec },
});
const owner = (kind: string) => ({ apiVersion: "apps/v1", kind, name: "o", uid: "x", controller: true });
const daemon = { ownerReferences: [owner("DaemonSet")] };
const optedIn = { annotations: { "kubelet-ts/start-without-api-server": "true" } };
const claim = { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] };

const cases = [
  { name: "of a DaemonSet", pod: pod(daemon), want: true },
  { name: "of a ReplicaSet", pod: pod({ ownerReferences: [owner("ReplicaSet")] }), want: false },
  { name: "opted in", pod: pod({ ...optedIn, ownerReferences: [owner("ReplicaSet")] }), want: true },
  {
    name: "of a StatefulSet, though opted in",
    pod: pod({ ...optedIn, ownerReferences: [owner("StatefulSet")] }),
    want: false,
  },
  { name: "with a claim", pod: pod(daemon, claim), want: false },
  { name: "asked to go", pod: pod({ ...daemon, deletionTimestamp: "2026-01-01T00:00:00Z" }), want: false },
  { name: "that is over", pod: { ...pod(daemon), status: { phase: "Succeeded" } }, want: false },
];
for (const { name, pod: given, want } of cases) {
  test(`a pod ${name} ${want ? "may" : "may not"} run without the server`, () =>
    assert.equal(maySafelyRunTwice(given), want));
}

const content: CheckpointContent = {
  pods: [pod(daemon)],
  configMaps: [],
  services: [],
  runtimeClasses: [],
  secrets: [{ metadata: { name: "s" }, data: { key: "aHVudGVyMg==" } }],
};
/** A checkpoint with and without the setting. */
const open = (clock: FakeClock, directory: string, mayHoldSecrets = true): ApiCheckpoint =>
  new ApiCheckpoint({ clock, log: silent, content: () => content, mayHoldSecrets: () => mayHoldSecrets }, directory);

async function inDirectory(work: (directory: string, clock: FakeClock) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "kt-cp-"));
  try {
    await work(directory, new FakeClock());
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function written(directory: string, clock: FakeClock): Promise<void> {
  const checkpoint = open(clock, directory);
  checkpoint.touch();
  await clock.advance(2000);
  await checkpoint.close();
}

test("what is kept comes back, and nobody else can read it", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    assert.deepEqual(await open(clock, directory).load(), content);
    const text = await readFile(join(directory, "api-checkpoint"), "utf8");
    assert.doesNotMatch(text, /hunter|aHVudGVyMg|DaemonSet/);
    for (const name of ["api-checkpoint", "api-checkpoint.key"]) {
      assert.equal((await stat(join(directory, name))).mode & 0o777, 0o600);
    }
  }));

test("a file that is damaged, or sealed with another key, is nothing", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    const load = () => open(clock, directory).load();
    await writeFile(join(directory, "api-checkpoint.key"), "00".repeat(32));
    assert.equal(await load(), undefined);
    await writeFile(join(directory, "api-checkpoint"), "AAAA");
    assert.equal(await load(), undefined);
  }));

test("an unchanged content is not written again", () =>
  inDirectory(async (directory, clock) => {
    let asked = 0;
    const counting = () => {
      asked++;
      return content;
    };
    const checkpoint = new ApiCheckpoint(
      { clock, log: silent, content: counting, mayHoldSecrets: () => true },
      directory,
    );
    for (let n = 0; n < 5; n++) checkpoint.touch();
    await clock.advance(2000);
    await checkpoint.close();
    assert.equal(asked, 1);
    const before = (await stat(join(directory, "api-checkpoint"))).mtimeMs;
    checkpoint.touch();
    await clock.advance(2000);
    await checkpoint.close();
    assert.equal((await stat(join(directory, "api-checkpoint"))).mtimeMs, before);
  }));

test("without the setting the Secrets of an earlier run are removed at the start, the rest stays", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    const before = await readFile(join(directory, "api-checkpoint"), "utf8");
    await open(clock, directory, false).purge();
    assert.notEqual(await readFile(join(directory, "api-checkpoint"), "utf8"), before);
    // Even an agent that may hold them finds none.
    assert.deepEqual(await open(clock, directory, true).load(), { ...content, secrets: [] });
  }));

test("with the setting they stay", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    await open(clock, directory, true).purge();
    assert.deepEqual(await open(clock, directory, true).load(), content);
  }));

test("tokens of version 1 are removed at the start, whatever the setting", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    const key = Buffer.from((await readFile(join(directory, "api-checkpoint.key"), "utf8")).trim(), "hex");
    const old = { version: 1, content: { ...content, tokens: { "u/ns": { token: "hunter3", endsAt: 5 } } } };
    await writeFile(join(directory, "api-checkpoint"), seal(JSON.stringify(old), key));
    await open(clock, directory, true).purge();
    const text = unseal(await readFile(join(directory, "api-checkpoint"), "utf8"), key);
    assert.doesNotMatch(text, /hunter3/);
    assert.deepEqual(await open(clock, directory, true).load(), content);
  }));

test("a checkpoint that cannot be read is deleted at the start", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    await writeFile(join(directory, "api-checkpoint.key"), "00".repeat(32));
    await open(clock, directory).purge();
    await assert.rejects(stat(join(directory, "api-checkpoint")), /ENOENT/);
  }));

test("a checkpoint that cannot be read now is kept", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    const key = join(directory, "api-checkpoint.key");
    await rename(key, `${key}.away`);
    // Reading a directory fails as a disk does.
    await mkdir(key);
    await open(clock, directory).purge();
    await rmdir(key);
    await rename(`${key}.away`, key);
    assert.deepEqual(await open(clock, directory).load(), content);
  }));

test("a checkpoint with Secrets is deleted if it cannot be replaced", () =>
  inDirectory(async (directory, clock) => {
    await written(directory, clock);
    const pid = Object.getOwnPropertyDescriptor(process, "pid");
    assert.ok(pid);
    // Part of the name of the temporary file, which is then too long to be created.
    Object.defineProperty(process, "pid", { ...pid, value: "1".repeat(300) });
    try {
      await open(clock, directory, false).purge();
    } finally {
      Object.defineProperty(process, "pid", pid);
    }
    await assert.rejects(stat(join(directory, "api-checkpoint")), /ENOENT/);
  }));
