import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ServerWritableStream, status } from "@grpc/grpc-js";
import { CriServer } from "../../../test/support/cri-server.ts";
import { FakeClock, SystemClock } from "../../lib/clock.ts";
import { fixed } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { EventQueue } from "../runtime/event-queue.ts";
import type { ContainerSummary, RuntimeEvent } from "../runtime/port.ts";
import { CriRuntime } from "./cri-runtime.ts";
import { changes, RelistSource } from "./events-relist.ts";
import { type Envelope, TaskExit } from "./generated/containerd-events.ts";
import { ContainerEventResponse, ContainerStatusResponse, VersionResponse } from "./generated/cri.ts";
import { eventService, runtimeService as rpc } from "./methods.ts";

const nanos = (ms: number): bigint => BigInt(ms) * 1_000_000n;
const event = (containerId: string, ms: number): ContainerEventResponse =>
  ContainerEventResponse.fromPartial({ containerId, containerEventType: 2, createdAt: nanos(ms) });

/** Reads so many events, then leaves. */
async function take(runtime: CriRuntime, count: number): Promise<RuntimeEvent[]> {
  const events: RuntimeEvent[] = [];
  for await (const next of runtime.events({ signal: new AbortController().signal })) {
    events.push(next);
    if (events.length === count) break;
  }
  return events;
}

async function withServer(server: CriServer, work: (runtime: CriRuntime) => Promise<void>): Promise<void> {
  server.unary(rpc.version, (_call, callback) => callback(null, VersionResponse.fromPartial({ version: "v1" })));
  await server.start();
  const deps = { clock: new SystemClock(), log: silent };
  const runtime = new CriRuntime(deps, { endpoint: server.socket, requestTimeoutMs: fixed(5000) });
  try {
    await work(runtime);
  } finally {
    runtime.close();
    await server.stop();
  }
}

describe("events over gRPC", { timeout: 20_000 }, () => {
  test("a replay of older events is dropped, what is new comes after the resync", async () => {
    const server = new CriServer().stream(rpc.getContainerEvents, (call) => {
      for (let old = 0; old < 50; old++) call.write(event(`old-${old}`, Date.now() - 60_000 - old));
      call.write(event("new", Date.now() + 1));
    });
    await withServer(server, async (runtime) => {
      const [first, second] = await take(runtime, 2);
      assert.deepEqual(first, { kind: "resync" });
      assert.equal(second?.kind === "container" && second.id, "new");
    });
  });

  test("a kill for memory that only the kernel reported is an event, and the reason of the container's end", async () => {
    const ended = { id: "c1", state: 2 as const, exitCode: 137, reason: "Error", metadata: { name: "c", attempt: 0 } };
    const server = new CriServer()
      .stream(rpc.getContainerEvents, () => undefined)
      .unary(rpc.containerStatus, (_call, callback) =>
        callback(null, ContainerStatusResponse.fromPartial({ status: ended })),
      );
    await withServer(server, async (runtime) => {
      const { signal } = new AbortController();
      assert.equal((await runtime.containerStatus("c1", { signal })).reason, "Error");
      const brief: string[] = [];
      for await (const next of runtime.events({ signal })) {
        brief.push(next.kind === "container" ? `${next.type} ${next.id}` : next.kind);
        if (brief.length === 1) runtime.killedForMemory("c1");
        if (brief.length === 2) break;
      }
      assert.deepEqual(brief, ["resync", "oom c1"]);
      assert.equal((await runtime.containerStatus("c1", { signal })).reason, "OOMKilled");
      runtime.killedForMemory("c2");
    });
  });

  test("a stream that ends is opened again, with another resync", async () => {
    let streams = 0;
    const server = new CriServer().stream(rpc.getContainerEvents, (call) => {
      const name = `stream-${++streams}`;
      setTimeout(() => {
        if (name === "stream-1") call.emit("error", { code: status.UNAVAILABLE, details: "gone" });
        else call.write(event(name, Date.now()));
      }, 60);
    });
    await withServer(server, async (runtime) => {
      const events = await take(runtime, 3);
      const brief = events.map((next) => (next.kind === "resync" ? "resync" : next.id));
      assert.deepEqual(brief, ["resync", "resync", "stream-2"]);
    });
  });

  test("containerd's exit is told at once, and a status that lags behind is corrected", async () => {
    let subscriber: ServerWritableStream<unknown, Envelope> | undefined;
    const send = (topic: string, bytes: Uint8Array): void => {
      const payload = { typeUrl: "x", value: Buffer.from(bytes) };
      subscriber?.write({ timestamp: new Date(), namespace: "k8s.io", topic, event: payload });
    };
    const server = new CriServer()
      .stream(eventService.subscribe, (call) => (subscriber = call))
      .unary(eventService.publish, ({ request }, callback) => {
        send(request.topic, new Uint8Array());
        callback(null, {});
      })
      .unary(rpc.containerStatus, (_call, callback) =>
        callback(null, ContainerStatusResponse.fromPartial({ status: { id: "c1", state: 1, startedAt: nanos(1) } })),
      );
    await withServer(server, async (runtime) => {
      const signal = new AbortController().signal;
      for await (const next of runtime.events({ signal })) {
        if (next.kind === "resync") {
          assert.equal(runtime.eventSource, "containerd");
          const exec = { containerId: "c1", id: "exec-1", pid: 2, exitStatus: 1, exitedAt: new Date(5000) };
          send("/tasks/exit", TaskExit.encode(exec).finish());
          send("/tasks/exit", TaskExit.encode({ ...exec, id: "c1", exitStatus: 42 }).finish());
          continue;
        }
        assert.deepEqual([next.type, next.id], ["stopped", "c1"]);
        break;
      }
      const status = await runtime.containerStatus("c1", { signal });
      assert.deepEqual(
        [status.state, status.exitCode, status.reason, status.finishedAt],
        ["exited", 42, "Error", 5000],
      );
    });
  });
});

