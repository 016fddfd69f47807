import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { exec } from "../../adapters/host/exec.ts";
import { manyListeners } from "../../lib/abort.ts";
import { type Clock, FakeClock, SystemClock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { PluginRunner } from "./run-plugin.ts";

const binDir = mkdtempSync(join(tmpdir(), "plugins-"));
after(() => rmSync(binDir, { recursive: true }));
const VERSION = "credentialprovider.kubelet.k8s.io/v1";
const TOKEN = "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl";
const request = { apiVersion: VERSION, image: "r.io/a", serviceAccountToken: TOKEN };
const auth = { "r.io": { username: "ada", password: "hunter2-secret" } };
const response = { kind: "CredentialProviderResponse", apiVersion: VERSION, cacheKeyType: "Image", auth };

let count = 0;
/** Runs a shell script as plugin, on the real machine. */
function plugin(script: string, { clock = new SystemClock() }: { clock?: Clock } = {}) {
  const name = `plugin-${++count}`;
  writeFileSync(join(binDir, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(binDir, name), 0o755);
  const runs: [string, boolean][] = [];
  const ran = (of: string, _ms: number, isOk: boolean): void => void runs.push([of, isOk]);
  const runner = new PluginRunner(
    { clock, ran, exec: (command, options) => exec(clock, command, options) },
    { binDir, signal: manyListeners().signal },
  );
  const env = { PLUGIN_SECRET: "from-the-config" };
  const config = { name, apiVersion: VERSION, matchImages: [], defaultCacheMs: 0, args: ["get", "-v"], env };
  return { name, runs, result: runner.run(config, request) };
}
const failure = async (result: Promise<unknown>): Promise<string> =>
  result.then(
    () => assert.fail("no failure"),
    (error: unknown) => messageOf(error),
  );

test("a plugin gets the request, its arguments and the environment of both, and its answer is read", async () => {
  const seen = join(binDir, "seen");
  const script = `cat > ${seen}; echo "$@ $PLUGIN_SECRET $HOME" >> ${seen}; echo '${JSON.stringify(response)}'`;
  const { result, runs, name } = plugin(script);
  assert.deepEqual(await result, {
    cacheKeyType: "Image",
    cacheMs: undefined,
    entries: [{ location: "r.io", auth: { username: "ada", password: "hunter2-secret" } }],
  });
  const [line = "", rest] = readFileSync(seen, "utf8").split("\n");
  assert.deepEqual(JSON.parse(line), { kind: "CredentialProviderRequest", ...request });
  assert.equal(rest, `get -v from-the-config ${process.env["HOME"]}`);
  assert.deepEqual(runs, [[name, true]]);
});

describe("a plugin that misbehaves fails alone, and its secrets stay hidden", () => {
  const output = JSON.stringify(response);
  const cases = [
    { name: "exits with an error", script: "echo no access >&2; exit 3", says: /exited with code 3: no access/ },
    {
      name: "writes its secrets to stderr",
      script: `echo '${output}'; cat >&2; echo "hunter2-secret $PLUGIN_SECRET password=qwerty" >&2; exit 1`,
      says: /exited with code 1: .*\[redacted\]/s,
    },
    { name: "kills itself", script: "kill -9 $$", says: /was killed/ },
    { name: "writes no JSON", script: "echo hunter2-secret", says: /the response is not JSON/ },
    { name: "writes nothing", script: ":", says: /the response is not JSON/ },
    { name: "answers in another version", script: `echo '${output.replace("/v1", "/v2")}'`, says: /apiVersion of the/ },
    { name: "answers another kind", script: `echo '${output.replace("Response", "Request")}'`, says: /kind of the/ },
    {
      name: "has no cacheKeyType",
      script: `echo '${output.replace('"Image"', '"Pod"')}'`,
      says: /cacheKeyType is none/,
    },
    { name: "has a wrong password", script: `echo '${output.replace('"ada"', "7")}'`, says: /username in auth/ },
    { name: "writes a gigabyte", script: "exec yes hunter2-secret", says: /wrote more than 1048576 bytes/ },
    { name: "writes a gigabyte of errors", script: "exec yes hunter2-secret >&2", says: /wrote more than/ },
    { name: "is not there", script: "rm $0; exec $0", says: /./ },
  ];
  for (const { name, script, says } of cases) {
    test(name, async () => {
      const { result } = plugin(script);
      const message = await failure(result);
      assert.match(message, says);
      assert.ok(message.length < 1200, String(message.length));
      for (const secret of ["hunter2-secret", "from-the-config", TOKEN, "qwerty"]) assert.ok(!message.includes(secret));
    });
  }
});

test("a plugin that hangs is killed after a minute, with its children", async () => {
  const pids = join(binDir, "pids");
  const clock = new FakeClock();
  const { result } = plugin(`sleep 600 & echo $! $$ > ${pids}.tmp; mv ${pids}.tmp ${pids}; wait`, { clock });
  const message = failure(result);
  while (!existsSync(pids)) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(60_000);
  assert.match(await message, /did not end within 60 s/);
  const isAlive = (pid: string): boolean => {
    try {
      return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
    } catch {
      // It is gone, perhaps since the file was opened.
      return false;
    }
  };
  for (const pid of readFileSync(pids, "utf8").trim().split(" ")) {
    while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve));
  }
});

test("a plugin that leaves a child with its output is answered, and the child is killed", async () => {
  const child = join(binDir, "child");
  const { result } = plugin(`echo '${JSON.stringify(response)}'; sleep 600 & echo $! > ${child}`);
  assert.equal((await result).entries.length, 1);
  const pid = readFileSync(child, "utf8").trim();
  while (existsSync(`/proc/${pid}/cwd`)) await new Promise((resolve) => setImmediate(resolve));
});

test("a plugin that leaves a child without its output is answered at once, and the child is killed", async () => {
  const child = join(binDir, "quiet-child");
  const script = `sleep 600 </dev/null >/dev/null 2>&1 & echo $! > ${child}; echo '${JSON.stringify(response)}'`;
  // The clock stands still: nothing is left to a time limit.
  const { result } = plugin(script, { clock: new FakeClock() });
  assert.equal((await result).entries.length, 1);
  const pid = readFileSync(child, "utf8").trim();
  const until = performance.now() + 5000;
  while (existsSync(`/proc/${pid}/cwd`) && performance.now() < until) await new Promise((done) => setImmediate(done));
  const isAlive = existsSync(`/proc/${pid}/cwd`);
  if (isAlive) process.kill(Number(pid));
  assert.ok(!isAlive, "the child was left behind");
});
