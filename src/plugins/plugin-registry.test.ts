import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import type { PluginHandler, RegisteredPlugin } from "./handler.ts";
import { type PluginRegistration, PluginRegistry } from "./plugin-registry.ts";

/** What a scripted plugin does; by its socket. */
interface Script {
  type?: string;
  endpoint?: string;
  /** Errors of GetInfo, one for each attempt; then it answers. */
  failures?: number;
  hangs?: boolean;
  refusesNotify?: boolean;
}

class Bench {
  readonly clock = new FakeClock();
  readonly calls: string[] = [];
  readonly warnings: string[] = [];
  readonly scripts = new Map<string, Script>();
  /** Connections that are open. */
  connections = 0;
  readonly registry = new PluginRegistry({
    clock: this.clock,
    log: { info: () => undefined, warn: (_message, fields) => void this.warnings.push(String(fields?.["error"])) },
    connect: (socket) => this.plugin(socket),
  });

  readonly handler: PluginHandler = {
    validate: ({ name, versions }) => {
      if (!versions.includes("v1")) throw new Error(`${name} has no usable version`);
    },
    register: ({ name, endpoint }) => void this.calls.push(`register ${name} ${endpoint}`),
    deregister: ({ name }: RegisteredPlugin) => void this.calls.push(`deregister ${name}`),
  };

  constructor() {
    this.registry.handle("DRAPlugin", this.handler);
  }

  async found(...sockets: readonly (readonly [string, string])[]): Promise<void> {
    this.registry.update(new Map(sockets));
    await this.clock.advance(0);
  }

  private plugin(socket: string): PluginRegistration {
    this.connections++;
    const script = this.scripts.get(socket) ?? {};
    return {
      info: ({ signal }) => {
        this.calls.push(`info ${socket}`);
        if (script.hangs) {
          return new Promise((_, reject) =>
            signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
          );
        }
        if ((script.failures ?? 0) > 0) {
          script.failures = (script.failures ?? 0) - 1;
          return Promise.reject(new Error("connection refused"));
        }
        const versions = socket.includes("old") ? ["v0"] : ["v1"];
        return Promise.resolve({ type: "DRAPlugin", name: `name-of-${socket}`, endpoint: "", versions, ...script });
      },
      notify: (error) => {
        if (script.refusesNotify) return Promise.reject(new Error("not listening"));
        this.calls.push(error === "" ? `notify ${socket}` : `refuse ${socket}: ${error}`);
        return Promise.resolve();
      },
      close: () => void this.connections--,
    };
  }
}

test("a found plugin is registered and notified; without an endpoint its socket is the endpoint", async () => {
  const bench = new Bench();
  bench.scripts.set("b", { endpoint: "/driver.sock" });
  await bench.found(["a", "1"], ["b", "1"]);
  assert.deepEqual(bench.calls, [
    "info a",
    "info b",
    "register name-of-a a",
    "register name-of-b /driver.sock",
    "notify a",
    "notify b",
  ]);
  assert.deepEqual(bench.registry.sockets.registered, ["a", "b"]);
});

test("a removed socket deregisters, a replaced one deregisters and registers again, an unchanged one does nothing", async () => {
  const bench = new Bench();
  await bench.found(["a", "1"]);
  bench.calls.length = 0;
  await bench.found(["a", "1"]);
  assert.deepEqual(bench.calls, []);
  await bench.found(["a", "2"]);
  assert.deepEqual(bench.calls, ["deregister name-of-a", "info a", "register name-of-a a", "notify a"]);
  bench.calls.length = 0;
  await bench.found();
  assert.deepEqual(bench.calls, ["deregister name-of-a"]);
  assert.deepEqual(bench.registry.sockets, { found: [], registered: [] });
});