describe("exits beside CRI's events", { timeout: 20_000 }, () => {
  const exit = (id: string): Envelope => {
    const value = TaskExit.encode({ containerId: id, id, pid: 2, exitStatus: 42, exitedAt: new Date(5000) }).finish();
    const payload = { typeUrl: "x", value: Buffer.from(value) };
    return { timestamp: new Date(), namespace: "k8s.io", topic: "/tasks/exit", event: payload };
  };

  test("an exit is told before CRI tells it, without a question; one of a start under way after the start", async () => {
    let subscriber: ServerWritableStream<unknown, Envelope> | undefined;
    let answerStart = (): void => undefined;
    const order: string[] = [];
    const server = new CriServer()
      .stream(rpc.getContainerEvents, () => undefined)
      .stream(eventService.subscribe, (call) => (subscriber = call))
      .unary(rpc.startContainer, (_call, callback) => {
        answerStart = (): void => callback(null, {});
        subscriber?.write(exit("young"));
        subscriber?.write(exit("old"));
      })
      .unary(rpc.containerStatus, () => assert.fail("asked"));
    await withServer(server, async (runtime) => {
      const { signal } = new AbortController();
      for await (const next of runtime.events({ signal })) {
        if (next.kind === "resync") {
          while (subscriber === undefined) await new Promise((resolve) => setImmediate(resolve));
          void runtime.startContainer("young", { signal }).then(() => order.push("started"));
          continue;
        }
        assert.equal(next.type, "stopped");
        order.push(next.id);
        if (next.id === "young") break;
        answerStart();
      }
      assert.deepEqual(order, ["old", "started", "young"]);
    });
  });
});

describe("events from lists", () => {
  const container = (id: string, state: ContainerSummary["state"]): ContainerSummary => ({
    id,
    sandboxId: "s",
    name: id,
    attempt: 0,
    state,
    createdAt: 0,
    image: "",
    imageRef: "",
    labels: {},
    annotations: {},
  });

  test("lists slow down while nothing changes and speed up when a change is expected", async () => {
    const clock = new FakeClock();
    const listedAt: number[] = [];
    let containers = [container("a", "running")];
    const runtime = {
      listSandboxes: async () => [],
      listContainers: async () => {
        listedAt.push(clock.now().mono);
        return containers;
      },
    };
    const source = new RelistSource({ runtime, clock });
    const heard: string[] = [];
    const controller = new AbortController();
    const sink = {
      established: () => void heard.push("established"),
      push: (next: RuntimeEvent) => void heard.push(next.kind === "container" ? `${next.type} ${next.id}` : "?"),
    };
    const running = source.run(sink, controller.signal).catch(() => undefined);
    await clock.advance(60_000);
    const idle = listedAt.length;
    assert.ok(idle < 20, `${idle} lists in a quiet minute`);
    source.expectChange();
    containers = [container("a", "exited"), container("b", "created")];
    await clock.advance(1000);
    assert.equal(listedAt.length, idle + 1);
    assert.deepEqual(heard, ["established", "stopped a", "created b"]);
    controller.abort(new Error("done"));
    await running;
  });

  test("a container that came and ran between two lists was created and started", () => {
    const types = changes(new Map(), new Map([["a", { phase: "running" }]]), 0).map(({ type }) => type);
    assert.deepEqual(types, ["created", "started"]);
  });

  test("a container that is missing was deleted", () => {
    const types = changes(new Map([["a", { phase: "stopped" }]]), new Map(), 0).map(({ type }) => type);
    assert.deepEqual(types, ["deleted"]);
  });
});

describe("event queue", () => {
  test("a reader far behind gets one resync in place of what it missed", async () => {
    const queue = new EventQueue();
    for (let n = 0; n < 5000; n++) queue.push({ kind: "container", type: "created", id: `${n}`, at: n });
    const controller = new AbortController();
    const kinds: string[] = [];
    for await (const next of queue.read(controller.signal)) {
      kinds.push(next.kind);
      if (next.kind === "container" && next.id === "4999") controller.abort();
    }
    assert.equal(kinds[0], "resync");
    assert.ok(kinds.length < 1000);
  });
});
