import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../test/support/cpu-time.ts";
import { pod } from "../../test/support/pods.ts";
import { ApiError, type DeviceClaim, type KubeApi } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import { silent } from "../lib/log.ts";
import type { ClaimDevice } from "../model/claim-device.ts";
import { ConfigError } from "../model/config-error.ts";
import type { Pod, PodStatus } from "../model/generated/types.ts";
import { decodeClaims, encodeClaims } from "./checkpoint.ts";
import { ClaimPreparer } from "./claim-preparer.ts";
import { devicesOf } from "./claim-record.ts";
import { ClaimStore } from "./claim-store.ts";
import { Claims, type ClaimsOptions } from "./claims.ts";
import type { ClaimRef, DriverConnection } from "./drivers.ts";
import { containerRequests } from "./pod-claims.ts";

const never = { signal: new AbortController().signal };
const OPTIONS = { hasExtendedResources: true, acceptsGroups: false };

type Answer = { error: string; devices: readonly ClaimDevice[] };

/** A node with drivers that answer as a test wants; what is on disk outlives `restart`. */
class Bench {
  readonly calls: string[] = [];
  readonly claims = new Map<string, DeviceClaim>();
  readonly measured: string[] = [];
  /** How long each of these took, by the time of `nowMs`. */
  readonly tookMs: number[] = [];
  nowMs = 1000;
  /** How often the API was asked for a claim. */
  gets = 0;
  disk: unknown;
  isDiskFull = false;
  isDiskBroken = false;
  isApiDown = false;
  /** By driver; missing: not registered. */
  readonly drivers = new Map<string, Partial<DriverConnection>>();
  store!: ClaimStore;
  preparer!: ClaimPreparer;
  readonly locks = new KeyedMutex();

  constructor() {
    this.drivers.set("gpu.example.com", {});
    this.restart();
  }

  restart(): void {
    this.store = new ClaimStore({
      load: () => {
        if (this.isDiskBroken) throw new Error("EIO: i/o error");
        return decodeClaims(this.disk) ?? [];
      },
      save: (claims) => {
        if (this.isDiskFull) return Promise.reject(new Error("no space left on device"));
        this.disk = JSON.parse(JSON.stringify(encodeClaims(claims)));
        return Promise.resolve();
      },
    });
    // reason: nothing else of the API is called
    const get = ((_resource: unknown, { name }: { name: string }) => {
      this.gets++;
      if (this.isApiDown) return Promise.reject(new ApiError("Unavailable", "connection refused"));
      const claim = this.claims.get(name);
      if (claim === undefined) return Promise.reject(new ApiError("NotFound", `resourceclaims "${name}" not found`));
      return Promise.resolve(claim);
    }) as unknown as KubeApi["get"];
    const drivers = { get: (driver: string) => this.driver(driver) };
    const measured = (operation: string, ms: number, isError: boolean): void => {
      this.measured.push(`${operation} ${isError}`);
      this.tookMs.push(ms);
    };
    const deps = { store: this.store, locks: this.locks, drivers, api: { get }, measured, now: () => this.nowMs };
    this.preparer = new ClaimPreparer(deps, () => OPTIONS);
  }

  /** A claim that is allocated from drivers and reserved for pods. */
  claim(name: string, { drivers = ["gpu.example.com"], pods = [] as readonly Pod[], uid = `uid-${name}` } = {}): void {
    const results = drivers.map((driver) => ({ driver }));
    const reservedFor = pods.map(({ metadata }) => ({
      resource: "pods",
      name: metadata.name ?? "",
      uid: metadata.uid ?? "",
    }));
    const status = { allocation: { devices: { results } }, reservedFor };
    this.claims.set(name, { metadata: { name, namespace: "default", uid }, status });
  }

  cdi(name: string): readonly string[] {
    const record = this.store.get(`default/${name}`);
    return record === undefined ? [] : devicesOf(record).flatMap(({ cdiDevices }) => cdiDevices);
  }

  private driver(name: string): DriverConnection {
    const script = this.drivers.get(name);
    if (script === undefined) throw new Error(`DRA driver ${name} is not registered`);
    const names = (claims: readonly ClaimRef[]): string => claims.map((claim) => claim.name).join(",");
    return {
      prepare: (claims, options) => {
        this.calls.push(`prepare ${name} ${names(claims)}`);
        return script.prepare?.(claims, options) ?? Promise.resolve(new Map(claims.map((c) => [c.uid, good(name, c)])));
      },
      unprepare: (claims, options) => {
        this.calls.push(`unprepare ${name} ${names(claims)}`);
        return script.unprepare?.(claims, options) ?? Promise.resolve(new Map(claims.map((c) => [c.uid, ""])));
      },
      watchHealth: () => (async function* () {})(),
      watchConnection: () => undefined,
      close: () => undefined,
    };
  }
}

