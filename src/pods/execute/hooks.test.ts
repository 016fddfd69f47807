import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import { FakeClock } from "../../lib/clock.ts";
import { CodedError } from "../../lib/errors.ts";
import type { Lifecycle } from "../../model/generated/types.ts";
import { runHook } from "./hooks.ts";

function web(lifecycle: Lifecycle, grace = 30) {
  return pod("web").container("app", { lifecycle }).with({ terminationGracePeriodSeconds: grace }).build();
}

function reasons(ring: FakeRing): string[] {
  return ring.journal.events(0).map(({ reason }) => reason);
}

describe("postStart", () => {
  test("runs after the start and delays the containers after it", async () => {
    const ring = new FakeRing({ app: { exec: () => ({ takesMs: 500 }) } });
    const lifecycle = { postStart: { exec: { command: ["prepare"] } } };
    await ring.want(pod("web").container("app", { lifecycle }).container("side").build());
    assert.deepEqual(
      (await ring.containers()).map(({ name }) => name),
      ["app"],
    );
    await ring.clock.advance(500);
    assert.deepEqual(
      (await ring.containers()).map(({ name, state }) => `${name} ${state}`),
      ["app running", "side running"],
    );
  });

  test("its failure ends the container, and is reported", async () => {
    const ring = new FakeRing({ app: { exec: () => ({ exitCode: 3, stdout: "no database" }) } });
    await ring.want(web({ postStart: { exec: { command: ["prepare"] } } }));
    const waiting = ring.status()?.containerStatuses?.[0]?.state?.waiting;
    assert.equal(waiting?.reason, "PostStartHookError");
    assert.match(waiting?.message ?? "", /\(\[prepare\]\) for Container "app" in Pod "web" failed.*no database/);
    assert.ok(reasons(ring).includes("FailedPostStartHook"));
    assert.equal((await ring.containers())[0]?.state, "exited");
  });

  test("its failure kills the container with its preStop hook, as in Kubernetes", async () => {
    const commands: string[] = [];
    const ring = new FakeRing({
      app: {
        exec: (command) => {
          commands.push(command.join(" "));
          return { exitCode: command[0] === "prepare" ? 1 : 0 };
        },
      },
    });
    await ring.want(web({ postStart: { exec: { command: ["prepare"] } }, preStop: { exec: { command: ["drain"] } } }));
    assert.deepEqual(commands.slice(0, 2), ["prepare", "drain"]);
    const killing = ring.journal.events(0).filter(({ reason }) => reason === "Killing");
    assert.deepEqual([...new Set(killing.map(({ message }) => message))], ["FailedPostStartHook"]);
  });

  test("is aborted when the pod is no longer wanted", async () => {
    const ring = new FakeRing();
    await ring.want(web({ postStart: { sleep: { seconds: 3600 } } }));
    await ring.want();
    assert.deepEqual(await ring.containers(), []);
  });

  test("does not hold the start lane", async () => {
    const ring = new FakeRing();
    const lifecycle = { postStart: { sleep: { seconds: 3600 } } };
    const slow = Array.from({ length: 12 }, (_, i) => pod(`p${i}`).container("app", { lifecycle }).build());
    await ring.want(...slow, pod("web").container("app").build());
    assert.equal(ring.status()?.phase, "Running");
  });
});

