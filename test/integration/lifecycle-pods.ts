/** Admission, refusals, restarts of all containers, resize and what survives the agent, on real containers. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Container, Pod, PodStatus } from "../../src/model/generated/types.ts";
import { http } from "./support/http.ts";
import { FOREVER, forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, requireMachine, Site } from "./support/site.ts";
import { pause, SLOWNESS, until } from "./support/until.ts";

requireMachine();

const MIB = 2 ** 20;
const FLAGS = ["--allowed-unsafe-sysctls=kernel.msg*", "--seccomp-default"];

describe("the life of pods", () => {
  const site = new Site();
  const flags = join(site.dir, "flags");
  let agent: Agent;

  const status = async (name: string): Promise<PodStatus | undefined> => {
    const { items } = JSON.parse((await http(`http://127.0.0.1:${agent.readOnlyPort}/pods`)).body);
    return items.find((one: Pod) => one.metadata.name?.startsWith(`${name}-`))?.status;
  };
  const rejected = async (name: string): Promise<string> => {
    const pod = await site.pod(name, "is refused", ({ phase }) => phase === "Failed");
    const { reason, message } = (await status(name)) ?? {};
    assert.match(message ?? "", /^Pod was rejected: /);
    assert.deepEqual(await site.containers(pod.uid), []);
    return reason ?? "";
  };
  const shared = (containers: Container[]): Partial<Pod["spec"]> => ({
    containers: containers.map((one) => ({ ...one, volumeMounts: [{ name: "flags", mountPath: "/flags" }] })),
    volumes: [{ name: "flags", hostPath: { path: flags } }],
  });
  const restart = async (): Promise<void> => {
    await agent.end("SIGTERM");
    agent = await site.up(FLAGS);
  };

  before(async () => {
    mkdirSync(flags);
    agent = await site.up(FLAGS);
  });
  after(() => site.close());

  it("what does not fit or does not belong here is Failed with the reasons of Kubernetes", async () => {
    const requests = { cpu: "10000" };
    site.write(manifest("too-much", { containers: [shell("main", FOREVER, { resources: { requests } })] }));
    site.write(manifest("elsewhere", { nodeSelector: { disk: "none" } }));
    site.write(manifest("other-os", { os: { name: "windows" } }));
    const sysctls = [{ name: "kernel.sem", value: "1 1 1 1" }];
    site.write(manifest("unsafe", { securityContext: { sysctls } }));
    assert.equal(await rejected("too-much"), "UnexpectedAdmissionError");
    assert.equal(await rejected("elsewhere"), "NodeAffinity");
    assert.equal(await rejected("other-os"), "PodOSNotSupported");
    assert.equal(await rejected("unsafe"), "SysctlForbidden");
    await restart();
    assert.equal(await rejected("too-much"), "UnexpectedAdmissionError");
    for (const name of ["too-much", "elsewhere", "other-os", "unsafe"]) site.remove(name);
    await site.gone("too-much");
  });

  it("an unsafe sysctl that the node allows is set", async () => {
    const sysctls = [{ name: "kernel.msgmax", value: "16384" }];
    const containers = [shell("main", forever("cat /proc/sys/kernel/msgmax"))];
    site.write(manifest("allowed", { containers, securityContext: { sysctls } }));
    await site.running("allowed");
    await until("the value is said", async () => (await site.logs("allowed")).includes("16384"));
    site.remove("allowed");
  });

  it("a container that names no seccomp profile gets the runtime's own", async () => {
    const script = forever("grep ^Seccomp: /proc/self/status");
    const unconfined = { securityContext: { seccompProfile: { type: "Unconfined" } } };
    site.write(manifest("filtered", { containers: [shell("main", script), shell("free", script, unconfined)] }));
    await site.running("filtered");
    await until("it says so", async () => /Seccomp:\s+2/.test(await site.logs("filtered", "-c", "main")));
    await until("the other too", async () => /Seccomp:\s+0/.test(await site.logs("filtered", "-c", "free")));
    site.remove("filtered");
  });

  it("what cannot be done waits with the field's name, and is not Failed", async () => {
    const volumes = [{ name: "data", glusterfs: { endpoints: "e", path: "/" } }];
    site.write(manifest("refused", { containers: [shell("main", FOREVER)], volumes }));
    const pod = await site.pod("refused", "waits", ({ state }) => state === "CreateContainerConfigError");
    assert.equal(pod.phase, "Pending");
    const waiting = (await status("refused"))?.containerStatuses?.[0]?.state?.waiting;
    assert.match(waiting?.message ?? "", /spec\.volumes\[0\]\.glusterfs/);
    await site.event("Failed", "refused", /volumes\[0\]\.glusterfs/);
    site.remove("refused");
    await site.gone("refused");
  });

  it("a rule restarts all containers, from the first init container on", async () => {
    const count = (name: string): string => `echo x >> /flags/${name}`;
    const other = "until [ -e /flags/side ]; do sleep 0.1; done";
    const fail = `${count("main")}; if [ "$(wc -l < /flags/main)" = 1 ]; then ${other}; sleep 1; exit 42; fi; ${FOREVER}`;
    const rules = [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } }];
    const { containers, volumes } = shared([
      shell("main", fail, { restartPolicy: "Never", restartPolicyRules: rules }),
      shell("side", forever(count("side"))),
    ]);
    const volumeMounts = [{ name: "flags", mountPath: "/flags" }];
    const initContainers = [shell("first", count("first"), { volumeMounts })];
    site.write(manifest("together", { containers, volumes, initContainers, restartPolicy: "Never" }));
    const lines = (name: string): number =>
      existsSync(join(flags, name)) ? readFileSync(join(flags, name), "utf8").trim().split("\n").length : 0;
    await until("all ran twice", () => ["first", "main", "side"].every((name) => lines(name) === 2));
    await site.running("together");
    const found = await status("together");
    assert.deepEqual(
      found?.containerStatuses?.map(({ restartCount }) => restartCount),
      [1, 1],
    );
    const last = found?.containerStatuses?.map(({ lastState }) => lastState?.terminated?.exitCode);
    // Of the one that asked for it too, as in Kubernetes: the removal is what ended each of them.
    assert.deepEqual(last, [137, 137]);
    site.remove("together");
  });

  it("a resize changes a running container's limits, and the pod's, without a restart", async () => {
    const cgroup = `${site.layout.cgroupRoot}/kubepods/podresized-1`;
    const limits = (cpu: string, memory: string): Pod => {
      const resources = { limits: { cpu, memory }, requests: { cpu, memory } };
      const containers = [shell("main", FOREVER, { resources })];
      return manifest("resized", { containers }, { uid: "resized-1" });
    };
    const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    const read = (path: string): string =>
      readFileSync(
        isUnified ? `/sys/fs/cgroup${path}/memory.max` : `/sys/fs/cgroup/memory${path}/memory.limit_in_bytes`,
        "utf8",
      ).trim();
    site.write(limits("100m", "64Mi"));
    const first = await site.running("resized");
    const inside = `${cgroup}/${(ids(first)["main"] ?? "").replace(/^.*:\/\//, "")}`;
    assert.deepEqual([read(cgroup), read(inside)], [String(64 * MIB), String(64 * MIB)]);
    site.write(limits("200m", "128Mi"));
    await site.event("ResizeCompleted", "resized");
    await until("both have more", () => read(cgroup) === String(128 * MIB) && read(inside) === String(128 * MIB));
    const second = await site.running("resized");
    assert.deepEqual(ids(second), ids(first));
    assert.equal((await status("resized"))?.containerStatuses?.[0]?.allocatedResources?.["memory"], "128Mi");
    site.write(limits("200m", "32Mi"));
    await until("both have less", () => read(cgroup) === String(32 * MIB) && read(inside) === String(32 * MIB));
    await restart();
    assert.deepEqual(ids(await site.running("resized")), ids(first));
    assert.equal(read(inside), String(32 * MIB));
    site.write(limits("100000", "32Mi"));
    await site.event("ResizeDeferred", "resized");
    assert.deepEqual(ids(await site.running("resized")), ids(first));
    site.remove("resized");
    await site.gone("resized");
  });

  it("how long a crashing container waits survives the agent", async () => {
    site.write(manifest("crashing", { containers: [shell("main", "exit 1")] }));
    // It waits 10 s, then twice as long each time: a busy machine may need longer than that for another agent.
    const turn = SLOWNESS > 1 ? 4 : 2;
    const waits = await site.pod("crashing", "waits", ({ state, restarts, next }) => {
      return state === "CrashLoopBackOff" && restarts === turn && next !== undefined;
    });
    await restart();
    const still = await site.pod("crashing", "still waits", ({ state, next }) => {
      return state === "CrashLoopBackOff" && next !== undefined;
    });
    assert.equal(still.restarts, turn);
    assert.ok(Math.abs((still.next?.at ?? 0) - (waits.next?.at ?? 0)) < 2000, JSON.stringify([waits.next, still.next]));
    await pause(1000);
    assert.equal((await site.find("crashing"))?.restarts, turn);
    site.remove("crashing");
  });

  it("the deadline is noticed while the pod waits for a volume", async () => {
    const volumes = [{ name: "v", hostPath: { path: join(site.dir, "never"), type: "Directory" } }];
    const containers = [shell("main", FOREVER, { volumeMounts: [{ name: "v", mountPath: "/v" }] })];
    site.write(manifest("late", { containers, volumes, activeDeadlineSeconds: 2 }));
    await site.pod("late", "has failed", ({ phase }) => phase === "Failed");
    assert.equal((await status("late"))?.reason, "DeadlineExceeded");
    writeFileSync(join(flags, "done"), "");
    site.remove("late");
  });
});