function good(driver: string, { name }: ClaimRef): Answer {
  const cdiDevices = [`example.com/${driver.split(".")[0]}=${name}`];
  return { error: "", devices: [{ driver, pool: "p", device: name, requests: [], cdiDevices }] };
}

function using(name: string, claims: readonly string[], status?: PodStatus): Pod {
  const resourceClaims = claims.map((claim) => ({ name: claim, resourceClaimName: claim }));
  return { ...pod(name).container("app").with({ resourceClaims }).build(), ...(status && { status }) };
}

describe("preparing claims", () => {
  test("all claims of a pod go to their driver in one call, each to its own drivers", async () => {
    const bench = new Bench();
    bench.drivers.set("nic.example.com", {});
    const web = using("web", ["a", "b"]);
    bench.claim("a", { pods: [web] });
    bench.claim("b", { pods: [web], drivers: ["gpu.example.com", "nic.example.com"] });
    await bench.preparer.prepare(web, never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a,b", "prepare nic.example.com b"]);
    assert.deepEqual(bench.cdi("b"), ["example.com/gpu=b", "example.com/nic=b"]);
    assert.deepEqual(bench.measured, ["PrepareResources false"]);
  });

  test("a claim that two entries of a pod name is prepared once", async () => {
    const bench = new Bench();
    const resourceClaims = ["first", "second"].map((name) => ({ name, resourceClaimName: "a" }));
    const web = pod("web").container("app").with({ resourceClaims }).build();
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    await bench.preparer.unprepare("uid-of-web", never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a", "unprepare gpu.example.com a"]);
  });

  test("tens of thousands of entries that name one claim do not block the agent, and the API is asked once", async () => {
    const bench = new Bench();
    const names = Array.from({ length: 20_000 }, (_, at) => `entry${at}`);
    const resourceClaims = names.map((name) => ({ name, resourceClaimName: "a" }));
    const resources = { claims: names.map((name) => ({ name })) };
    const web = pod("web").container("app", { resources }).with({ resourceClaims }).build();
    bench.claim("a", { pods: [web] });
    const cpuMs = countCpu();
    await bench.preparer.prepare(web, never);
    const [app = assert.fail()] = web.spec.containers;
    assert.equal(containerRequests(web, app, OPTIONS).get("a")?.length, names.length);
    // 0.1 s; it was 6 s.
    assert.ok(cpuMs() < 2000);
    assert.equal(bench.gets, 1);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a"]);
  });

  test("a pod with thousands of claims has them prepared and unprepared, and leaves no lock behind", async () => {
    const bench = new Bench();
    const names = Array.from({ length: 10_000 }, (_, at) => `claim${at}`);
    const web = using("web", names);
    for (const name of names) bench.claim(name, { pods: [web] });
    await bench.preparer.prepare(web, never);
    await bench.preparer.unprepare("uid-of-web", never);
    assert.deepEqual(
      bench.calls.map((call) => call.split(",").length),
      [names.length, names.length],
    );
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(bench.locks.size, 0);
  });

  test("a pod that gives up waiting for one of its claims leaves the others to other pods", async () => {
    const bench = new Bench();
    const [holder, waiter, other] = [using("holder", ["b"]), using("waiter", ["a", "b"]), using("other", ["a"])];
    bench.claim("a", { pods: [waiter, other] });
    bench.claim("b", { pods: [holder, waiter] });
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    bench.drivers.set("gpu.example.com", {
      prepare: (claims) => answered.then(() => new Map(claims.map((c) => [c.uid, good("gpu.example.com", c)]))),
    });
    const holding = bench.preparer.prepare(holder, never);
    const controller = new AbortController();
    const waiting = bench.preparer.prepare(waiter, controller);
    await new Promise((resolve) => setImmediate(resolve));
    const next = bench.preparer.prepare(other, never);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(bench.calls, ["prepare gpu.example.com b"]);
    controller.abort(new Error("deleted"));
    await assert.rejects(waiting, /^Error: deleted$/);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(bench.calls, ["prepare gpu.example.com b", "prepare gpu.example.com a"]);
    answer();
    await Promise.all([holding, next]);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(bench.locks.size, 0);
  });

  test("a driver that fills the checkpoint fails only claims of its own, and they are named", async () => {
    const bench = new Bench();
    const evil = "evil.example.com";
    const cdiDevices = Array.from({ length: 60 }, (_, at) => `${at}`.padEnd(1000, "x"));
    const fat = { error: "", devices: [{ driver: evil, pool: "p", device: "d", requests: [], cdiDevices }] };
    bench.drivers.set(evil, { prepare: (claims) => Promise.resolve(new Map(claims.map((c) => [c.uid, fat]))) });
    let refused: unknown;
    let count = 0;
    while (refused === undefined && count < 100) {
      const names = Array.from({ length: 10 }, (_, at) => `fat${count}${at}`);
      const web = using(`web${count++}`, names);
      for (const name of names) bench.claim(name, { pods: [web], drivers: [evil] });
      await bench.preparer.prepare(web, never).catch((error: unknown) => {
        refused = error;
      });
    }
    assert.match(
      String(refused),
      /prepare dynamic resources: checkpoint ResourceClaim default\/fat\d+: devices of driver evil.example.com would have \d+ bytes/,
    );
    assert.ok(Buffer.byteLength(JSON.stringify(bench.disk)) < 4 * 1024 * 1024);
    const other = using("other", ["a"]);
    bench.claim("a", { pods: [other] });
    await bench.preparer.prepare(other, never);
    assert.deepEqual(bench.cdi("a"), ["example.com/gpu=a"]);
    await bench.preparer.unprepare(`uid-of-web${count - 1}`, never);
    assert.equal(decodeClaims(bench.disk)?.length, 10 * (count - 1) + 1);
  });

  test("a claim of two pods is prepared once and unprepared when the last one ends", async () => {
    const bench = new Bench();
    const [one, two] = [using("one", ["a"]), using("two", ["a"])];
    bench.claim("a", { pods: [one, two] });
    await Promise.all([bench.preparer.prepare(one, never), bench.preparer.prepare(two, never)]);
    await bench.preparer.unprepare("uid-of-one", never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a"]);
    await bench.preparer.unprepare("uid-of-two", never);
    await bench.preparer.unprepare("uid-of-two", never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a", "unprepare gpu.example.com a"]);
    assert.deepEqual(decodeClaims(bench.disk), []);
  });

  test("two pods that name the same claims in another order do not wait for each other", async () => {
    const bench = new Bench();
    const holders = ["a", "b"].map((name) => using(`holder-${name}`, [name]));
    const pods = [using("one", ["a", "b"]), using("two", ["b", "a"])];
    for (const name of ["a", "b"]) bench.claim(name, { pods: [...holders, ...pods] });
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    bench.drivers.set("gpu.example.com", {
      prepare: (claims) => answered.then(() => new Map(claims.map((c) => [c.uid, good("gpu.example.com", c)]))),
    });
    const all = [...holders, ...pods].map((one) => bench.preparer.prepare(one, never));
    await new Promise((resolve) => setImmediate(resolve));
    answer();
    await Promise.all(all);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a", "prepare gpu.example.com b"]);
  });

  test("after a restart of the agent a pod's claims are unprepared, also if their objects are gone", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    bench.claims.clear();
    bench.restart();
    assert.deepEqual(bench.cdi("a"), ["example.com/gpu=a"]);
    await bench.preparer.unprepare("uid-of-web", never);
    assert.equal(bench.calls.at(-1), "unprepare gpu.example.com a");
  });

  test("after a restart a new sandbox has the claims prepared again, without the API server, too", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    bench.restart();
    bench.isApiDown = true;
    await bench.preparer.prepare(web, never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com a", "prepare gpu.example.com a"]);
    assert.deepEqual(bench.cdi("a"), ["example.com/gpu=a"]);
    await assert.rejects(bench.preparer.prepare(using("new", ["a"]), never), /fetch ResourceClaim a: connection/);
  });

  test("which pod uses a claim is on disk before the driver is called; nothing happens if it cannot be", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    bench.isDiskFull = true;
    await assert.rejects(bench.preparer.prepare(web, never), /prepare dynamic resources: no space left/);
    assert.deepEqual(bench.calls, []);
    bench.isDiskFull = false;
    let seen: unknown;
    bench.drivers.set("gpu.example.com", {
      prepare: () => {
        seen = decodeClaims(bench.disk)?.[0]?.pods;
        return Promise.reject(new Error("killed"));
      },
    });
    await assert.rejects(bench.preparer.prepare(web, never), /NodePrepareResources: killed/);
    assert.deepEqual(seen, new Set(["uid-of-web"]));
    await bench.preparer.unprepare("uid-of-web", never);
    assert.equal(bench.calls.at(-1), "unprepare gpu.example.com a");
  });

  test("what drivers prepared is on disk before the pod starts, or the pod does not start", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    bench.drivers.set("gpu.example.com", {
      prepare: (claims) => {
        bench.isDiskFull = true;
        return Promise.resolve(new Map(claims.map((c) => [c.uid, good("gpu.example.com", c)])));
      },
    });
    await assert.rejects(bench.preparer.prepare(web, never), /prepare dynamic resources: no space left/);
    bench.isDiskFull = false;
    await bench.preparer.prepare(web, never);
    assert.deepEqual(decodeClaims(bench.disk)?.flatMap(devicesOf).length, 1);
  });

  test("a pod has ended only when it is on disk that its claims are unprepared", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    bench.isDiskFull = true;
    await assert.rejects(bench.preparer.unprepare("uid-of-web", never), /unprepare dynamic resources: no space left/);
  });

  test("a claim is prepared for one pod at a time, also if it is not the first of the pod's claims", async () => {
    const bench = new Bench();
    const [one, two] = [using("one", ["a", "b", "c"]), using("two", ["b", "c"])];
    bench.claim("a", { pods: [one] });
    for (const name of ["b", "c"]) bench.claim(name, { pods: [one, two] });
    await Promise.all([one, two].map((each) => bench.preparer.prepare(each, never)));
    assert.equal(bench.calls.flatMap((call) => call.split(/[ ,]/)).filter((name) => name === "b").length, 1);
    assert.deepEqual(bench.store.get("default/c")?.pods, new Set(["uid-of-one", "uid-of-two"]));
    assert.equal(bench.calls.flatMap((call) => call.split(/[ ,]/)).filter((name) => name === "c").length, 1);
  });

  test("nothing is prepared while the claims of an earlier run cannot be read, and none of them is lost", async () => {
    const bench = new Bench();
    const [old, web] = [using("old", ["a"]), using("web", ["b"])];
    bench.claim("a", { pods: [old] });
    bench.claim("b", { pods: [web] });
    await bench.preparer.prepare(old, never);
    bench.isDiskBroken = true;
    bench.restart();
    bench.calls.length = 0;
    await assert.rejects(bench.preparer.prepare(web, never), /prepare dynamic resources: EIO: i\/o error/);
    await bench.preparer.unprepare("uid-of-other", never);
    assert.deepEqual(bench.calls, []);
    bench.isDiskBroken = false;
    await bench.preparer.prepare(web, never);
    await bench.preparer.unprepare("uid-of-old", never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com b", "unprepare gpu.example.com a"]);
  });

  test("a driver that fails for one claim is asked again for all of them", async () => {
    const bench = new Bench();
    const web = using("web", ["a", "b"]);
    bench.claim("a", { pods: [web] });
    bench.claim("b", { pods: [web] });
    const bad: Answer = { error: "out of memory", devices: [] };
    bench.drivers.set("gpu.example.com", {
      prepare: (claims) =>
        Promise.resolve(new Map(claims.map((c) => [c.uid, c.name === "b" ? bad : good("gpu.example.com", c)]))),
    });
    await assert.rejects(
      bench.preparer.prepare(web, never),
      /^Error: prepare dynamic resources: NodePrepareResources failed for ResourceClaim b: out of memory$/,
    );
    bench.drivers.set("gpu.example.com", {});
    await bench.preparer.prepare(web, never);
    assert.equal(bench.calls.at(-1), "prepare gpu.example.com a,b");
    assert.deepEqual(bench.measured, ["PrepareResources true", "PrepareResources false"]);
  });

  const answers: readonly (readonly [string, ReadonlyMap<string, Answer>, RegExp])[] = [
    ["no claim at all", new Map(), /NodePrepareResources skipped 1 ResourceClaims/],
    ["an unknown claim", new Map([["other", { error: "", devices: [] }]]), /unknown claim UID other/],
  ];
  for (const [name, answer, want] of answers) {
    test(`a driver that answers about ${name} has failed`, async () => {
      const bench = new Bench();
      const web = using("web", ["a"]);
      bench.claim("a", { pods: [web] });
      bench.drivers.set("gpu.example.com", { prepare: () => Promise.resolve(answer) });
      await assert.rejects(bench.preparer.prepare(web, never), want);
    });
  }

  test("a claim that cannot be used fails before anything is noted, so that the pod can end without a driver", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a");
    await assert.rejects(bench.preparer.prepare(web, never), /pod web \(uid-of-web\) is not allowed to use/);
    bench.claim("a", { pods: [web], drivers: ["none.example.com"] });
    await assert.rejects(bench.preparer.prepare(web, never), /DRA driver none.example.com is not registered/);
    bench.claims.set("a", {
      metadata: { name: "a", namespace: "default", uid: "u" },
      status: { reservedFor: [{ resource: "pods", name: "web", uid: "uid-of-web" }] },
    });
    await assert.rejects(bench.preparer.prepare(web, never), /ResourceClaim a: not allocated/);
    assert.deepEqual(bench.store.list(), []);
    await bench.preparer.unprepare("uid-of-web", never);
    assert.deepEqual(bench.calls, []);
  });

  test("a claim of the same name with another UID waits until the old one is unprepared", async () => {
    const bench = new Bench();
    const [one, two] = [using("one", ["a"]), using("two", ["a"])];
    bench.claim("a", { pods: [one] });
    await bench.preparer.prepare(one, never);
    bench.claim("a", { pods: [two], uid: "second" });
    await assert.rejects(bench.preparer.prepare(two, never), /old ResourceClaim with same name a and different UID/);
    await bench.preparer.unprepare("uid-of-one", never);
    await bench.preparer.prepare(two, never);
    assert.equal(bench.store.get("default/a")?.uid, "second");
  });

  test("a claim of the same name waits for the old one, also if the checkpoint could not be read at first", async () => {
    const bench = new Bench();
    const [one, two] = [using("one", ["a"]), using("two", ["a"])];
    bench.claim("a", { pods: [one] });
    await bench.preparer.prepare(one, never);
    bench.claim("a", { pods: [two], uid: "second" });
    bench.isDiskBroken = true;
    bench.restart();
    bench.isDiskBroken = false;
    await assert.rejects(bench.preparer.prepare(two, never), /old ResourceClaim with same name a and different UID/);
    assert.equal(bench.store.get("default/a")?.uid, "uid-a");
    await bench.preparer.unprepare("uid-of-one", never);
    await bench.preparer.prepare(two, never);
    assert.equal(bench.store.get("default/a")?.uid, "second");
  });

  test("a claim of a template is found by the pod's status and must belong to the pod", async () => {
    const bench = new Bench();
    const base = pod("web")
      .container("app")
      .with({ resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }] })
      .build();
    await assert.rejects(bench.preparer.prepare(base, never), /ResourceClaim not created yet/);
    const web = { ...base, status: { resourceClaimStatuses: [{ name: "gpu", resourceClaimName: "web-gpu-x" }] } };
    bench.claim("web-gpu-x", { pods: [web] });
    await assert.rejects(bench.preparer.prepare(web, never), /was not created for Pod default\/web/);
    const claim = bench.claims.get("web-gpu-x");
    assert.ok(claim);
    const owner = { apiVersion: "v1", kind: "Pod", name: "web", uid: "uid-of-web", controller: true };
    bench.claims.set("web-gpu-x", { ...claim, metadata: { ...claim.metadata, ownerReferences: [owner] } });
    await bench.preparer.prepare(web, never);
    assert.deepEqual(bench.cdi("web-gpu-x"), ["example.com/gpu=web-gpu-x"]);
  });

  test("a claim that the scheduler made for extended resources is prepared, too", async () => {
    const bench = new Bench();
    const extendedResourceClaimStatus = { resourceClaimName: "ext", requestMappings: [] };
    const web = { ...pod("web").container("app").build(), status: { extendedResourceClaimStatus } };
    bench.claim("ext", { pods: [web] });
    await bench.preparer.prepare(web, never);
    assert.deepEqual(bench.calls, ["prepare gpu.example.com ext"]);
  });

  test("an interrupt ends the wait for a driver that never answers, and another pod's claims do not wait", async () => {
    const bench = new Bench();
    const [one, two] = [using("one", ["a"]), using("two", ["b"])];
    bench.claim("a", { pods: [one] });
    bench.claim("b", { pods: [two], drivers: ["nic.example.com"] });
    bench.drivers.set("nic.example.com", {});
    bench.drivers.set("gpu.example.com", {
      prepare: (_claims, { signal }) =>
        new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    });
    const controller = new AbortController();
    const waiting = bench.preparer.prepare(one, controller);
    await bench.preparer.prepare(two, never);
    controller.abort(new Error("deleted"));
    await assert.rejects(waiting, /^Error: deleted$/);
  });

  const refusals: readonly (readonly [string, ReadonlyMap<string, string>, RegExp])[] = [
    ["an error", new Map([["uid-a", "busy"]]), /NodeUnprepareResources failed for ResourceClaim a: busy/],
    ["nothing", new Map(), /NodeUnprepareResources skipped 1 ResourceClaims/],
  ];
  for (const [name, answer, want] of refusals) {
    test(`a claim stays in use if its driver answers ${name} when it is to unprepare it`, async () => {
      const bench = new Bench();
      const web = using("web", ["a"]);
      bench.claim("a", { pods: [web] });
      await bench.preparer.prepare(web, never);
      bench.drivers.set("gpu.example.com", { unprepare: () => Promise.resolve(answer) });
      await assert.rejects(bench.preparer.unprepare("uid-of-web", never), want);
      assert.deepEqual(
        ["uid-of-web", "uid-of-other"].map((uid) => bench.store.isUsedBy(uid)),
        [true, false],
      );
      bench.drivers.set("gpu.example.com", {});
      await bench.preparer.unprepare("uid-of-web", never);
      assert.equal(bench.store.isUsedBy("uid-of-web"), false);
    });
  }

  test("a driver that fails to unprepare is told by the name of the call", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    bench.drivers.set("gpu.example.com", { unprepare: () => Promise.reject(new Error("busy")) });
    const why = /^Error: unprepare dynamic resources: NodeUnprepareResources: busy$/;
    await assert.rejects(bench.preparer.unprepare("uid-of-web", never), why);
  });

  test("a claim whose object is gone is not prepared again for a pod that used it", async () => {
    const bench = new Bench();
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    bench.claims.clear();
    bench.restart();
    await assert.rejects(bench.preparer.prepare(web, never), /fetch ResourceClaim a: resourceclaims "a" not found/);
  });

  test("the time is measured that drivers take for a pod", async () => {
    const bench = new Bench();
    bench.drivers.set("gpu.example.com", {
      prepare: (claims) => {
        bench.nowMs += 250;
        return Promise.resolve(new Map(claims.map((c) => [c.uid, good("gpu.example.com", c)])));
      },
    });
    const web = using("web", ["a"]);
    bench.claim("a", { pods: [web] });
    await bench.preparer.prepare(web, never);
    assert.deepEqual(bench.tookMs, [250]);
  });

  test("nothing is measured for a pod without claims", async () => {
    const bench = new Bench();
    await bench.preparer.prepare(pod("web").container("app").build(), never);
    await bench.preparer.unprepare("uid-of-web", never);
    assert.deepEqual(bench.measured, []);
  });

  test("one driver that cannot unprepare keeps only its own claims", async () => {
    const bench = new Bench();
    bench.drivers.set("nic.example.com", {});
    const web = using("web", ["a", "b"]);
    bench.claim("a", { pods: [web] });
    bench.claim("b", { pods: [web], drivers: ["nic.example.com"] });
    await bench.preparer.prepare(web, never);
    bench.drivers.delete("gpu.example.com");
    await assert.rejects(
      bench.preparer.unprepare("uid-of-web", never),
      /unprepare dynamic resources: DRA driver gpu.example.com is not registered/,
    );
    assert.deepEqual(
      bench.store.list().map(({ name }) => name),
      ["a"],
    );
    bench.drivers.set("gpu.example.com", {});
    await bench.preparer.unprepare("uid-of-web", never);
    assert.deepEqual(bench.store.list(), []);
  });
});

