/** The objects of the local API on real disks: killed in the middle of writes, out of space, and on one that fails. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import type { ConfigMap } from "../../src/model/generated/types.ts";
import { pause, until } from "../integration/support/until.ts";
import { LocalApiServer } from "../support/local-api-server.ts";
import { LoopFilesystem, whyNoLoop } from "../support/loop-filesystem.ts";
import { chooseSeed, randomFrom } from "../support/random.ts";

const reason = whyNoLoop();
if (reason !== undefined) {
  process.stdout.write(`needs a filesystem in a file: ${reason}\n`);
  process.exit(77);
}

const MAPS = "/api/v1/namespaces/default/configmaps";
const KILLS = Number(process.env["KUBELET_CHAOS_KILLS"] ?? 25);
const WRITERS = 8;
const seed = chooseSeed("KUBELET_CHAOS_SEED", 14);

const map = (name: string, value: string): unknown => ({ metadata: { name }, data: { value } });

async function stored(server: LocalApiServer): Promise<Map<string, ConfigMap>> {
  const { status, text } = await server.ask("GET", MAPS);
  assert.equal(status, 200, text);
  const list = JSON.parse(text) as { items: ConfigMap[] };
  return new Map(list.items.map((item) => [item.metadata.name ?? "", item]));
}

/** What one writer knows of its object: the last value that was acknowledged, and the one that may be there instead. */
interface Known {
  acknowledged: number;
  tried: number;
  revision: number;
}

