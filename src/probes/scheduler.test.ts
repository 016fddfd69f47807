import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { observed, pod, sandbox, seen } from "../../test/support/pods.ts";
import type { HttpAnswer } from "../adapters/net/http-answer.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Container, ContainerStatus, Pod, Probe } from "../model/generated/types.ts";
import type { HttpRequest } from "../model/http-action.ts";
import type { ObservedContainer, ObservedPod } from "../model/observed.ts";
import { type ProbeChange, type ProbeRun, ProbeScheduler } from "./scheduler.ts";

const UID = "uid-of-web";
const http: Probe = { httpGet: { port: 80 }, periodSeconds: 10, failureThreshold: 3 };

/** A scheduler with a world to probe: `answers` by path, all else is refused. */
class Bed {
  readonly clock = new FakeClock();
  readonly runs: ProbeRun[] = [];
  readonly changes: ProbeChange[] = [];
  readonly asked: HttpRequest[] = [];
  readonly forgotten: string[] = [];
  readonly records = new Map<string, string>();
  /** By path. */
  readonly answers = new Map<string, number>();
  stop = manyListeners();
  scheduler = this.start();

  start(): ProbeScheduler {
    this.stop = manyListeners();
    return new ProbeScheduler(
      {
        clock: this.clock,
        log: silent,
        runtime: { execSync: () => Promise.reject(new Error("no commands")) },
        net: {
          http: (request) => this.answer(request),
          tcp: () => Promise.resolve(),
          grpc: () => Promise.reject(new Error("no grpc")),
        },
        files: {
          load: (uid) => this.records.get(uid) ?? "",
          save: (uid, text) => Promise.resolve(void this.records.set(uid, text)),
        },
        hooks: {
          ran: (run) => this.runs.push(run),
          changed: (change) => this.changes.push(change),
          forgotten: ({ uid }) => this.forgotten.push(uid),
        },
      },
      { upstreamTiming: false, hostIp: "192.0.2.1", random: () => 0.5 },
      this.stop.signal,
    );
  }

  restart(): void {
    this.stop.abort();
    this.scheduler = this.start();
  }

  /** Follows a pod of one container as it is now; the instance began at the time of the first call. */
  follow(of: Pod, more: Partial<ObservedContainer> = {}): ObservedPod {
    const [container] = of.spec.containers;
    assert.ok(container !== undefined);
    const own = seen({ name: container.name, image: container.image }, { startedAt: this.clock.now().wall, ...more });
    const state = observed(of, [sandbox()], [own]);
    this.scheduler.follow(of, state);
    return state;
  }

  get results() {
    return this.scheduler.results(UID).get("app");
  }

  private answer(request: HttpRequest): Promise<HttpAnswer> {
    this.asked.push(request);
    const status = this.answers.get(request.target) ?? 503;
    return Promise.resolve({ status, location: undefined, body: "" });
  }
}

const at = (path: string, more: Partial<Probe> = {}): Probe => ({ ...http, httpGet: { port: 80, path }, ...more });
const web = (more: Partial<Container>): Pod => pod("web").container("app", more).build();