/** Claims over the bench; `pods` is what the node knows. */
function claimsOn(bench: Bench, options: Partial<ClaimsOptions> = {}) {
  const clock = new FakeClock();
  const pods = { isComplete: true, known: new Set<string>(), complete: (): void => undefined };
  const claims = new Claims(
    {
      store: bench.store,
      preparer: bench.preparer,
      clock,
      log: silent,
      healthOf: () => ({ health: "Healthy", message: "" }),
      pods: {
        get isComplete() {
          return pods.isComplete;
        },
        isKnown: (uid) => pods.known.has(uid),
        onComplete: (fn) => {
          pods.complete = fn;
        },
      },
    },
    () => ({ ...OPTIONS, hasHealth: true, hasHealthMessage: false, ...options }),
  );
  return { claims, clock, pods };
}

test("a container gets nothing of a claim that its pod may not use, whatever the status of the pod says", async () => {
  const bench = new Bench();
  const owner = using("owner", ["secret"]);
  bench.claim("secret", { pods: [owner] });
  await bench.preparer.prepare(owner, never);
  const { claims } = claimsOn(bench);
  const container = { name: "app", resources: { claims: [{ name: "secret" }] } };
  const thief = using("thief", ["secret"]);
  assert.deepEqual(claims.claimsOf(thief, container), []);
  assert.deepEqual(claims.healthOf(thief, container), []);
  const creation = { container, interrupt: never.signal };
  await assert.rejects(claims.contribute({ ...creation, pod: thief }), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.match(error.message, /thief .* is not allowed to use ResourceClaim/);
    return true;
  });
  assert.deepEqual(await claims.contribute({ ...creation, pod: owner }), { cdiDevices: ["example.com/gpu=secret"] });
});

