/** An emptyDir that its filesystem counts, on a running agent; needs quotas of projects and a runtime with user namespaces. */
import assert from "node:assert/strict";
import { chmodSync, closeSync, existsSync, openSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { LinuxQuotaCalls } from "../../src/adapters/host/quota-calls.ts";
import type { StorageUsage } from "../../src/model/pod-storage.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { said } from "./support/told.ts";
import { until } from "./support/until.ts";

requireMachine();

const GATE = "--feature-gates=LocalStorageCapacityIsolationFSQuotaMonitoring=true";
const bin = process.env["CONTAINERD2_BIN_DIR"] ?? "";
const PATH = [bin, process.env["RUNC_BIN_DIR"], process.env["PATH"]]
  .filter((part) => part !== undefined && part !== "")
  .join(":");
const { signal } = new AbortController();
const site = new Site();

/** Why a filesystem does not count directories; undefined when it does. */
async function whyNot(path: string): Promise<string | undefined> {
  const fd = openSync(path, "r");
  try {
    await (await LinuxQuotaCalls.load())?.usage(fd, 1_048_577);
    return undefined;
  } catch (error) {
    return `no quotas of projects below ${path}: ${error instanceof Error ? error.message : ""}`;
  } finally {
    closeSync(fd);
  }
}

const reason = bin === "" ? "CONTAINERD2_BIN_DIR names none" : await whyNot(site.dir);
if (reason !== undefined) rmSync(site.dir, { recursive: true });

describe("an emptyDir on a filesystem with quotas of projects", { skip: reason ?? false }, () => {
  let agent: Agent;
  const up = async (): Promise<Agent> => site.up([GATE], { env: { ...process.env, PATH } });
  const projects = (): string => (existsSync("/etc/projects") ? readFileSync("/etc/projects", "utf8") : "");
  /** A walk may take longer than `explain` waits. */
  const usage = (pod: string): Promise<StorageUsage> =>
    until(`the volume of ${pod} is measured`, async () => {
      const { stdout } = await site.run("explain", pod, "-o", "json");
      const { storage } = JSON.parse(stdout) as PodExplanation;
      return storage?.isFresh === true ? storage.parts.find(({ kind }) => kind === "emptyDir")?.usage : undefined;
    });

  before(async () => {
    // Whoever is another user inside still has to find the way to its files.
    for (const path of [site.dir, dirname(site.dir)]) if (statSync(path).mode % 8 === 0) chmodSync(path, 0o711);
    agent = await up();
  });
  after(() => site.close());

  it("is counted for a pod with its own users and walked for others, over kill -9, until the pod goes", async (t) => {
    const { handlers } = await site.cri.status({ signal });
    if (!handlers.some(({ name, userNamespaces }) => name === "" && userNamespaces)) {
      t.skip("runc says that it cannot map the ids of mounts (it can from 1.2 on)");
      return;
    }
    const script = [
      "for i in $(seq 300); do echo x > /data/$i; done",
      "head -c 3145728 /dev/zero > /data/big",
      // What is removed and still open.
      "exec 5> /data/open; head -c 2097152 /dev/zero >&5; rm /data/open; echo end",
    ];
    const containers = [
      shell("main", forever(script.join("\n")), { volumeMounts: [{ name: "data", mountPath: "/data" }] }),
    ];
    const volumes = [{ name: "data", emptyDir: { sizeLimit: "1Gi" } }];
    site.write(manifest("counted", { containers, volumes, hostUsers: false }));
    site.write(manifest("walked", { containers, volumes }));
    const { uid } = await site.running("counted");
    await Promise.all(["counted", "walked"].map((name) => said(site, name, /end\n/)));
    const counted = await usage("counted");
    const walked = await usage("walked");
    assert.deepEqual([counted.by, walked.by], ["quota", "walk"]);
    assert.ok(counted.bytes - walked.bytes >= 2 << 20, JSON.stringify({ counted, walked }));
    assert.deepEqual([counted.inodes, walked.inodes], [303, 302]);
    let text = "";
    const isShown = async (): Promise<boolean> => {
      text = (await site.run("explain", "counted")).stdout;
      return /emptyDir data +\S+ +of 1\.0Gi +counted by quota$/m.test(text);
    };
    await until("explain shows it", isShown, { seen: () => text });
    const directory = join(site.state, "kubelet/pods", uid, "volumes/kubernetes.io~empty-dir/data");
    assert.match(projects(), new RegExp(`^\\d+:${directory.replaceAll(".", "\\.")}$`, "m"));
    await agent.end("SIGKILL");
    agent = await up();
    const again = await usage("counted");
    assert.deepEqual([again.by, again.inodes], ["quota", 303]);
    for (const name of ["counted", "walked"]) site.remove(name);
    await Promise.all(["counted", "walked"].map((name) => site.gone(name)));
    await until("its project is given back", async () => !projects().includes(site.dir));
  });
});
