import type { Abortable } from "../../src/lib/abort.ts";
import { fixed } from "../../src/lib/live.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../src/model/observed.ts";
import { PodStreams } from "../../src/pods/streams.ts";
import type { ApiDeps, ApiSwitches } from "../../src/server/api-deps.ts";
import { ping } from "../../src/server/health.ts";

export const ALL_ON: ApiSwitches = {
  debugging: true,
  systemLogs: true,
  systemLogQuery: false,
  profiling: true,
  debugFlags: true,
  isGateOn: (gate) => gate.startsWith("Component") || gate === "ContainerCheckpoint",
};

/** A pod `web` with one container `main` that runs as `c1`, after one that ended as `c0`. */
export const WEB: Pod = {
  metadata: { name: "web", namespace: "default", uid: "u1" },
  spec: { containers: [{ name: "main", image: "demo" }] },
  status: {
    phase: "Running",
    containerStatuses: [
      {
        name: "main",
        image: "demo",
        imageID: "",
        ready: true,
        restartCount: 1,
        containerID: "containerd://c1",
        state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
        lastState: { terminated: { exitCode: 1, containerID: "containerd://c0" } },
      },
    ],
  },
};

export function observed(id: string, state: "running" | "exited"): ObservedContainer {
  // Only what the endpoints look at.
  return { id, name: "main", image: "demo", state, logPath: `/log/${id}` } as ObservedContainer;
}

export const WEB_OBSERVED: ObservedPod = {
  uid: "u1",
  name: "web",
  namespace: "default",
  readAt: 0,
  sandboxes: [{ id: "s1", attempt: 0, state: "ready", createdAt: 0, hostNetwork: false, ips: [] }],
  containers: [observed("c1", "running"), observed("c0", "exited")],
} as ObservedPod;

/** What an endpoint did to the world around it. */
export interface ApiCalls {
  readonly calls: unknown[];
  readonly deps: ApiDeps;
}

type Call = (...args: readonly unknown[]) => Promise<string>;

/** The streams of the agent over calls of a runtime, into one pod. */
export function streamsOver(call: (name: string) => Call, pod: ObservedPod = WEB_OBSERVED): PodStreams {
  const runtime = { exec: call("exec"), attach: call("attach"), portForward: call("portForward") };
  const none = { ...pod, sandboxes: [], containers: [] };
  const get = (uid: string): ObservedPod | undefined => (uid === "u1" ? pod : undefined);
  return new PodStreams({ runtime, observer: { get, read: async ({ uid }) => get(uid) ?? none } });
}

/** Everything that the endpoints need, over one pod; `more` replaces parts. */
export function apiDeps(more: Partial<ApiDeps> = {}): ApiCalls {
  const calls: unknown[] = [];
  const note =
    <T>(name: string, answer: T) =>
    async (...args: readonly unknown[]): Promise<T> => {
      // The last argument has the signal.
      calls.push([name, ...args.slice(0, -1)]);
      return answer;
    };
  const deps: ApiDeps = {
    checks: [ping],
    pods: {
      all: () => [WEB],
      find: (namespace, name) => (namespace === "default" && name === "web" ? WEB : undefined),
      observed: (uid) => (uid === "u1" ? WEB_OBSERVED : undefined),
      running: () => [WEB_OBSERVED],
      onChange: () => undefined,
    },
    runtime: {
      execSync: note("execSync", { exitCode: 0, stdout: Buffer.from("out"), stderr: Buffer.from("err") }),
      containerStatus: note("containerStatus", { logPath: "" }),
      checkpointContainer: note("checkpointContainer", undefined),
    },
    streams: streamsOver((name) => note(name, `http://127.0.0.1:1/${name}/t`)),
    logs: {
      async *read(wish, _options: Abortable) {
        const { follow, ...rest } = wish;
        calls.push(["log", follow === undefined ? rest : { ...rest, follow: true }]);
        yield Buffer.from("hello\n");
      },
    },
    systemLogs: {
      look: async (path) => {
        if (path === "") return { kind: "directory", entries: [{ name: "a&b", isDirectory: true }] };
        if (path === "sub") return { kind: "directory", entries: [] };
        return path === "syslog" || path === "cron.log" ? { kind: "file", size: 10, modifiedMs: 0 } : undefined;
      },
      async *read(_path, { from, to }) {
        yield Buffer.from("0123456789".slice(from, to));
      },
      async *journal(args) {
        yield Buffer.from(args.join(" "));
      },
      hasUnit: async (unit) => unit === "kubelet",
    },
    metrics: { agent: async () => "m 1\n", probes: async () => "p 1\n" },
    about: { configuration: () => ({ kind: "K" }), flags: () => ({ v: "2" }), startedMs: 0, version: "v1" },
    debug: {
      setVerbosity: (level) => void calls.push(["verbosity", level]),
      commandLine: () => ["kubelet", "-v"],
      profile: async (kind, seconds) => `${kind} ${seconds}`,
    },
    switches: fixed(ALL_ON),
    makeDir: async (path, mode) => void calls.push(["makeDir", path, mode]),
    rootDir: "/r",
    now: () => 100_000,
    ...more,
  };
  return { calls, deps };
}