describe("the scheduler", () => {
  test("a pod without probes costs nothing", async () => {
    const bed = new Bed();
    bed.follow(web({}));
    await bed.clock.advance(0);
    assert.equal(bed.clock.waiting, 0);
    assert.equal(bed.results, undefined);
  });

  test("asks the pod's address, or the host's for a pod on its network", async () => {
    const bed = new Bed();
    bed.follow(web({ readinessProbe: at("/r") }));
    bed.scheduler.follow(
      pod("host")
        .container("app", { readinessProbe: at("/r") })
        .with({ hostNetwork: true })
        .build(),
      observed(
        pod("host").build(),
        [sandbox({ ips: [] })],
        [seen({ name: "app" }, { startedAt: bed.clock.now().wall })],
      ),
    );
    await bed.clock.advance(0);
    assert.deepEqual(
      bed.asked.map(({ host }) => host),
      ["10.0.0.5", "192.0.2.1"],
    );
  });

  test("ready once the probe succeeds, and the change is told once", async () => {
    const bed = new Bed();
    bed.follow(web({ readinessProbe: at("/r") }));
    await bed.clock.advance(2500);
    assert.equal(bed.results?.ready, false);
    bed.answers.set("/r", 200);
    await bed.clock.advance(500);
    assert.equal(bed.results?.ready, true);
    await bed.clock.advance(60_000);
    assert.deepEqual(
      bed.changes.map(({ kind, result }) => `${kind} ${result}`),
      ["readiness success"],
    );
  });

  test("failures of extra rounds are not told; those of the period are", async () => {
    const bed = new Bed();
    bed.follow(web({ readinessProbe: at("/r") }));
    await bed.clock.advance(9999);
    assert.ok(bed.asked.length >= 10);
    assert.deepEqual(bed.runs, []);
    await bed.clock.advance(1);
    assert.deepEqual(
      bed.runs.map(({ result, output }) => `${result} ${output}`),
      ["failure HTTP probe failed with statuscode: 503"],
    );
  });

  test("nothing but the startup probe runs until it has succeeded; then the others do", async () => {
    const bed = new Bed();
    const probes = { startupProbe: at("/s"), livenessProbe: at("/l"), readinessProbe: at("/r") };
    bed.follow(web({ ...probes, startupProbe: at("/s", { failureThreshold: 30 }) }));
    await bed.clock.advance(25_000);
    assert.deepEqual(new Set(bed.asked.map(({ target }) => target)), new Set(["/s"]));
    assert.deepEqual([bed.results?.started, bed.results?.startup], [false, "unknown"]);
    bed.answers.set("/s", 200);
    await bed.clock.advance(3000);
    assert.equal(bed.results?.started, true);
    bed.asked.length = 0;
    await bed.clock.advance(30_000);
    assert.equal(
      bed.asked.some(({ target }) => target === "/s"),
      false,
    );
    assert.equal(bed.asked.filter(({ target }) => target === "/l").length, 3);
    assert.equal(bed.results?.liveness, "failure");
  });

  test("liveness failed: held until there is another instance, which begins anew", async () => {
    const bed = new Bed();
    const own = web({ livenessProbe: at("/l") });
    bed.follow(own);
    await bed.clock.advance(30_000);
    assert.equal(bed.results?.liveness, "failure");
    const asked = bed.asked.length;
    await bed.clock.advance(100_000);
    assert.equal(bed.asked.length, asked);
    bed.follow(own, { id: "app-1", attempt: 1 });
    assert.deepEqual([bed.results?.containerId, bed.results?.liveness], ["app-1", "success"]);
    await bed.clock.advance(10_000);
    assert.equal(bed.asked.length, asked + 1);
  });

  test("an ended container is not probed and not ready", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    const own = web({ readinessProbe: at("/r") });
    bed.follow(own);
    await bed.clock.advance(100);
    bed.follow(own, { state: "exited" });
    assert.equal(bed.results?.ready, false);
    bed.asked.length = 0;
    await bed.clock.advance(100_000);
    assert.deepEqual(bed.asked, []);
    assert.equal(bed.clock.waiting, 0);
  });

  test("a pod that ends before it has started does not start any more", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    bed.follow(web({ startupProbe: at("/s"), readinessProbe: at("/r") }));
    await bed.clock.advance(1000);
    bed.scheduler.terminating(UID);
    bed.answers.set("/s", 200);
    await bed.clock.advance(30_000);
    assert.deepEqual([bed.results?.started, bed.results?.ready], [false, false]);
  });

  test("a pod that ends: liveness stops as a success, readiness goes on", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    bed.follow(web({ livenessProbe: at("/l"), readinessProbe: at("/r", { failureThreshold: 1 }) }));
    await bed.clock.advance(29_000);
    bed.scheduler.terminating(UID);
    bed.answers.delete("/r");
    await bed.clock.advance(12_000);
    assert.deepEqual([bed.results?.liveness, bed.results?.ready], ["success", false]);
    bed.scheduler.forget(UID);
    assert.equal(bed.results, undefined);
    assert.equal(bed.clock.waiting, 0);
  });

  test("probes are not changed by a later spec, and those of a container that is gone stop", async () => {
    const bed = new Bed();
    bed.follow(web({ readinessProbe: at("/old") }));
    await bed.clock.advance(100);
    bed.follow(web({ readinessProbe: at("/new") }), { startedAt: bed.clock.now().wall - 100 });
    await bed.clock.advance(20_000);
    assert.deepEqual(new Set(bed.asked.map(({ target }) => target)), new Set(["/old"]));
    bed.scheduler.follow(web({}), observed(web({}), [sandbox()], []));
    assert.equal(bed.results, undefined);
    assert.equal(bed.clock.waiting, 0);
  });

  test("a status that is made asks a container that is not ready at once", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    const startedAt = bed.clock.now().wall;
    const own = web({ readinessProbe: at("/r", { failureThreshold: 1 }) });
    bed.follow(own, { startedAt });
    await bed.clock.advance(5000);
    bed.answers.delete("/r");
    await bed.clock.advance(5000);
    assert.equal(bed.results?.ready, false);
    bed.answers.set("/r", 200);
    await bed.clock.advance(4000);
    bed.follow(own, { startedAt });
    await bed.clock.advance(50);
    assert.equal(bed.results?.ready, true);
  });

  test("a sidecar is probed, a plain init container is not", async () => {
    const bed = new Bed();
    const own = pod("web")
      .init("app", { readinessProbe: at("/side"), restartPolicy: "Always" })
      .init("plain", { readinessProbe: at("/plain") })
      .container("main")
      .build();
    const running = { startedAt: bed.clock.now().wall };
    bed.scheduler.follow(
      own,
      observed(own, [sandbox()], [seen({ name: "plain" }, running), seen({ name: "app" }, running)]),
    );
    await bed.clock.advance(5000);
    assert.deepEqual(new Set(bed.asked.map(({ target }) => target)), new Set(["/side"]));
  });
});

