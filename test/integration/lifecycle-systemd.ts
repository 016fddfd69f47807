/** Pods in systemd's slices: agent and runtime both with the systemd driver, on a machine that runs systemd. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { messageOf } from "../../src/lib/errors.ts";
import type { Pod, ResourceRequirements } from "../../src/model/generated/types.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { TEST_IMAGES, TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { FOREVER, manifest, shell } from "./support/manifests.ts";
import { KUBELET, Program } from "./support/program.ts";
import { ids, requireMachine, Site } from "./support/site.ts";
import { until } from "./support/until.ts";

requireMachine();

const MIB = 2 ** 20;
const CGROUPS = "/sys/fs/cgroup";
const binDir = process.env["CONTAINERD2_BIN_DIR"] ?? "";

function obstacle(): string | false {
  if (!existsSync("/run/systemd/system")) return "this machine does not run systemd";
  if (!existsSync(join(CGROUPS, "cgroup.controllers"))) return "this machine has no unified cgroups";
  return false;
}

/** An agent and a containerd of its own below one slice of the machine's. */
class SystemdSite {
  readonly site = new Site();
  /** All slices of this site carry this name. */
  readonly name: string;
  private agent: Program | undefined;

  constructor(readonly containerd: TestContainerd) {
    this.name = containerd.cgroupParent.slice(1).replaceAll("-", "_");
    mkdirSync(this.site.state);
  }

  async up(flags: readonly string[]): Promise<void> {
    const { state, pods } = this.site;
    this.agent = new Program([
      ...[KUBELET, `--root-dir=${state}/kubelet`, `--cert-dir=${state}/pki`, `--pod-logs-dir=${state}/log/pods`],
      ...[`--port=${await freePort()}`, `--healthz-port=${await freePort()}`, `--pod-manifest-path=${pods}`],
      ...[`--local-api-socket=${state}/kubelet.sock`, `--cgroup-root=${this.containerd.cgroupParent}`],
      ...[`--container-runtime-endpoint=${this.containerd.endpoint}`, "--pod-max-pids=64", "--hostname-override=here"],
      ...flags,
    ]);
    await this.site.answers(this.agent);
  }

  async down(): Promise<void> {
    await this.agent?.end("SIGTERM");
  }

  /** The pod, once it runs; if it does not, the error shows what the agent logged. */
  async running(name: string): Promise<PodExplanation> {
    return this.site.running(name).catch((error: unknown) => {
      throw new Error(`${messageOf(error)}\n${this.log.slice(-8000)}`, { cause: error });
    });
  }

  /** What the agent wrote so far: its log. */
  get log(): string {
    return this.agent?.stderr ?? "";
  }

  /** The directory of `kubepods` (no names), of a class, of a pod. */
  slice(...names: string[]): string {
    const all = [this.name, "kubepods", ...names];
    return join(CGROUPS, ...all.map((_, i) => `${all.slice(0, i + 1).join("-")}.slice`));
  }

  read(directory: string, file: string): string {
    return readFileSync(join(directory, file), "utf8").trim();
  }

  async close(): Promise<void> {
    await this.down();
    await this.containerd.removeEverything();
    execFileSync("systemctl", ["stop", `${this.name}.slice`]);
    // Not a state directory of `kubelet up`, which `kubelet down` could remove.
    rmSync(this.site.dir, { recursive: true, force: true });
    await this.containerd.stop();
  }
}

/** What systemd itself knows of a unit. */
function shown(directory: string, property: string): string {
  const unit = directory.split("/").at(-1) ?? "";
  return execFileSync("systemctl", ["show", "--value", "-p", property, unit], { encoding: "utf8" }).trim();
}

function sized(name: string, resources: ResourceRequirements): Pod {
  const containers = [shell("main", FOREVER, { image: TEST_IMAGES.busybox, resources })];
  return manifest(name, { containers }, { uid: `${name}1` });
}

function both(cpu: string, memory: string): ResourceRequirements {
  return { limits: { cpu, memory }, requests: { cpu, memory } };
}

/** The runtime's own answer decides where it has one (containerd 2), else the agent's setting. */
const runtimes = [
  { title: "the system's containerd, which the agent is told of", options: {}, flags: ["--cgroup-driver=systemd"] },
  ...(binDir === "" ? [] : [{ title: "containerd 2, which says so itself", options: { binDir }, flags: [] }]),
];

