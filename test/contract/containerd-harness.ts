import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { CriImages } from "../../src/adapters/cri/cri-images.ts";
import { CriRuntime } from "../../src/adapters/cri/cri-runtime.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { fixed } from "../../src/lib/live.ts";
import { silent } from "../../src/lib/log.ts";
import { whyNoExec } from "../integration/support/site.ts";
import { pause } from "../integration/support/until.ts";
import { TEST_IMAGES, type TestContainerd } from "../support/containerd.ts";
import type { RuntimeHarness, TestCommand, TestProgram } from "./harness.ts";

/** A real containerd under contract. */
export function harnessFor(containerd: TestContainerd): RuntimeHarness {
  const deps = { clock: new SystemClock(), log: silent };
  const options = { endpoint: containerd.endpoint, requestTimeoutMs: fixed(20_000) };
  const runtime = new CriRuntime(deps, options);
  const images = new CriImages(deps, options);
  return {
    runtime,
    images,
    clock: deps.clock,
    image: TEST_IMAGES.busybox,
    cgroupParent: containerd.cgroupParent,
    logDirectory: `${containerd.dir}/logs`,
    command: shellProgram,
    execCommand: shellCommand,
    listens: (id) => untilListening(runtime, id),
    memoryLimit: (id) => memoryLimit(join(containerd.cgroupParent, id)),
    rotateLog: (path) => {
      renameSync(path, `${path}.1`);
      return () => existsSync(path);
    },
    brokenCommand: ["/no-such-command"],
    kill: () => containerd.kill(),
    revive: () => containerd.start(),
    stop: async () => {
      runtime.close();
      images.close();
      await containerd.stop();
    },
  };
}

/** Of a cgroup of version 1 or 2. */
function memoryLimit(cgroup: string): number | undefined {
  const files = [
    join("/sys/fs/cgroup/memory", cgroup, "memory.limit_in_bytes"),
    join("/sys/fs/cgroup", cgroup, "memory.max"),
  ];
  const file = files.find((path) => existsSync(path));
  assert.ok(file !== undefined, `no cgroup ${cgroup}`);
  const text = readFileSync(file, "utf8").trim();
  return text === "max" ? undefined : Number(text);
}

/** As a container's first process the shell ignores every signal that it has no trap for. */
function shellProgram({ exitAfterMs, exitCode = 0, ignoresTerm, termCode = 143 }: TestProgram): string[] {
  const trap = `${ignoresTerm ? "" : `trap 'exit ${termCode}' TERM; `}echo > /listens; `;
  if (exitAfterMs === undefined) return ["/bin/sh", "-c", `${trap}while :; do sleep 0.05; done`];
  return ["/bin/sh", "-c", `${trap}sleep ${exitAfterMs / 1000}; exit ${exitCode}`];
}

/** The start of a container is answered before its shell has read a word. */
async function untilListening(runtime: CriRuntime, id: string): Promise<void> {
  const { signal } = new AbortController();
  // Where no command can be run in a container, time has to do.
  if (whyNoExec() !== undefined) return pause(2000);
  for (let tries = 0; tries < 200; tries++) {
    const request = { command: ["/bin/sh", "-c", "[ -e /listens ]"], timeoutSeconds: 60 };
    if ((await runtime.execSync(id, request, { signal })).exitCode === 0) return;
    await pause(50);
  }
  throw new Error(`container ${id} does not listen`);
}

function shellCommand({ exitCode = 0, stdout = "", stderr = "", takesMs = 0 }: TestCommand): string[] {
  const lines = [`printf %s '${stdout}'`, `printf %s '${stderr}' >&2`, `sleep ${takesMs / 1000}`, `exit ${exitCode}`];
  return ["/bin/sh", "-c", lines.join("; ")];
}
