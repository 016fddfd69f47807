import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import type { Pod } from "../../src/model/generated/types.ts";
import { SmallCluster } from "./small-cluster.ts";

export const MI = 2 ** 20;
/** Memory of all pods together: the machine itself is never short. */
export const PODS_MEMORY = 300 * MI;
const CGROUPS = "/sys/fs/cgroup";
const DISK = "96M";
const SWAP_MI = 1024;
const LINK = "kt-pressure";
const ADDRESS = "192.0.2.10";

/** Why no such node can be here, or false. */
export function whyNoUnifiedNode(): string | false {
  if (process.env["KUBELET_TEST_VM"] !== "1") return "needs a machine whose swap may be turned on";
  if (!existsSync("/run/systemd/system")) return "this machine does not run systemd";
  return !existsSync(join(CGROUPS, "cgroup.controllers")) && "this machine has no unified cgroups";
}

export const isEvicted = ({ status }: Pod): boolean => status?.phase === "Failed" && status.reason === "Evicted";
export const instanceOf = ({ status }: Pod): string | undefined => status?.containerStatuses?.[0]?.containerID;

/** A file of a cgroup. */
export const read = (directory: string, file: string): string => readFileSync(join(directory, file), "utf8").trim();

/** A field of /proc/meminfo, in bytes. */
export function memoryInfo(field: string): number {
  return Number(new RegExp(`^${field}: +(\\d+)`, "m").exec(readFileSync("/proc/meminfo", "utf8"))?.[1] ?? 0) * 1024;
}

/**
 * An agent on cgroup v2 with systemd whose node is small: little memory for pods, a small disk, and swap. Its pod `kept` has
 * a request and takes nothing.
 */
export class UnifiedNode {
  private readonly swap = join(process.env["TMPDIR"] ?? "/tmp", "pressure-swap");

  private constructor(
    readonly cluster: SmallCluster,
    private readonly options: { readonly hasSwap: boolean },
  ) {}

  /** Starts it with these settings beside those of the class. */
  static async start(config: object, options = { hasSwap: false }): Promise<UnifiedNode> {
    const node = new UnifiedNode(await SmallCluster.start({ systemdCgroup: true }), options);
    try {
      await node.prepare(config);
      return node;
    } catch (error) {
      await node.close();
      throw error;
    }
  }

  /** The directory of `kubepods` (no names), of a class, of a pod. */
  slice(...names: string[]): string {
    const all = [this.sliceName, "kubepods", ...names];
    return join(CGROUPS, ...all.map((_, i) => `${all.slice(0, i + 1).join("-")}.slice`));
  }

  podSlice(pod: Pod): string {
    return this.slice("burstable", `pod${(pod.metadata.uid ?? "").replaceAll("-", "_")}`);
  }

  scopeOf(pod: Pod): string {
    return join(this.podSlice(pod), `cri-containerd-${(instanceOf(pod) ?? "").replace(/^.*:\/\//, "")}.scope`);
  }

  /** Names of evicted pods with the number of their events, and signals with the number of evictions. */
  async evictions(): Promise<{ readonly pods: readonly string[]; readonly signals: readonly string[] }> {
    const told = this.cluster.events("Evicted").map(({ involvedObject, count }) => `${involvedObject.name} ${count}`);
    const metrics = await this.cluster.page("/metrics");
    const counted = [...metrics.matchAll(/^kubelet_evictions\{eviction_signal="([^"]+)"\} (\d+)$/gm)];
    return { pods: told.sort(), signals: counted.map(([, signal, count]) => `${signal} ${count}`).sort() };
  }

  async close(): Promise<void> {
    try {
      await this.cluster.close();
      spawnSync("systemctl", ["stop", `${this.sliceName}.slice`]);
    } finally {
      spawnSync("ip", ["link", "delete", LINK]);
      if (this.options.hasSwap) execFileSync("swapoff", [this.swap]);
      rmSync(this.swap, { force: true });
    }
  }

  private get sliceName(): string {
    return this.cluster.containerd.cgroupParent.slice(1).replaceAll("-", "_");
  }

  private async prepare(config: object): Promise<void> {
    const { dir, root } = this.cluster;
    if (this.options.hasSwap) {
      execFileSync("fallocate", ["-l", `${SWAP_MI}M`, this.swap]);
      execFileSync("chmod", ["600", this.swap]);
      execFileSync("mkswap", [this.swap], { stdio: "ignore" });
      execFileSync("swapon", [this.swap]);
    }
    const image = join(dir, "disk");
    execFileSync("truncate", ["-s", DISK, image]);
    execFileSync("mkfs.ext4", ["-q", "-F", "-m", "0", "-N", "1000", "-O", "^has_journal", image]);
    execFileSync("mount", ["-o", "loop", image, root]);
    // The machine has no network but its own, and a node needs an address.
    execFileSync("ip", ["link", "add", LINK, "type", "veth", "peer", "name", `${LINK}1`]);
    execFileSync("ip", ["address", "add", `${ADDRESS}/24`, "dev", LINK]);
    for (const end of [LINK, `${LINK}1`]) execFileSync("ip", ["link", "set", end, "up"]);
    // Huge pages are set apart: no pod gets them as memory.
    const reserved = Math.floor((totalmem() - memoryInfo("Hugetlb") - PODS_MEMORY) / 1024);
    const common = {
      cgroupDriver: "systemd",
      failSwapOn: false,
      kubeReserved: { memory: `${reserved}Ki` },
      evictionPressureTransitionPeriod: "3s",
    };
    await this.cluster.join({ ...common, ...config }, [`--node-ip=${ADDRESS}`]);
  }
}
