import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { KUBELET } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { testConfig } from "./containerd-config.ts";
import { kubeBinDir } from "./control-plane.ts";
import { makeCgroup } from "./go-kubelet.ts";
import { type Finished, NodeMachine } from "./node-machine.ts";

const KUBELET_LOG = "/var/log/kubelet.log";
const CONTAINERD_LOG = "/var/log/containerd.log";
const SOCKET = "/run/containerd/containerd.sock";

/**
 * Stands in for systemd: its one service is started as the unit that comes with kubeadm starts it, and again 10 s after it
 * has exited by itself, with a line in its log.
 */
const SYSTEMCTL = `#!/bin/sh
pid=/run/kubelet.pid
alive() { [ -s $pid ] && kill -0 "$(cat $pid)" 2>/dev/null; }
start() {
  alive && return
  . /var/lib/kubelet/kubeadm-flags.env
  . /etc/default/kubelet
  setsid "$0" supervise /usr/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \\
    --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \\
    $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS >> ${KUBELET_LOG} 2>&1 < /dev/null &
  echo $! > $pid
}
supervise() {
  trap 'kill $child; wait $child; exit' TERM
  while :; do
    "$@" & child=$!
    wait $child
    echo "systemctl: $1 exited with code $?, and is started again"
    sleep 10 & child=$!
    wait $child
  done
}
stop() { alive && kill "$(cat $pid)"; while alive; do sleep 0.05; done; }
case "$1 \${2%.service}" in
"supervise "*) shift; supervise "$@" ;;
"daemon-reload ") ;;
"status kubelet" | "is-enabled kubelet") echo "Loaded: loaded" ;;
"is-active kubelet") if alive; then echo active; else echo inactive; exit 3; fi ;;
"start kubelet") start ;;
"stop kubelet") stop ;;
"restart kubelet") stop; start ;;
*) echo "Unit $2 could not be found."; exit 4 ;;
esac
`;

/** A machine with containerd, kubeadm and this agent as its kubelet. */
export class KubeadmNode {
  private readonly cgroup = `/kts-kubeadm-${randomBytes(4).toString("hex")}`;

  private constructor(
    readonly machine: NodeMachine,
    readonly address: string,
  ) {}

  /** Starts the machine, which is to have this address; `startRuntime` follows when it has its network. */
  static async start(name: string, address: string): Promise<KubeadmNode> {
    const project = dirname(dirname(KUBELET));
    const node = new KubeadmNode(await NodeMachine.start(name, [project, kubeBinDir()]), address);
    try {
      node.install();
      return node;
    } catch (error) {
      await node.stop();
      throw error;
    }
  }

  get name(): string {
    return this.machine.name;
  }

  private install(): void {
    const { machine, address } = this;
    makeCgroup(this.cgroup);
    for (const tool of ["kubeadm", "kubectl"])
      machine.runSync("ln", "-sf", join(kubeBinDir(), tool), `/usr/bin/${tool}`);
    machine.runSync("ln", "-sf", KUBELET, "/usr/bin/kubelet");
    machine.write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755);
    const flags = [`--cgroup-root=${this.cgroup}`, `--node-ip=${address}`, "--v=2"];
    machine.write("/etc/default/kubelet", `KUBELET_EXTRA_ARGS="${flags.join(" ")}"\n`);
    machine.write("/etc/hosts", `127.0.0.1 localhost\n${address} ${this.name}\n`);
    // There is nobody beyond the cluster to ask for a name.
    machine.write("/etc/resolv.conf", `nameserver ${address}\n`);
  }

  /** Starts containerd, which has no network for pods until it is told their addresses. */
  async startRuntime(sandboxImage: string): Promise<void> {
    const { machine } = this;
    const dir = join(machine.dir, "c");
    mkdirSync(dir);
    const version = spawnSync("containerd", ["--version"], { encoding: "utf8" }).stdout;
    const network = join(dir, "network.template");
    machine.write(
      "/etc/containerd/config.toml",
      testConfig({
        major: Number(/ v?(\d+)\.\d+/.exec(version)?.[1]),
        dir,
        socket: SOCKET,
        cniBinDir: "/usr/lib/cni",
        sandboxImage,
        snapshotter: "overlayfs",
        networkTemplate: network,
      }),
    );
    for (const sub of ["net.d", "run", "s", "runc"]) mkdirSync(join(dir, sub));
    // Every packet of a pod is routed, also to its neighbours, so that all of them pass the rules of kube-proxy.
    const ipam = {
      type: "host-local",
      dataDir: join(dir, "ipam"),
      ranges: [[{ subnet: "{{.PodCIDR}}" }]],
      routes: [{ dst: "0.0.0.0/0" }],
    };
    const plugins = [
      { type: "ptp", ipMasq: false, ipam },
      { type: "portmap", capabilities: { portMappings: true } },
    ];
    machine.write(network, JSON.stringify({ cniVersion: "0.4.0", name: "pods", plugins }));
    machine.start(CONTAINERD_LOG, ["containerd", "--config", "/etc/containerd/config.toml"]);
    const answers = (): Promise<boolean> =>
      machine.run("ctr", "version").then(
        () => true,
        () => false,
      );
    await until(`containerd of ${this.name}`, answers, { seen: () => machine.tail(CONTAINERD_LOG) });
  }

  async importImages(archives: readonly string[]): Promise<void> {
    for (const archive of archives) {
      // The archive is a file of this machine, read through standard input: the other machine has a /tmp of its own.
      await this.machine.runWith(archive, "ctr", "-n", "k8s.io", "images", "import", "-");
    }
  }

  /** Runs kubeadm; a failure shows what the agent and the runtime said meanwhile. */
  async kubeadm(...args: readonly string[]): Promise<Finished> {
    try {
      return await this.machine.run("kubeadm", ...args);
    } catch (error) {
      throw new Error(`${String(error)}\n${this.logs()}`, { cause: error });
    }
  }

  kubectl(...args: readonly string[]): Promise<Finished> {
    return this.machine.run("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", ...args);
  }

  /** Returns the ids of the containers that run now. */
  async running(): Promise<string[]> {
    const { stdout } = await this.machine.run("ctr", "-n", "k8s.io", "tasks", "list", "-q");
    return stdout.split("\n").filter((line) => line !== "");
  }

  logs(): string {
    return `--- kubelet of ${this.name}\n${this.machine.tail(KUBELET_LOG)}\n--- containerd\n${this.machine.tail(CONTAINERD_LOG, 20)}`;
  }

  async stop(): Promise<void> {
    await this.machine.stop(this.cgroup);
  }
}
