import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { CodedError } from "../lib/errors.ts";
import { silent } from "../lib/log.ts";
import { type DeviceReport, type DeviceReports, type DriverConnection, Drivers } from "./drivers.ts";

const report = (health: DeviceReport["health"]): DeviceReport => ({
  pool: "p",
  device: "d",
  health,
  validMs: undefined,
  message: "",
});

/** A message with these reports; by default of the size that it would have. */
function sent(reports: readonly DeviceReport[], bytes = 40 * reports.length): DeviceReports {
  return { bytes, read: () => reports };
}

class Bench {
  readonly clock = new FakeClock();
  readonly stop = new AbortController();
  readonly heard: string[] = [];
  readonly logged: string[] = [];
  readonly connections = new Map<string, { connected(is: boolean): void; service: string; isClosed: boolean }>();
  watches = 0;
  watch: DriverConnection["watchHealth"] = async function* () {};
  readonly drivers = new Drivers(
    {
      clock: this.clock,
      log: { ...silent, info: (message) => void this.logged.push(message) },
      services: ["v1.DRAPlugin", "v1beta1.DRAPlugin"],
      connect: ({ endpoint, service }) => this.connect(endpoint, service),
      changed: (driver, isUsable) => void this.heard.push(`${driver} ${isUsable}`),
      health: {
        update: (driver, reports) => void this.heard.push(`${driver} is ${reports.map(({ health }) => health).join()}`),
        clear: (driver) => void this.heard.push(`${driver} unknown`),
      },
    },
    this.stop.signal,
  );

  register(endpoint: string, versions = ["v1.DRAPlugin"]): void {
    const plugin = { name: "gpu.example.com", endpoint, versions };
    this.drivers.validate(plugin);
    this.drivers.register(plugin);
  }

  private connect(endpoint: string, service: string): DriverConnection {
    const state = { connected: (_is: boolean): void => undefined, service, isClosed: false };
    this.connections.set(endpoint, state);
    return {
      prepare: () => Promise.resolve(new Map([[endpoint, { error: "", devices: [] }]])),
      unprepare: () => Promise.resolve(new Map()),
      watchHealth: (options) => {
        this.watches++;
        return this.watch(options);
      },
      watchConnection: (fn) => {
        state.connected = fn;
      },
      close: () => {
        state.isClosed = true;
      },
    };
  }
}

async function chosen({ drivers }: Bench): Promise<string | undefined> {
  return [...(await drivers.get("gpu.example.com").prepare([], { signal: new AbortController().signal })).keys()][0];
}

test("the first service in the driver's order that the agent speaks is taken", () => {
  const bench = new Bench();
  bench.register("/a", ["v2.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAPlugin"]);
  assert.equal(bench.connections.get("/a")?.service, "v1beta1.DRAPlugin");
  assert.throws(() => bench.register("/b", ["v2.DRAPlugin"]), /none of v2.DRAPlugin are supported/);
  assert.throws(() => bench.register("/b", []), /empty list of supported gRPC services/);
});

test("a name with capitals is accepted, as in the API", () => {
  const { drivers } = new Bench();
  drivers.validate({ name: "GPU.Example.com", endpoint: "/a", versions: ["v1.DRAPlugin"] });
});

test("a name that is no DNS subdomain and an endpoint that is taken are refused", () => {
  const bench = new Bench();
  const versions = ["v1.DRAPlugin"];
  assert.throws(() => bench.drivers.validate({ name: "a,metadata.name=b", endpoint: "/a", versions }), /DNS subdomain/);
  for (const endpoint of ["/a", "/b"]) bench.register(endpoint);
  assert.throws(() => bench.register("/a"), /endpoint \/a already registered for DRA driver plugin gpu.example.com/);
});