describe("preStop", () => {
  test("comes before the signal, and its time is taken off the grace period", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true, exec: () => ({ takesMs: 4000 }) } });
    await ring.want(web({ preStop: { exec: { command: ["drain"] } } }, 10));
    ring.publish();
    await ring.clock.advance(3999);
    assert.equal(ring.runtime.control.count("stopContainer"), 0);
    await ring.clock.advance(1);
    assert.equal(ring.runtime.control.count("stopContainer"), 1);
    await ring.clock.advance(5999);
    assert.equal((await ring.containers()).length, 1);
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
  });

  test("that hangs is cut off at the grace period; the signal still leaves two seconds", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    await ring.want(web({ preStop: { sleep: { seconds: 3600 } } }, 5));
    ring.publish();
    await ring.clock.advance(5000);
    assert.ok(reasons(ring).includes("FailedPreStopHook"));
    await ring.clock.advance(1999);
    assert.equal((await ring.containers()).length, 1);
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
  });

  test("that outlives the grace period goes on until the container is gone, and no longer", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    let asked: AbortSignal | undefined;
    ring.httpGet = (_request, { signal }) => {
      asked = signal;
      return new Promise(() => undefined);
    };
    await ring.want(web({ preStop: { httpGet: { port: 8080 } } }, 5));
    ring.publish();
    await ring.clock.advance(6999);
    assert.ok(reasons(ring).includes("FailedPreStopHook"));
    assert.equal(ring.runtime.control.count("stopContainer"), 1);
    assert.equal(asked?.aborted, false);
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
    assert.equal(asked?.aborted, true);
  });

  test("sends HTTP to the pod's IP; a server without TLS is retried with plain HTTP", async () => {
    const ring = new FakeRing();
    const asked: string[] = [];
    ring.httpGet = (request) => {
      asked.push(`${request.scheme} ${request.host}:${request.port}${request.target}`);
      const plain = new CodedError("PlainAnswer", "server gave HTTP response to HTTPS client");
      return request.scheme === "https" ? Promise.reject(plain) : Promise.resolve({ status: 500 });
    };
    await ring.want(web({ preStop: { httpGet: { port: 8080, path: "/bye?now=1", scheme: "HTTPS" } } }));
    const ip = ring.status()?.podIP;
    await ring.want();
    assert.deepEqual(asked, [`https ${ip}:8080/bye?now=1`, `http ${ip}:8080/bye?now=1`]);
    assert.ok(reasons(ring).includes("LifecycleHTTPFallback"));
    // Any answer is a success, also a 500.
    assert.equal(reasons(ring).includes("FailedPreStopHook"), false);
  });

  test("runs once, also when the kill begins again with a shorter grace period", async () => {
    let runs = 0;
    const ring = new FakeRing({
      app: {
        exec: () => {
          runs++;
          return { takesMs: 60_000 };
        },
      },
    });
    await ring.want(web({ preStop: { exec: { command: ["drain"] } } }, 300));
    ring.publish();
    await ring.clock.advance(1000);
    ring.pool.worker("uid-of-web")?.remove({ graceSeconds: 5 });
    await ring.clock.advance(5000);
    assert.equal(runs, 1);
    assert.deepEqual(await ring.containers(), []);
  });

  test("that runs goes on when the grace period is shortened, and is waited for", async () => {
    const ring = new FakeRing({ app: { exec: () => ({ takesMs: 3000 }) } });
    await ring.want(web({ preStop: { exec: { command: ["drain"] } } }, 300));
    ring.publish();
    await ring.clock.advance(1000);
    ring.pool.worker("uid-of-web")?.remove({ graceSeconds: 10 });
    await ring.clock.advance(1999);
    assert.equal(ring.runtime.control.count("stopContainer"), 0);
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
    assert.equal(ring.runtime.control.count("execSync"), 1);
    assert.equal(reasons(ring).includes("FailedPreStopHook"), false);
  });

  test("that hangs gets no more than the shortened grace period", async () => {
    const ring = new FakeRing({ app: { ignoresTerm: true } });
    let asked: AbortSignal | undefined;
    ring.httpGet = (_request, { signal }) => {
      asked = signal;
      return new Promise(() => undefined);
    };
    await ring.want(web({ preStop: { httpGet: { port: 8080 } } }, 300));
    ring.publish();
    await ring.clock.advance(100_000);
    ring.pool.worker("uid-of-web")?.remove({ graceSeconds: 5 });
    await ring.clock.advance(4999);
    assert.equal(ring.runtime.control.count("stopContainer"), 0);
    await ring.clock.advance(1);
    assert.equal(ring.runtime.control.count("stopContainer"), 1);
    ring.pool.worker("uid-of-web")?.remove({ graceSeconds: 1 });
    await ring.clock.advance(1999);
    assert.equal(asked?.aborted, false);
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
    assert.equal(asked?.aborted, true);
  });

  test("is neither waited for nor reported as failed when the agent stops", async () => {
    const ring = new FakeRing();
    await ring.want(web({ preStop: { sleep: { seconds: 20 } } }));
    ring.publish();
    await ring.clock.advance(1000);
    const { journal } = ring;
    await ring.restartAgent();
    assert.equal(
      journal.events(0).some(({ reason }) => reason === "FailedPreStopHook"),
      false,
    );
    assert.equal((await ring.containers())[0]?.state, "running");
  });

  test("of an orphaned pod is taken from the annotation, with the grace period of the pod", async () => {
    const ring = new FakeRing();
    await ring.want(web({ preStop: { sleep: { seconds: 20 } } }));
    await ring.restartAgent();
    await ring.want();
    await ring.clock.advance(19_999);
    assert.equal(ring.runtime.control.count("stopContainer"), 0);
    await ring.clock.advance(1);
    assert.deepEqual(await ring.containers(), []);
    assert.equal(reasons(ring).includes("FailedPreStopHook"), false);
  });

  test("of an orphaned pod may name a port of its container", async () => {
    const ring = new FakeRing();
    const ports = [{ name: "admin", containerPort: 9901 }];
    const lifecycle = { preStop: { httpGet: { port: "admin", path: "/quit" } } };
    await ring.want(pod("web").container("app", { lifecycle, ports }).build());
    const ip = ring.status()?.podIP;
    await ring.restartAgent();
    await ring.want();
    assert.deepEqual(ring.requests, [`http://${ip}:9901/quit`]);
  });
});

const outputs = { letters: "x", "control characters": "\u0001", "bytes that are no UTF-8": 0xff };
for (const [name, fill] of Object.entries(outputs)) {
  test(`the error of a hook is bounded, whatever the command and its output: ${name}`, async () => {
    const output = Buffer.alloc(10 * 1024 * 1024, fill);
    const owner = pod("web").container("app").build();
    const [container] = owner.spec.containers;
    assert.ok(container);
    const target = { pod: owner, container, containerId: "c1", podIp: "", onPlainHttp: () => undefined };
    const handler = { exec: { command: ["sh", "-c", "y".repeat(100 * 1024)] } };
    const deps = {
      runtime: { execSync: async () => ({ exitCode: 1, stdout: output, stderr: output }) },
      clock: new FakeClock(),
      httpGet: () => assert.fail("no request"),
    };
    const { signal } = new AbortController();
    await assert.rejects(runHook(deps, { handler, target }, { signal }), (error: Error) => {
      assert.match(error.message, /sh -c yyy.*exited with 1: .*bytes omitted.*, message: "/);
      assert.ok(Buffer.byteLength(error.message) < 4096, String(Buffer.byteLength(error.message)));
      return true;
    });
  });
}