for (const { title, options, flags } of runtimes) {
  describe(`systemd's slices with ${title}`, { skip: obstacle() }, () => {
    let here: SystemdSite;
    let first: Record<string, string>;

    before(async () => {
      here = new SystemdSite(await TestContainerd.start({ ...options, systemdCgroup: true }));
      await here.up(flags);
    });
    after(() => here.close());

    // Much time for each: what starts a container is under its limit already.
    it("a guaranteed pod's slice has its limits, in the kernel and in systemd, and its containers are scopes in it", async () => {
      here.site.write(sized("full", both("1", "64Mi")));
      first = ids(await here.running("full"));
      const slice = here.slice("podfull1");
      assert.equal(here.read(slice, "cpu.max"), "100000 100000");
      assert.equal(here.read(slice, "memory.max"), String(64 * MIB));
      assert.equal(here.read(slice, "pids.max"), "64");
      assert.equal(here.read(slice, "cpu.weight"), "39");
      const properties = ["ActiveState", "MemoryMax", "CPUQuotaPerSecUSec", "CPUWeight", "TasksMax"];
      const known = properties.map((name) => shown(slice, name));
      assert.deepEqual(known, ["active", String(64 * MIB), "1s", "39", "64"]);
      const id = (first["main"] ?? "").replace(/^.*:\/\//, "");
      const scope = readdirSync(slice).find((name) => name.includes(id)) ?? "none";
      assert.match(scope, /\.scope$/);
      assert.equal(here.read(join(slice, scope), "memory.max"), String(64 * MIB));
      assert.notEqual(here.read(join(slice, scope), "cgroup.procs"), "");
      assert.doesNotMatch(here.log, /refuses a limit/);
    });

    it("a class has the sum of what its pods ask for", async () => {
      here.site.write(sized("some", { requests: { cpu: "500m", memory: "16Mi" } }));
      await here.running("some");
      // 512 shares, on the kernel's scale of weights.
      await until("the class has the sum", () => here.read(here.slice("burstable"), "cpu.weight") === "20");
      assert.equal(shown(here.slice("burstable"), "CPUWeight"), "20");
      assert.match(here.read(here.slice("burstable", "podsome1"), "cpu.max"), /^max /);
      assert.ok(Number(here.read(here.slice(), "memory.max")) > 0);
      // As many CPUs as there are, in words that systemd knows: it would take the cpuset controller away otherwise.
      const online = readFileSync("/sys/devices/system/cpu/online", "utf8").trim();
      assert.equal(here.read(here.slice(), "cpuset.cpus"), online);
      assert.equal(shown(here.slice(), "AllowedCPUs"), online);
    });

    it("systemd's reload changes nothing", async () => {
      execFileSync("systemctl", ["daemon-reload"]);
      const slice = here.slice("podfull1");
      const limits = ["cpu.max", "memory.max", "pids.max"].map((file) => here.read(slice, file));
      assert.deepEqual(limits, ["100000 100000", String(64 * MIB), "64"]);
      assert.equal(here.read(here.slice("burstable"), "cpu.weight"), "20");
      assert.match(here.read(here.slice(), "cgroup.controllers"), /\bcpuset\b/);
    });

    it("a restart of the agent leaves the containers, and a resize reaches the slice", async () => {
      await here.down();
      await here.up(flags);
      assert.deepEqual(ids(await here.running("full")), first);
      here.site.write(sized("full", both("1500m", "96Mi")));
      const slice = here.slice("podfull1");
      await until("the slice has more", () => here.read(slice, "memory.max") === String(96 * MIB));
      await until("it has more time", () => here.read(slice, "cpu.max") === "150000 100000");
      assert.equal(shown(slice, "MemoryMax"), String(96 * MIB));
      assert.deepEqual(ids(await here.running("full")), first);
    });

    it("the slice goes with the pod, for the kernel and for systemd", async () => {
      const slices = [here.slice("podfull1"), here.slice("burstable", "podsome1")];
      for (const name of ["full", "some"]) here.site.remove(name);
      for (const name of ["full", "some"]) await here.site.gone(name);
      for (const slice of slices) {
        await until(`${slice} is gone`, () => !existsSync(slice));
        await until(`systemd has ended ${slice}`, () => shown(slice, "ActiveState") === "inactive");
      }
      await until("the class asks for nothing", () => here.read(here.slice("burstable"), "cpu.weight") === "1");
    });
  });
}