test("of two instances the newest connected one is used; a driver is usable while one is", async () => {
  const bench = new Bench();
  bench.register("/old");
  bench.register("/new");
  assert.equal(await chosen(bench), "/new");
  bench.connections.get("/old")?.connected(true);
  assert.equal(await chosen(bench), "/old");
  bench.connections.get("/new")?.connected(true);
  assert.equal(await chosen(bench), "/new");
  bench.drivers.deregister({ name: "gpu.example.com", endpoint: "/old", versions: [] });
  assert.equal(bench.connections.get("/old")?.isClosed, true);
  assert.equal(bench.drivers.isUsable("gpu.example.com"), true);
  bench.connections.get("/new")?.connected(false);
  assert.equal(bench.drivers.isUsable("gpu.example.com"), false);
  bench.drivers.deregister({ name: "gpu.example.com", endpoint: "/new", versions: [] });
  assert.throws(() => bench.drivers.get("gpu.example.com"), /DRA driver gpu.example.com is not registered/);
});

test("a driver that registers again and again leaves no listener behind", async () => {
  const bench = new Bench();
  for (const endpoint of ["/a", "/b"]) {
    bench.register(endpoint);
    bench.connections.get(endpoint)?.connected(true);
    await bench.clock.advance(0);
    bench.drivers.deregister({ name: "gpu.example.com", endpoint, versions: [] });
  }
  await bench.clock.advance(10_000);
  assert.equal(getEventListeners(bench.stop.signal, "abort").length, 0);
});

test("it is told when a driver becomes usable and when it is not any more", () => {
  const bench = new Bench();
  bench.register("/a");
  const connection = bench.connections.get("/a");
  for (const is of [true, true, false, true]) connection?.connected(is);
  bench.drivers.deregister({ name: "gpu.example.com", endpoint: "/a", versions: [] });
  connection?.connected(false);
  const told = ["false", "true", "false", "true", "false"].map((is) => `gpu.example.com ${is}`);
  assert.deepEqual(bench.heard, told);
});

test("health is unknown when the last connected instance is deregistered, not before", async () => {
  const bench = new Bench();
  bench.watch = async function* ({ signal }) {
    yield { bytes: 1, read: () => [report("Healthy")] };
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    signal.throwIfAborted();
  };
  for (const endpoint of ["/old", "/new"]) {
    bench.register(endpoint);
    bench.connections.get(endpoint)?.connected(true);
  }
  bench.register("/starting");
  await bench.clock.advance(0);
  const cleared: number[] = [];
  for (const endpoint of ["/old", "/new", "/starting"]) {
    bench.drivers.deregister({ name: "gpu.example.com", endpoint, versions: [] });
    await bench.clock.advance(5000);
    cleared.push(bench.heard.filter((what) => what.endsWith("unknown")).length);
  }
  assert.equal(cleared[0], 0);
  assert.ok((cleared[1] ?? 0) > 0, "an instance that is not connected knows nothing");
});

test("health is watched while the driver is connected, again 5 s after the stream has ended, and unknown in between", async () => {
  const bench = new Bench();
  bench.watch = async function* () {
    yield sent([report("Healthy")]);
  };
  bench.register("/a");
  await bench.clock.advance(0);
  assert.equal(bench.watches, 0);
  bench.connections.get("/a")?.connected(true);
  await bench.clock.advance(0);
  assert.deepEqual(bench.heard.slice(-2), ["gpu.example.com is Healthy", "gpu.example.com unknown"]);
  await bench.clock.advance(5000);
  assert.equal(bench.watches, 2);
  bench.drivers.deregister({ name: "gpu.example.com", endpoint: "/a", versions: [] });
  await bench.clock.advance(60_000);
  assert.equal(bench.watches, 2);
});

test("a driver whose health stream fails again and again is logged once, until it has reported", async () => {
  const bench = new Bench();
  let reports: readonly DeviceReport[] = [];
  bench.watch = async function* () {
    if (reports.length > 0) yield sent(reports);
    throw new CodedError("Internal", "broken");
  };
  bench.register("/a");
  bench.connections.get("/a")?.connected(true);
  await bench.clock.advance(60_000);
  assert.equal(bench.watches, 13);
  assert.deepEqual(bench.logged, ["Health of devices is not watched"]);
  reports = [report("Healthy")];
  await bench.clock.advance(5000);
  assert.equal(bench.logged.length, 2);
  bench.drivers.deregister({ name: "gpu.example.com", endpoint: "/a", versions: [] });
});