describe("another agent", () => {
  test("knows who was ready and started, and asks the first time within a period", async () => {
    const bed = new Bed();
    for (const path of ["/s", "/r", "/l"]) bed.answers.set(path, 200);
    const startedAt = bed.clock.now().wall;
    const own = web({ startupProbe: at("/s"), livenessProbe: at("/l"), readinessProbe: at("/r") });
    bed.follow(own, { startedAt });
    await bed.clock.advance(60_000);
    bed.restart();
    bed.asked.length = 0;
    bed.follow(own, { startedAt });
    assert.deepEqual([bed.results?.started, bed.results?.ready], [true, true]);
    await bed.clock.advance(4950);
    assert.deepEqual(bed.asked, []);
    await bed.clock.advance(50);
    assert.deepEqual(bed.asked.map(({ target }) => target).sort(), ["/l", "/r"]);
    assert.deepEqual(
      bed.changes.map(({ kind }) => kind),
      ["startup", "readiness"],
    );
  });

  test("does not take an instance for ready that took the place of a ready one", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    const own = web({ readinessProbe: at("/r") });
    bed.follow(own);
    await bed.clock.advance(60_000);
    bed.restart();
    bed.follow(own, { id: "app-1", startedAt: bed.clock.now().wall - 1000 });
    assert.equal(bed.results?.ready, false);
  });

  test("does not take one for ready that had lost its readiness", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    const startedAt = bed.clock.now().wall;
    const own = web({ readinessProbe: at("/r") });
    bed.follow(own, { startedAt });
    await bed.clock.advance(60_000);
    bed.answers.delete("/r");
    await bed.clock.advance(60_000);
    bed.restart();
    bed.follow(own, { startedAt });
    assert.equal(bed.results?.ready, false);
  });

  /** A pod as the API has it after another kubelet ran it: its container is older than this agent. */
  const takenOver = (status: Partial<ContainerStatus>): Pod => ({
    ...web({ startupProbe: at("/s", { failureThreshold: 1 }), readinessProbe: at("/r", { failureThreshold: 1 }) }),
    status: {
      containerStatuses: [
        {
          name: "app",
          image: "",
          imageID: "",
          restartCount: 0,
          containerID: "containerd://app-0",
          ready: true,
          ...status,
        },
      ],
    },
  });

  test("takes over what another kubelet reported: ready stays ready, and no startup probe runs again", async () => {
    const bed = new Bed();
    bed.follow(takenOver({ started: true }), { startedAt: bed.clock.now().wall - 60_000 });
    assert.deepEqual([bed.results?.started, bed.results?.ready], [true, true]);
    await bed.clock.advance(4950);
    assert.deepEqual(bed.asked, []);
    await bed.clock.advance(5000);
    assert.deepEqual(new Set(bed.asked.map(({ target }) => target)), new Set(["/r"]));
    assert.deepEqual([bed.results?.started, bed.results?.ready], [true, false]);
  });

  const notTakenOver: { name: string; status: Partial<ContainerStatus>; startedMs?: number; started?: boolean }[] = [
    { name: "of another instance", status: { started: true, containerID: "containerd://app-9" } },
    { name: "of a container that is younger than the agent", status: { started: true }, startedMs: 1000 },
    { name: "that it was not ready", status: { started: true, ready: false }, started: true },
  ];
  for (const { name, status, startedMs = -60_000, started = false } of notTakenOver) {
    test(`does not call a container ready by a report ${name}`, () => {
      const bed = new Bed();
      bed.follow(takenOver(status), { startedAt: bed.clock.now().wall + startedMs });
      assert.deepEqual([bed.results?.started, bed.results?.ready], [started, false]);
    });
  }

  test("trusts a report more than a record, which another kubelet did not write", async () => {
    const bed = new Bed();
    bed.records.set(UID, JSON.stringify({ version: 1, containers: { "app-0": { ready: true } } }));
    bed.follow(takenOver({ started: true, ready: false }), { startedAt: bed.clock.now().wall - 60_000 });
    assert.equal(bed.results?.ready, false);
  });

  test("asks at once when the record is lost or broken", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    const startedAt = bed.clock.now().wall;
    const own = web({ readinessProbe: at("/r") });
    bed.follow(own, { startedAt });
    await bed.clock.advance(60_000);
    bed.records.set(UID, "{ broken");
    bed.restart();
    bed.follow(own, { startedAt });
    await bed.clock.advance(0);
    assert.equal(bed.results?.ready, true);
  });

  test("nothing is written but when a flag flips, and nothing while the pod ends", async () => {
    const bed = new Bed();
    bed.answers.set("/r", 200);
    bed.follow(web({ readinessProbe: at("/r", { failureThreshold: 1 }) }));
    await bed.clock.advance(100);
    assert.deepEqual(JSON.parse(bed.records.get(UID) ?? ""), { version: 1, containers: { "app-0": { ready: true } } });
    bed.records.delete(UID);
    await bed.clock.advance(100_000);
    assert.equal(bed.records.has(UID), false);
    bed.scheduler.terminating(UID);
    bed.answers.delete("/r");
    await bed.clock.advance(20_000);
    assert.equal(bed.results?.ready, false);
    assert.equal(bed.records.has(UID), false);
  });

  test("an agent that ends leaves no timer", async () => {
    const bed = new Bed();
    bed.follow(web({ livenessProbe: at("/l"), readinessProbe: at("/r") }));
    await bed.clock.advance(1000);
    bed.stop.abort();
    await bed.clock.advance(0);
    assert.equal(bed.clock.waiting, 0);
  });
});