test("what is prepared is shown by name and by the health of its devices, and no server is asked for it", async () => {
  const bench = new Bench();
  const web = using("web", ["a"]);
  bench.claim("a", { pods: [web] });
  await bench.preparer.prepare(web, never);
  const { claims } = claimsOn(bench);
  const container = { name: "app", resources: { claims: [{ name: "a" }] } };
  const before = bench.gets;
  await claims.contribute({ pod: web, container, interrupt: never.signal });
  assert.equal(bench.gets, before);
  const [shown] = claims.claimsOf(web, container);
  assert.deepEqual(
    [shown?.namespace, shown?.name, shown?.devices.map(({ device }) => device)],
    ["default", "a", ["a"]],
  );
  const health = [{ name: "claim:a", resources: [{ resourceID: "example.com/gpu=a", health: "Healthy" }] }];
  assert.deepEqual(claims.healthOf(web, container), health);
  assert.deepEqual(claims.healthOf(web, { name: "app" }), []);
  assert.deepEqual(claimsOn(bench, { hasHealth: false }).claims.healthOf(web, container), []);
});

test("of two claims of a container the one is shown that is prepared", async () => {
  const bench = new Bench();
  const web = using("web", ["a", "b"]);
  bench.claim("b", { pods: [web] });
  await bench.preparer.prepare(using("web", ["b"]), never);
  const container = { name: "app", resources: { claims: ["a", "b"].map((name) => ({ name })) } };
  const shown = claimsOn(bench).claims.claimsOf(web, container);
  assert.deepEqual(
    shown.map(({ name }) => name),
    ["b"],
  );
});