test("health stays known when the stream of one of two connected instances ends", async () => {
  const bench = new Bench();
  bench.watch = async function* () {};
  for (const endpoint of ["/old", "/new"]) {
    bench.register(endpoint);
    bench.connections.get(endpoint)?.connected(true);
  }
  await bench.clock.advance(0);
  assert.deepEqual(
    bench.heard.filter((what) => what.endsWith("unknown")),
    [],
  );
  for (const endpoint of ["/old", "/new"]) {
    bench.drivers.deregister({ name: "gpu.example.com", endpoint, versions: [] });
  }
  await bench.clock.advance(5000);
});

test("a driver without the health service is asked again only when it was gone", async () => {
  const bench = new Bench();
  bench.watch = async function* () {
    yield* await Promise.reject<DeviceReports[]>(new CodedError("Unimplemented", "unknown service"));
  };
  bench.register("/a");
  const connection = bench.connections.get("/a");
  connection?.connected(true);
  await bench.clock.advance(600_000);
  assert.equal(bench.watches, 1);
  connection?.connected(false);
  await bench.clock.advance(1000);
  connection?.connected(true);
  await bench.clock.advance(1000);
  assert.equal(bench.watches, 2);
});

test("health reports without end are read at a bounded rate", async () => {
  const bench = new Bench();
  bench.watch = async function* ({ signal }) {
    for (let at = 0; at < 1000 && !signal.aborted; at++) yield sent([report("Healthy")]);
    await new Promise(() => undefined);
  };
  bench.register("/a.sock");
  bench.connections.get("/a.sock")?.connected(true);
  await bench.clock.advance(1000);
  const read = bench.heard.filter((line) => line.endsWith("is Healthy")).length;
  assert.ok(read >= 20 && read <= 30, `${read} reports in a second`);
});

test("health reports of very many devices without end are read now and then", async () => {
  const bench = new Bench();
  const reports = Array.from({ length: 10_000 }, () => report("Healthy"));
  bench.watch = async function* ({ signal }) {
    for (let at = 0; at < 1000 && !signal.aborted; at++) yield sent(reports);
    await new Promise(() => undefined);
  };
  bench.register("/a.sock");
  bench.connections.get("/a.sock")?.connected(true);
  await bench.clock.advance(2000);
  const read = bench.heard.filter((line) => line.endsWith("Healthy")).length;
  assert.ok(read >= 4 && read <= 7, `${read} reports in two seconds`);
});

test("long messages about the health of few devices are read now and then, none is decoded before its turn", async () => {
  const bench = new Bench();
  let decoded = 0;
  const read = () => {
    decoded++;
    return [report("Healthy")];
  };
  bench.watch = async function* ({ signal }) {
    for (let at = 0; at < 1000 && !signal.aborted; at++) yield { bytes: 1_000_000, read };
    await new Promise(() => undefined);
  };
  bench.register("/a.sock");
  bench.connections.get("/a.sock")?.connected(true);
  await bench.clock.advance(3000);
  assert.ok(decoded >= 2 && decoded <= 3, `${decoded} messages of 1 MB in 3 s`);
});

test("a message about health that cannot be decoded ends the stream, and its size counts", async () => {
  const bench = new Bench();
  let decoded = 0;
  const read = () => {
    decoded++;
    throw new CodedError("Unknown", "the message has too many fields");
  };
  bench.watch = async function* () {
    yield { bytes: 4_000_000, read };
  };
  bench.register("/a.sock");
  bench.connections.get("/a.sock")?.connected(true);
  await bench.clock.advance(60_000);
  // Every 10 s by its size; without that every 5 s.
  assert.ok(decoded <= 8, `${decoded} messages of 4 MB in a minute`);
  assert.deepEqual(bench.logged, ["Health of devices is not watched"]);
  bench.drivers.deregister({ name: "gpu.example.com", endpoint: "/a.sock", versions: [] });
});