describe(`the objects of the local API on real disks (KUBELET_CHAOS_SEED=${seed})`, () => {
  const dir = mkdtempSync(join(tmpdir(), "k-"));
  const socket = join(dir, "s");
  const random = randomFrom(seed);
  const started: LocalApiServer[] = [];
  const start = async (directory: string): Promise<LocalApiServer> => {
    const server = await LocalApiServer.start(directory, socket);
    started.push(server);
    return server;
  };
  /** A server of a test that failed would hold its disk, and answer in the name of the next one. */
  const endAll = async (): Promise<void> => {
    await Promise.all(started.splice(0).map((server) => server.end("SIGKILL")));
  };
  afterEach(endAll);
  after(() => rmSync(dir, { recursive: true, force: true }));

  test(`nothing that was acknowledged is lost in ${KILLS} kills, and the file stays small`, async () => {
    const directory = join(dir, "killed");
    const known = new Map<string, Known>();
    let writes = 0;
    let server = await start(directory);
    for (let kill = 0; kill < KILLS; kill++) {
      let isOver = false;
      const writer = async (index: number): Promise<void> => {
        const name = `w-${index}`;
        const mine = known.get(name) ?? { acknowledged: 0, tried: 0, revision: 0 };
        known.set(name, mine);
        while (!isOver) {
          mine.tried = Math.max(mine.tried, mine.acknowledged) + 1;
          const [method, path] = mine.acknowledged === 0 ? ["POST", MAPS] : ["PUT", `${MAPS}/${name}`];
          // Long enough to have a file of several pages in each write.
          const answer = await server
            .ask(method, path, map(name, `${mine.tried}:${"x".repeat(index * 500)}`))
            .catch(() => undefined);
          if (answer === undefined) return;
          assert.ok(answer.status === 200 || answer.status === 201, answer.text);
          mine.acknowledged = mine.tried;
          mine.revision = Number((JSON.parse(answer.text) as ConfigMap).metadata?.resourceVersion ?? mine.revision);
          writes++;
        }
      };
      const writers = Array.from({ length: WRITERS }, (_, index) => writer(index));
      // By the number of writes: in a time alone a busy machine does none. And then somewhere in the next ones.
      const enough = writes + 11 + Math.floor(random() * 40);
      await until("writes", () => writes >= enough);
      await pause(Math.floor(random() * 20));
      await server.end("SIGKILL");
      isOver = true;
      await Promise.all(writers);
      server = await start(directory);
      const found = await stored(server);
      for (const [name, { acknowledged, tried, revision }] of known) {
        const object = found.get(name);
        // The first write may have been kept by a server that died before it could say so.
        if (acknowledged === 0 && object === undefined) continue;
        assert.ok(object, `${name} is lost after kill ${kill}`);
        const value = Number(object.data?.["value"]?.split(":", 1)[0]);
        assert.ok(
          value === acknowledged || value === tried,
          `${name}: ${acknowledged} was acknowledged, found ${value}`,
        );
        assert.ok(Number(object.metadata.resourceVersion) >= revision, `${name}: the revision went back`);
        const mine = known.get(name);
        if (mine) mine.acknowledged = value;
      }
    }
    assert.ok(writes > KILLS * 10, `only ${writes} writes`);
    await server.end("SIGTERM");
    // 8 objects of at most 4 KB; the rest is what compaction allows.
    assert.ok(statSync(join(directory, "objects.log")).size < 10 << 20);
  });

  test("a full disk refuses writes in words, loses nothing, and takes writes again once there is room", async () => {
    const disk = new LoopFilesystem(16);
    try {
      const directory = join(disk.path, "objects");
      const filler = join(disk.path, "filler");
      let server = await start(directory);
      writeFileSync(filler, Buffer.alloc(4 << 20, 1));
      const acknowledged: string[] = [];
      let refused = "";
      for (let index = 0; refused === "" && index < 400; index++) {
        const name = `full-${index}`;
        const { status, text } = await server.ask("POST", MAPS, map(name, "y".repeat(100_000)));
        if (status === 201) acknowledged.push(name);
        else refused = text;
      }
      assert.match(refused, /"code":500/);
      assert.match(refused, /no space left on device/i);
      assert.ok(acknowledged.length > 20);
      // Reads go on, and small and large writes alike are refused or kept, never half.
      assert.equal((await stored(server)).size, acknowledged.length + 1);
      const small = await server.ask("POST", MAPS, map("small", "z"));
      if (small.status === 201) acknowledged.push("small");
      rmSync(filler);
      const again = await server.ask("POST", MAPS, map("room", "y".repeat(100_000)));
      assert.equal(again.status, 201, again.text);
      acknowledged.push("room");
      await server.end("SIGKILL");
      server = await start(directory);
      const found = await stored(server);
      for (const name of acknowledged) assert.ok(found.has(name), `${name} is lost`);
      assert.equal(found.size, acknowledged.length + 1);
      await server.end("SIGTERM");
    } finally {
      await endAll();
      disk.close();
    }
  });

  test("a disk that fails writes: what was acknowledged stays, and writes work again when it does", async () => {
    // A device that promises more than there is: its filesystem has room, and syncing it fails.
    const backing = join(dir, "b");
    const mounted = join(dir, "m");
    mkdirSync(backing);
    mkdirSync(mounted);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m", "none", backing]);
    try {
      const file = join(backing, "f");
      writeFileSync(file, "");
      truncateSync(file, 64 << 20);
      execFileSync("mkfs.ext4", ["-q", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1", file]);
      execFileSync("mount", ["-o", "loop,errors=continue", file, mounted]);
      try {
        const server = await start(join(mounted, "objects"));
        const acknowledged: string[] = [];
        let refused = "";
        for (let index = 0; refused === "" && index < 200; index++) {
          const { status, text } = await server.ask("POST", MAPS, map(`io-${index}`, "y".repeat(100_000)));
          if (status === 201) acknowledged.push(`io-${index}`);
          else refused = text;
        }
        assert.match(refused, /i\/o error|no space left/i);
        assert.ok(acknowledged.length > 5, `${acknowledged.length}`);
        assert.equal((await stored(server)).size, acknowledged.length + 1);
        execFileSync("mount", ["-o", "remount,size=64m", backing]);
        await until("it takes writes again", async () => {
          const { status } = await server.ask("POST", MAPS, map("again", "z"));
          // One that was refused is not there.
          assert.notEqual(status, 409);
          return status === 201;
        });
        await server.end("SIGKILL");
        const next = await start(join(mounted, "objects"));
        const found = await stored(next);
        for (const name of [...acknowledged, "again"]) assert.ok(found.has(name), `${name} is lost`);
        await next.end("SIGTERM");
      } finally {
        await endAll();
        execFileSync("umount", [mounted]);
      }
    } finally {
      // The kernel releases a loop device once nobody has it open, such as one who lists all of them.
      await until("nothing uses it any more", () => spawnSync("umount", [backing]).status === 0);
    }
  });

  test("secrets are not readable in the file", async () => {
    const directory = join(dir, "secret");
    const server = await start(directory);
    const word = "not-to-be-found-on-disk";
    const body = { metadata: { name: "hidden" }, stringData: { word } };
    assert.equal((await server.ask("POST", "/api/v1/namespaces/default/secrets", body)).status, 201);
    await server.end("SIGTERM");
    const bytes = readFileSync(join(directory, "objects.log"), "latin1");
    assert.ok(bytes.includes("secrets/default/hidden"));
    for (const text of [word, Buffer.from(word).toString("base64")]) assert.ok(!bytes.includes(text));
    for (const name of ["objects.log", "secrets.key", "kubeconfig"]) {
      const found = statSync(join(directory, name), { throwIfNoEntry: false });
      if (found !== undefined) assert.equal(found.mode & 0o077, 0, `${name} is open to others`);
    }
  });
});
