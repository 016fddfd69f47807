import { spawn, spawnSync } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UnixClient } from "../src/adapters/net/unix-client.ts";
import type { ConfigReport } from "../src/config/index.ts";
import { timeCommand } from "./agent.ts";

const { signal } = new AbortController();
const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };
const KUBELET = join(import.meta.dirname, "../bin/kubelet");
const CHANGES = 15;
const POLL_MS = 5;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** From the rename of a changed file until a plain agent says that it runs with it: every change, in milliseconds. */
export async function measureLiveChanges(work: string, state: string): Promise<number[]> {
  const file = join(work, "kubelet.json");
  const put = (registryBurst: number): number => {
    const settings = {
      healthzPort: 0,
      readOnlyPort: 0,
      containerRuntimeEndpoint: `unix://${state}/run/containerd.sock`,
    };
    writeFileSync(`${file}.new`, JSON.stringify({ ...HEAD, ...settings, enableServer: false, registryBurst }));
    const at = performance.now();
    renameSync(`${file}.new`, file);
    return at;
  };
  put(20);
  const socket = join(work, "c.sock");
  const places = [`--root-dir=${work}/root`, `--pod-logs-dir=${work}/pod-logs`, `--local-api-socket=${socket}`];
  const child = spawn(KUBELET, [`--config=${file}`, ...places], { stdio: "ignore" });
  child.on("error", () => undefined);
  const agent = new UnixClient(socket);
  const current = async (): Promise<unknown> => {
    const report = await agent.json<ConfigReport>("/v1/config", { signal }).catch(() => undefined);
    return report?.settings.find(({ field }) => field === "registryBurst")?.value;
  };
  const untilIs = async (value: number): Promise<void> => {
    const limit = performance.now() + 30_000;
    while ((await current()) !== value) {
      if (performance.now() > limit) throw new Error(`the agent does not take registryBurst ${value}`);
      await pause(POLL_MS);
    }
  };
  try {
    await untilIs(20);
    const times: number[] = [];
    for (let change = 1; change <= CHANGES; change++) {
      const at = put(20 + change);
      await untilIs(20 + change);
      times.push(performance.now() - at);
    }
    return times;
  } finally {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    // An agent leaves its root directory a shared mount.
    spawnSync("umount", [`${work}/root`], { stdio: "ignore" });
  }
}

/** `config validate` of a file that sets every field, and a bare node beside it, in milliseconds. */
export async function measureValidate(work: string): Promise<{ validate: number[]; node: number[] }> {
  const file = join(work, "full.yaml");
  await new Promise<void>((resolve, reject) => {
    const child = spawn(KUBELET, ["config", "defaults"], { stdio: ["ignore", "pipe", "ignore"] });
    const parts: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => parts.push(chunk));
    child.on("error", reject);
    child.on("close", (code) => {
      writeFileSync(file, Buffer.concat(parts));
      if (code === 0) resolve();
      else reject(new Error(`config defaults ended with ${code}`));
    });
  });
  const validate: number[] = [];
  const node: number[] = [];
  for (let round = 0; round < CHANGES; round++) {
    validate.push(await timeCommand(KUBELET, ["config", "validate", file]));
    node.push(await timeCommand(process.execPath, ["-e", "0"]));
  }
  return { validate, node };
}