test("a dead socket is retried with back-off, its error is logged once", async () => {
  const bench = new Bench();
  bench.scripts.set("a", { failures: 3 });
  await bench.found(["a", "1"]);
  assert.equal(bench.clock.nextIn, 500);
  await bench.clock.advance(500);
  assert.equal(bench.clock.nextIn, 1000);
  await bench.clock.advance(1000 + 2000);
  assert.deepEqual(bench.calls.slice(-2), ["register name-of-a a", "notify a"]);
  assert.deepEqual(bench.warnings, ["connection refused"]);
  assert.equal(bench.clock.waiting, 0);
});

test("a plugin in back-off is not asked sooner, nor from the beginning, because of other sockets", async () => {
  const bench = new Bench();
  bench.scripts.set("a", { failures: 3 });
  await bench.found(["a", "1"]);
  await bench.clock.advance(600);
  for (let other = 0; other < 5; other++) await bench.found(["a", "1"], [`other${other}`, "1"]);
  assert.equal(bench.clock.nextIn, 900);
  assert.equal(bench.calls.filter((call) => call === "info a").length, 2);
  await bench.found();
  assert.equal(bench.clock.waiting, 0, "a socket that is gone is not looked at again");
});

test("each connection to a plugin is closed, whatever comes out of it", async () => {
  const bench = new Bench();
  bench.scripts.set("fails", { failures: 1 });
  bench.scripts.set("unknown", { type: "Toaster" });
  bench.scripts.set("deaf", { refusesNotify: true });
  bench.scripts.set("hangs", { hangs: true });
  const sockets = ["fine", "old", "fails", "unknown", "deaf", "hangs"].map((socket) => [socket, "1"] as const);
  await bench.found(...sockets);
  assert.equal(bench.connections, 1, "the one that hangs");
  await bench.registry.close();
  assert.deepEqual([bench.connections, bench.clock.waiting], [0, 0]);
});

test("a plugin that is refused and cannot be told is logged with why it is refused", async () => {
  const bench = new Bench();
  bench.scripts.set("old", { refusesNotify: true });
  await bench.found(["old", "1"]);
  assert.deepEqual(bench.warnings, ["name-of-old has no usable version"]);
});

test("a plugin that hangs delays no other, and its removal ends the attempt", async () => {
  const bench = new Bench();
  bench.scripts.set("a", { hangs: true });
  await bench.found(["a", "1"], ["b", "1"]);
  assert.deepEqual(bench.registry.sockets.registered, ["b"]);
  bench.scripts.delete("a");
  await bench.found(["a", "2"], ["b", "1"]);
  assert.deepEqual(bench.registry.sockets.registered, ["b", "a"]);
  assert.deepEqual(bench.warnings, []);
});

test("a plugin of an unknown type and one without a usable version are told why", async () => {
  const bench = new Bench();
  bench.scripts.set("a", { type: "Toaster" });
  await bench.found(["a", "1"], ["old", "1"]);
  assert.deepEqual(bench.calls.slice(2).sort(), [
    "refuse a: no handler registered for plugin type: Toaster at socket a",
    "refuse old: name-of-old has no usable version",
  ]);
  assert.deepEqual(bench.registry.sockets.registered, []);
});

test("a plugin that cannot be notified is deregistered and tried again", async () => {
  const bench = new Bench();
  bench.scripts.set("a", { refusesNotify: true });
  await bench.found(["a", "1"]);
  assert.deepEqual(bench.calls, ["info a", "register name-of-a a", "deregister name-of-a"]);
  assert.deepEqual(bench.registry.sockets.registered, []);
  bench.scripts.delete("a");
  bench.calls.length = 0;
  await bench.clock.advance(500);
  assert.deepEqual(bench.calls, ["info a", "register name-of-a a", "notify a"]);
  assert.deepEqual(bench.registry.sockets.registered, ["a"]);
});

test("a registration that is aborted by the end of the agent is quiet", async () => {
  const bench = new Bench();
  bench.scripts.set("a", { hangs: true });
  await bench.found(["a", "1"]);
  await bench.registry.close();
  assert.deepEqual(bench.warnings, []);
});
