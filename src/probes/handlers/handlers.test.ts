import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { HttpAnswer } from "../../adapters/net/http-answer.ts";
import { ProbeNetError } from "../../adapters/net/probe-error.ts";
import type { GrpcHealthAnswer } from "../../adapters/net/probe-grpc.ts";
import { type ExecCommand, RuntimeError } from "../../adapters/runtime/port.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { Container, Probe } from "../../model/generated/types.ts";
import type { HttpRequest } from "../../model/http-action.ts";
import { type Ran, runProbe } from "../run-probe.ts";
import type { HandlerDeps } from "./handler.ts";
import { handlerOf } from "./index.ts";

const clock = new FakeClock();
const nobody: HandlerDeps = {
  runtime: { execSync: () => Promise.reject(new Error("not asked for")) },
  net: {
    http: () => Promise.reject(new Error("not asked for")),
    tcp: () => Promise.reject(new Error("not asked for")),
    grpc: () => Promise.reject(new Error("not asked for")),
  },
};
const container: Container = { name: "app", ports: [{ name: "web", containerPort: 8080 }] };
/** Answers only when it is told to stop. */
const silent = <T>(_request: unknown, { signal }: { signal: AbortSignal }): Promise<T> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));

async function run(probe: Probe, deps: HandlerDeps, more: Partial<Container> = {}): Promise<Ran> {
  const handler = handlerOf(probe);
  assert.ok(handler !== undefined);
  const target = { container: { ...container, ...more }, containerId: "c1", podIp: "10.0.0.5" };
  const ran = runProbe({ ...deps, clock }, { handler, probe, target }, new AbortController());
  await clock.advance(2000);
  return ran;
}

describe("exec", () => {
  const answer = (exitCode: number, stdout = "", stderr = "") => ({
    ...nobody,
    runtime: {
      execSync: () => Promise.resolve({ exitCode, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }),
    },
  });
  const probe: Probe = { exec: { command: ["cat", "/x"] } };

  test("exit code 0 is a success", async () => {
    assert.deepEqual(await run(probe, answer(0, "fine")), { result: "success", output: "fine" });
  });

  test("any other is a failure, with both outputs", async () => {
    assert.deepEqual(await run(probe, answer(1, "out", "err")), { result: "failure", output: "outerr" });
  });

  test("the output is cut at 10 KiB", async () => {
    assert.equal((await run(probe, answer(1, "x".repeat(20_000)))).output.length, 10 * 1024);
  });

  test("a command that takes too long is a failure", async () => {
    const timeout = new RuntimeError("Timeout", "deadline exceeded");
    const ran = await run(
      { ...probe, timeoutSeconds: 2 },
      { ...nobody, runtime: { execSync: () => Promise.reject(timeout) } },
    );
    assert.deepEqual(ran, { result: "failure", output: 'command timed out: "cat /x" timed out after 2s' });
    const script = await run(
      { exec: { command: ["sh", "-c", 'test "$X"'] }, timeoutSeconds: 60 },
      { ...nobody, runtime: { execSync: () => Promise.reject(timeout) } },
    );
    assert.equal(script.output, 'command timed out: "sh -c test \\"$X\\"" timed out after 1m0s');
  });

  test("a command that cannot be run is tried three times, and says nothing about the container", async () => {
    let tries = 0;
    const execSync = (): Promise<never> => {
      tries++;
      return Promise.reject(new RuntimeError("Unknown", "no such file"));
    };
    assert.deepEqual(await run(probe, { ...nobody, runtime: { execSync } }), {
      result: "error",
      output: "no such file",
    });
    assert.equal(tries, 3);
  });

  test("variables with a value in the manifest are put in, others stay", async () => {
    const asked: ExecCommand[] = [];
    const execSync = (_id: string, command: ExecCommand) => {
      asked.push(command);
      return Promise.resolve({ exitCode: 0, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) });
    };
    const env = [
      { name: "A", value: "1" },
      { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ];
    const command = ["echo", "$(A) $(B) $(C) $$(A)"];
    await run({ exec: { command }, timeoutSeconds: 3 }, { ...nobody, runtime: { execSync } }, { env });
    assert.deepEqual(asked, [{ command: ["echo", "1 $(B) $(C) $(A)"], timeoutSeconds: 3 }]);
  });

  test("a command that variables make longer than 1 MiB fails, and nobody is asked to run it", async () => {
    const env = [{ name: "V", value: "x".repeat(500_000) }];
    const command = ["sh", "-c", "$(V)".repeat(400)];
    assert.deepEqual(await run({ exec: { command } }, nobody, { env }), {
      result: "failure",
      output: "command is too long: expanded variables take more than 1048572 bytes",
    });
  });
});