test("a container of two claims of which one is not known any more has both prepared", async () => {
  const bench = new Bench();
  const web = using("web", ["a", "b"]);
  for (const name of ["a", "b"]) bench.claim(name, { pods: [web] });
  await bench.preparer.prepare(using("web", ["a"]), never);
  const container = { name: "app", resources: { claims: ["a", "b"].map((name) => ({ name })) } };
  const { cdiDevices } = await claimsOn(bench).claims.contribute({ pod: web, container, interrupt: never.signal });
  assert.deepEqual(cdiDevices, ["example.com/gpu=a", "example.com/gpu=b"]);
});

test("a container gets the devices of the requests that it names, and of extended resources that it asks for", async () => {
  const bench = new Bench();
  const requestMappings = [
    { containerName: "app", resourceName: "example.com/gpu", requestName: "ext-0" },
    { containerName: "app", resourceName: "example.com/other", requestName: "ext-1" },
    { containerName: "sidecar", resourceName: "example.com/gpu", requestName: "ext-2" },
  ];
  const web = using("web", ["a"], { extendedResourceClaimStatus: { resourceClaimName: "ext", requestMappings } });
  for (const name of ["a", "ext"]) bench.claim(name, { pods: [web] });
  const device = (request: string): ClaimDevice => {
    return { driver: "gpu.example.com", pool: "p", device: request, requests: [request], cdiDevices: [`x=${request}`] };
  };
  const requests: Readonly<Record<string, readonly string[]>> = {
    a: ["one", "two", "three"],
    ext: ["ext-0", "ext-1", "ext-2"],
  };
  bench.drivers.set("gpu.example.com", {
    prepare: async (claims) =>
      new Map(claims.map(({ uid, name }) => [uid, { error: "", devices: (requests[name] ?? []).map(device) }])),
  });
  await bench.preparer.prepare(web, never);
  const container = {
    name: "app",
    resources: {
      claims: ["one", "three"].map((request) => ({ name: "a", request })),
      requests: { "example.com/gpu": "1", "example.com/other": "0" },
    },
  };
  const { cdiDevices } = await claimsOn(bench).claims.contribute({ container, pod: web, interrupt: never.signal });
  assert.deepEqual(cdiDevices, ["x=one", "x=three", "x=ext-0"]);
});

