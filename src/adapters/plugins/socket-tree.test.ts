import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { SystemClock, type Timer } from "../../lib/clock.ts";
import { type Sockets, SocketTree } from "./socket-tree.ts";

describe("socket tree", { timeout: 20_000 }, () => {
  let dir: string;
  let stop: AbortController;
  let servers: Server[];
  let last: Sockets;
  let scans: number;
  let changed: () => void;
  let done: Promise<void>;

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "kts-tree-"));
    stop = new AbortController();
    servers = [];
    last = new Map();
    scans = 0;
    changed = () => undefined;
  });
  afterEach(async () => {
    stop.abort();
    await done;
    for (const server of servers) server.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function run(clock = new SystemClock()): void {
    const found = (sockets: Sockets): void => {
      last = sockets;
      scans++;
      changed();
    };
    const tree = new SocketTree({ clock, log: { warn: () => undefined }, found }, join(dir, "reg"));
    done = tree.run({ signal: stop.signal });
  }

  const listen = (path: string): Promise<Server> =>
    new Promise((resolve) => {
      const server = createServer().listen(join(dir, path), () => resolve(server));
      servers.push(server);
    });

  async function until(isThere: () => boolean): Promise<void> {
    while (!isThere()) await new Promise<void>((resolve) => (changed = resolve));
  }
  const names = (): string[] => [...last.keys()].map((path) => path.slice(dir.length + 1)).sort();

  test("finds sockets at start, later and in directories; ignores dots, files, and follows links to sockets", async () => {
    mkdirSync(join(dir, "reg/.hidden"), { recursive: true });
    await listen("reg/first.sock");
    await listen("reg/.dot.sock");
    await listen("reg/.hidden/x.sock");
    await listen("elsewhere.sock");
    writeFileSync(join(dir, "reg/file.sock"), "");
    symlinkSync("nowhere", join(dir, "reg/dangling"));
    symlinkSync("..", join(dir, "reg/loop"));
    run();
    await until(() => names().length === 1);
    assert.deepEqual(names(), ["reg/first.sock"]);
    symlinkSync(join(dir, "elsewhere.sock"), join(dir, "reg/link"));
    mkdirSync(join(dir, "reg/driver/deep"), { recursive: true });
    await listen("reg/driver/deep/s");
    await until(() => names().length === 3);
    assert.deepEqual(names(), ["reg/driver/deep/s", "reg/first.sock", "reg/link"]);
    rmSync(join(dir, "reg/driver"), { recursive: true });
    unlinkSync(join(dir, "reg/link"));
    await until(() => names().length === 1);
  });

  test("asks about few links at once, and about all", async () => {
    mkdirSync(join(dir, "reg"));
    for (let at = 0; at < 12; at++) symlinkSync("..", join(dir, `reg/a${at}`));
    await listen("elsewhere.sock");
    symlinkSync(join(dir, "elsewhere.sock"), join(dir, "reg/link"));
    // A filesystem that takes its time.
    mkdirSync(join(dir, "bin"));
    writeFileSync(join(dir, "bin/stat"), '#!/bin/sh\nsleep 0.1\nPATH=${PATH#*:}\nexec stat "$@"\n', { mode: 0o755 });
    const { PATH } = process.env;
    process.env["PATH"] = `${dir}/bin:${PATH}`;
    const limits = new Set<Timer>();
    let most = 0;
    /** Knows the time limits of child processes that run. */
    class Watched extends SystemClock {
      override after(ms: number, fn: () => void): Timer {
        const timer = super.after(ms, fn);
        if (ms !== 10_000) return timer;
        const limit = {
          cancel: (): void => {
            limits.delete(limit);
            timer.cancel();
          },
        };
        most = Math.max(most, limits.add(limit).size);
        return limit;
      }
    }
    try {
      run(new Watched());
      await until(() => names().includes("reg/link"));
    } finally {
      process.env["PATH"] = PATH;
    }
    assert.ok(most >= 1 && most <= 4, `${most} at once`);
  });

  test("a socket that is replaced has another identity, one whose directory is touched has not", async () => {
    run();
    await until(() => scans > 0);
    const server = await listen("reg/a");
    await until(() => last.size === 1);
    const before = last.get(join(dir, "reg/a"));
    await listen("reg/b");
    await until(() => last.size === 2);
    assert.equal(last.get(join(dir, "reg/a")), before);
    await new Promise((resolve) => server.close(resolve));
    await listen("reg/a");
    await until(() => last.size === 2 && last.get(join(dir, "reg/a")) !== before);
  });

  test("the directory comes back when it is removed", async () => {
    run();
    await until(() => scans > 0);
    await listen("reg/a");
    await until(() => last.size === 1);
    rmSync(join(dir, "reg"), { recursive: true });
    await until(() => last.size === 0);
    await listen("reg/b");
    await until(() => names()[0] === "reg/b");
  });
});