describe("httpGet", () => {
  const http = (answer: (request: HttpRequest) => Partial<HttpAnswer>): HandlerDeps => ({
    ...nobody,
    net: {
      ...nobody.net,
      http: (request) => Promise.resolve({ status: 200, location: undefined, body: "", ...answer(request) }),
    },
  });
  const probe: Probe = { httpGet: { port: "web", path: "/x" } };

  for (const [status, result] of [
    [200, "success"],
    [299, "success"],
    [304, "warning"],
    [399, "warning"],
    [400, "failure"],
    [500, "failure"],
    [101, "failure"],
  ] as const) {
    test(`${status} is a ${result}`, async () => {
      assert.equal(
        (
          await run(
            probe,
            http(() => ({ status })),
          )
        ).result,
        result,
      );
    });
  }

  test("asks the pod's address as kube-probe of this version of Kubernetes", async () => {
    let asked: HttpRequest | undefined;
    await run(
      probe,
      http((request) => {
        asked = request;
        return {};
      }),
    );
    assert.equal(asked?.host, "10.0.0.5");
    assert.equal(asked?.port, 8080);
    assert.deepEqual(asked?.headers[0], ["User-Agent", "kube-probe/1.36"]);
  });

  test("a failure names the code", async () => {
    const ran = await run(
      probe,
      http(() => ({ status: 503 })),
    );
    assert.equal(ran.output, "HTTP probe failed with statuscode: 503");
  });

  test("a redirect to another host is a success with a warning", async () => {
    const ran = await run(
      probe,
      http(() => ({ status: 302, location: "http://other/", body: "moved" })),
    );
    assert.deepEqual(ran, { result: "warning", output: "Probe terminated redirects, Response body: moved" });
  });

  test("no connection is a failure", async () => {
    const refused = () => Promise.reject(new ProbeNetError("Dial", "dial tcp: refused"));
    const ran = await run(probe, { ...nobody, net: { ...nobody.net, http: refused } });
    assert.deepEqual(ran, { result: "failure", output: 'Get "http://10.0.0.5:8080/x": dial tcp: refused' });
  });

  test("no answer in time is a failure", async () => {
    const ran = await run(probe, { ...nobody, net: { ...nobody.net, http: silent } });
    const want =
      'Get "http://10.0.0.5:8080/x": context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
    assert.deepEqual(ran, { result: "failure", output: want });
  });

  test("a port that does not exist is no failure of the container", async () => {
    const ran = await run(
      { httpGet: { port: "nope" } },
      http(() => ({})),
    );
    assert.deepEqual(ran, { result: "error", output: "couldn't find port: nope" });
  });
});

describe("tcpSocket", () => {
  test("a taken connection is a success, at the host that is asked for", async () => {
    const asked: unknown[] = [];
    const tcp = (address: unknown): Promise<void> => Promise.resolve(void asked.push(address));
    const deps = { ...nobody, net: { ...nobody.net, tcp } };
    assert.equal((await run({ tcpSocket: { port: "web" } }, deps)).result, "success");
    assert.equal((await run({ tcpSocket: { port: 90, host: "1.2.3.4" } }, deps)).result, "success");
    assert.deepEqual(asked, [
      { host: "10.0.0.5", port: 8080 },
      { host: "1.2.3.4", port: 90 },
    ]);
  });

  test("a refused one is a failure", async () => {
    const tcp = (): Promise<void> => Promise.reject(new ProbeNetError("Dial", "dial tcp x: connection refused"));
    const ran = await run({ tcpSocket: { port: 1 } }, { ...nobody, net: { ...nobody.net, tcp } });
    assert.deepEqual(ran, { result: "failure", output: "dial tcp x: connection refused" });
  });
});

describe("grpc", () => {
  const probe: Probe = { grpc: { port: 50 }, timeoutSeconds: 1 };
  const health = (answer: Partial<GrpcHealthAnswer>): HandlerDeps => ({
    ...nobody,
    net: { ...nobody.net, grpc: () => Promise.resolve({ code: 0, message: "", status: undefined, ...answer }) },
  });

  const cases: [Partial<GrpcHealthAnswer>, string][] = [
    [{ status: "SERVING" }, ""],
    [{ status: "NOT_SERVING" }, 'service unhealthy (responded with "NOT_SERVING")'],
    [{ code: 4 }, "timeout: health rpc did not complete within 1s"],
    [
      { code: 12, message: "unknown service" },
      "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service",
    ],
    [{ code: 5, message: "x" }, "error: health rpc probe failed: rpc error: code = NotFound desc = x"],
  ];
  for (const [answer, output] of cases) {
    test(output === "" ? "SERVING is a success" : output, async () => {
      assert.deepEqual(await run(probe, health(answer)), { result: output === "" ? "success" : "failure", output });
    });
  }

  test("no connection and no answer are failures", async () => {
    const refused = () => Promise.reject(new ProbeNetError("Dial", "refused"));
    const ran = await run(probe, { ...nobody, net: { ...nobody.net, grpc: refused } });
    assert.equal(ran.output, 'timeout: failed to connect service "10.0.0.5:50" within 1s: refused');
    const slow = await run({ ...probe, timeoutSeconds: 90 }, { ...nobody, net: { ...nobody.net, grpc: refused } });
    assert.equal(slow.output, 'timeout: failed to connect service "10.0.0.5:50" within 1m30s: refused');
    const late = await run(probe, { ...nobody, net: { ...nobody.net, grpc: silent } });
    assert.equal(late.output, "timeout: health rpc did not complete within 1s");
  });
});