test("hundreds of probes of one period wake the agent a few times a second", async () => {
  const bed = new Bed();
  bed.answers.set("/r", 200);
  for (let index = 0; index < 300; index++) {
    const own = pod(`p${index}`)
      .container("app", { readinessProbe: at("/r", { periodSeconds: 1 }) })
      .build();
    const running = seen({ name: "app" }, { startedAt: bed.clock.now().wall });
    bed.scheduler.follow(own, observed(own, [sandbox()], [running]));
    await bed.clock.advance(3);
  }
  await bed.clock.advance(2000);
  assert.ok(bed.clock.waiting <= 20, `${bed.clock.waiting} timers`);
  bed.asked.length = 0;
  await bed.clock.advance(10_000);
  assert.equal(bed.asked.length, 3000);
});

describe("the report", () => {
  const one = (bed: Bed) => bed.scheduler.report(UID)[0];

  test("has the last run with its message, the streak, and the next run", async () => {
    const bed = new Bed();
    bed.answers.set("/", 200);
    bed.follow(pod("web", UID).container("app", { livenessProbe: http }).build());
    const fresh = one(bed);
    assert.deepEqual(
      [fresh?.kind, fresh?.result, fresh?.last, fresh?.streak],
      ["liveness", "success", undefined, undefined],
    );
    assert.equal(fresh?.nextAt, bed.clock.now().wall + 10_000);
    await bed.clock.advance(10_000);
    assert.equal(one(bed)?.last?.outcome, "success");
    assert.deepEqual(one(bed)?.streak, { of: "success", count: 1 });
    bed.answers.set("/", 500);
    await bed.clock.advance(20_000);
    const { last, streak, result } = one(bed) ?? {};
    assert.deepEqual([result, streak], ["success", { of: "failure", count: 2 }]);
    assert.equal(last?.outcome, "failure");
    assert.match(last?.message ?? "", /statuscode: 500/);
    assert.equal(last?.at, bed.clock.now().wall);
  });

  test("a new instance has no last run; a pod that is not probed has no report", async () => {
    const bed = new Bed();
    const web = pod("web", UID).container("app", { livenessProbe: http }).build();
    bed.answers.set("/", 200);
    bed.follow(web);
    await bed.clock.advance(10_000);
    assert.ok(one(bed)?.last);
    bed.follow(web, { id: "another" });
    assert.equal(one(bed)?.last, undefined);
    bed.scheduler.forget(UID);
    assert.deepEqual(bed.scheduler.report(UID), []);
  });
});