test("an interrupt of a container's creation is no error of its configuration", async () => {
  const bench = new Bench();
  const web = using("web", ["a"]);
  bench.claim("a", { pods: [web] });
  const stop = new AbortController();
  bench.drivers.set("gpu.example.com", {
    prepare: () => {
      stop.abort(new Error("deleted"));
      return Promise.reject(new Error("cancelled"));
    },
  });
  const container = { name: "app", resources: { claims: [{ name: "a" }] } };
  const creation = { pod: web, container, interrupt: stop.signal };
  await assert.rejects(claimsOn(bench).claims.contribute(creation), { name: "Error", message: "deleted" });
});

describe("claims of pods that are gone", () => {
  async function left() {
    const bench = new Bench();
    const pods = [using("web", ["a"]), using("gone", ["b"])];
    for (const name of ["a", "b"]) bench.claim(name, { pods });
    for (const one of pods) await bench.preparer.prepare(one, never);
    bench.calls.length = 0;
    const made = claimsOn(bench);
    made.pods.known.add("uid-of-web");
    const stop = new AbortController();
    return { bench, ...made, stop, start: () => made.claims.run(stop.signal) };
  }

  test("are unprepared once all pods are known, and no others", async () => {
    const { bench, pods, clock, stop, start } = await left();
    pods.isComplete = false;
    const running = start();
    await clock.advance(59_000);
    assert.deepEqual(bench.calls, []);
    pods.isComplete = true;
    pods.complete();
    await clock.advance(0);
    assert.deepEqual(bench.calls, ["unprepare gpu.example.com b"]);
    stop.abort();
    await running;
  });

  test("are tried again each minute, and when a driver is back", async () => {
    const { bench, claims, clock, stop, start } = await left();
    bench.drivers.set("gpu.example.com", { unprepare: () => Promise.reject(new Error("busy")) });
    const running = start();
    await clock.advance(59_999);
    assert.equal(bench.calls.length, 1);
    await clock.advance(1);
    assert.equal(bench.calls.length, 2);
    bench.drivers.set("gpu.example.com", {});
    claims.driverChanged();
    await clock.advance(0);
    assert.deepEqual([bench.calls.length, bench.store.list().map(({ name }) => name)], [3, ["a"]]);
    stop.abort();
    await running;
  });

  test("are not measured when they are unprepared: no pod waits for it", async () => {
    const { bench, clock, stop, start } = await left();
    bench.measured.length = 0;
    const running = start();
    await clock.advance(0);
    assert.deepEqual([bench.calls.length, bench.measured], [1, []]);
    stop.abort();
    await running;
  });

  test("are unprepared also if those of another such pod cannot be", async () => {
    const bench = new Bench();
    bench.drivers.set("nic.example.com", {});
    const pods = [using("first", ["a"]), using("second", ["b"])];
    bench.claim("a", { pods });
    bench.claim("b", { pods, drivers: ["nic.example.com"] });
    for (const one of pods) await bench.preparer.prepare(one, never);
    bench.drivers.delete("gpu.example.com");
    const { claims, clock } = claimsOn(bench);
    const stop = new AbortController();
    const running = claims.run(stop.signal);
    await clock.advance(0);
    assert.deepEqual(
      bench.store.list().map(({ name }) => name),
      ["a"],
    );
    stop.abort();
    await running;
  });

  test("are found once the checkpoint of an earlier run can be read", async () => {
    const { bench } = await left();
    bench.isDiskBroken = true;
    bench.restart();
    const { claims, clock } = claimsOn(bench);
    const stop = new AbortController();
    const running = claims.run(stop.signal);
    await clock.advance(0);
    assert.deepEqual(bench.calls, []);
    bench.isDiskBroken = false;
    await clock.advance(60_000);
    assert.deepEqual(bench.calls, ["unprepare gpu.example.com a", "unprepare gpu.example.com b"]);
    stop.abort();
    await running;
  });
});
