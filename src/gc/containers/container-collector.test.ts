import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod, seen } from "../../../test/support/pods.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { ContainerCollector } from "./container-collector.ts";
import { LogSweeper, type LogSweeperDeps } from "./log-sweeper.ts";
import type { DeadContainerLimits } from "./plan-dead-containers.ts";

const MINUTE = 60_000;

function ended(name: string): ObservedPod {
  const { uid = "" } = pod(name).build().metadata;
  const containers = [seen({ name: "app" }, { id: `${name}-app`, state: "exited", finishedAt: 1 })];
  return { uid, name, namespace: "default", sandboxes: [], containers, readAt: 0 };
}

class Node {
  readonly clock = new FakeClock();
  readonly stop = manyListeners();
  readonly discarded: string[] = [];
  readonly events: string[] = [];
  sweeps = 0;
  failure: Error | undefined;
  isComplete = true;
  pods: ObservedPod[] = [];
  dispensable = new Set<string>();
  readonly limits = new LiveValue<DeadContainerLimits>({ total: -1, minAgeMs: 0 });
  readonly collector = new ContainerCollector(
    {
      clock: this.clock,
      log: silent,
      logs: {
        sweep: async () => {
          this.sweeps++;
          if (this.failure !== undefined) throw this.failure;
        },
      },
      isComplete: () => this.isComplete,
      observed: () => this.pods,
      isDispensable: (uid) => this.dispensable.has(uid),
      discard: async (uid, what) => void this.discarded.push(`${uid} ${what === "all" ? what : [...what].join()}`),
      event: (_type, reason, message) => void this.events.push(`${reason} ${message}`),
    },
    this.limits,
  );

  start(): void {
    void this.collector.run(this.stop.signal);
  }
}

describe("the loop", () => {
  test("plans nothing without a limit, and sweeps logs when all pods are known", async () => {
    const node = new Node();
    node.isComplete = false;
    node.pods = [ended("a"), ended("b")];
    node.start();
    await node.clock.advance(5 * MINUTE);
    assert.deepEqual([node.sweeps, node.discarded], [0, []]);
    node.isComplete = true;
    await node.clock.advance(MINUTE + 2000);
    assert.equal(node.sweeps, 1);
    node.stop.abort();
  });

  test("sweeps logs soon after the list of pods is complete, without a change of a pod", async () => {
    const node = new Node();
    node.isComplete = false;
    node.start();
    await node.clock.advance(5000);
    node.isComplete = true;
    node.collector.wake();
    await node.clock.advance(2000);
    assert.equal(node.sweeps, 1);
    node.stop.abort();
  });

  test("has the workers remove what is too much, when a pod changes and when the limit does", async () => {
    const node = new Node();
    node.start();
    await node.clock.advance(2000);
    node.pods = [ended("a"), ended("b")];
    node.dispensable.add("uid-of-a");
    node.limits.set({ total: 1, minAgeMs: 0 });
    await node.clock.advance(2000);
    assert.deepEqual(node.discarded, ["uid-of-a a-app"]);
    node.pods = [ended("b"), ended("c")];
    node.dispensable.add("uid-of-c");
    node.collector.wake();
    await node.clock.advance(2000);
    assert.equal(node.discarded.at(-1), "uid-of-c c-app");
    assert.equal(node.sweeps, 1, "a change of a pod or of the limit does not sweep logs");
    node.stop.abort();
  });

  test("reports what it cannot list, and tries again", async () => {
    const node = new Node();
    node.failure = new Error("list /var/log/pods: input/output error");
    node.start();
    await node.clock.advance(2000);
    for (let change = 0; change < 5; change++) {
      node.collector.wake();
      await node.clock.advance(2000);
    }
    assert.deepEqual(node.events, ["ContainerGCFailed list /var/log/pods: input/output error"]);
    node.failure = undefined;
    await node.clock.advance(2 * MINUTE);
    assert.deepEqual([node.sweeps, node.events.length], [2, 1]);
    node.stop.abort();
  });
});

test("under disk pressure only pods whose status is kept elsewhere lose all their containers", async () => {
  const node = new Node();
  node.pods = [ended("a"), ended("b")];
  node.dispensable.add("uid-of-b");
  await node.collector.deleteAllUnusedContainers(node.stop);
  assert.deepEqual([node.discarded, node.sweeps], [["uid-of-b all"], 1]);
});

/** What a sweep removed by the time it resolved, with runtime and files that know a bit of everything. */
async function sweep(more: Partial<LogSweeperDeps["files"]> = {}): Promise<string[]> {
  const removed: string[] = [];
  const targets: Readonly<Record<string, string | undefined>> = {
    "web_default_app-1.log": "/logs/default_web_u1/app/0.log",
    "web_default_app-2.log": "/logs/default_web_u2/app/0.log",
    "rotating_default_app-3.log": "/logs/default_rotating_u3/app/0.log",
    "no-link.log": undefined,
  };
  const remove = async (path: string): Promise<void> => {
    if (path.endsWith("broken_u5")) throw new Error("busy");
    await new Promise((resolve) => setImmediate(resolve));
    removed.push(path);
  };
  const files: LogSweeperDeps["files"] = {
    list: async (path) =>
      path === "/c" ? Object.keys(targets) : ["a_broken_u5", "default_web_u1", "default_web_u2", "other_runtime_u4"],
    readLink: async (path) => targets[path.slice("/c/".length)],
    hasEntry: async (path) => path.includes("u2"),
    removeFile: remove,
    removeTree: remove,
    ...more,
  };
  const sandbox = { id: "s", state: "ready" as const, createdAt: 0, labels: {}, annotations: {} };
  const container = { sandboxId: "s", name: "app", attempt: 0, createdAt: 0, image: "", imageRef: "" };
  const runtime: LogSweeperDeps["runtime"] = {
    listSandboxes: async () => [{ ...sandbox, metadata: { name: "o", namespace: "other", uid: "u4", attempt: 0 } }],
    listContainers: async () => [{ ...container, id: "3", state: "running", labels: {}, annotations: {} }],
  };
  const isKnown = (uid: string): boolean => uid === "u2";
  const paths = { podLogsDir: "/logs", containerLogsDir: "/c" };
  await new LogSweeper({ runtime, files, log: silent, isKnown }, paths).sweep({ signal: new AbortController().signal });
  return removed;
}

test("a sweep removes logs and links of pods that are gone, and goes on after a failure", async () => {
  assert.deepEqual(await sweep(), ["/logs/default_web_u1", "/c/web_default_app-1.log"]);
});

for (const directory of ["/logs", "/c"]) {
  test(`a sweep rejects if ${directory} cannot be listed`, async () => {
    const list = async (path: string): Promise<readonly string[]> => {
      if (path === directory) throw new Error("input/output error");
      return [];
    };
    await assert.rejects(sweep({ list }), /input\/output error/);
  });
}
