import { createHash } from "node:crypto";
import { basename, dirname, join, resolve } from "node:path";

/** Paths and settings of the embedded runtime. Everything else is derived from `stateDir`. */
export interface EmbeddedOptions {
  /** One directory for everything; `/var/lib/kubelet-ts` by default. */
  readonly stateDir: string;
  /** Found in PATH unless given; `ctr` and the shim are taken from beside it where they exist. */
  readonly containerdBinary?: string;
  /** IPv4 subnet of the pods; a free one is chosen at the first start and remembered. */
  readonly podCidr?: string;
  /** Name of the bridge, at most 15 characters; made from the state directory unless given. */
  readonly bridge?: string;
}

/** The state directory of `kubelet up` when none is given. */
export const DEFAULT_STATE_DIR = "/var/lib/kubelet-ts";

/** Every name and path that belongs to one state directory. Pure: the same directory always gives the same names. */
export interface Layout {
  readonly stateDir: string;
  /** Eight hex digits of the state directory: distinguishes two embedded runtimes on one machine. */
  readonly hash: string;
  /** `kubelet-ts-<hash>`: name of the CNI network, of the cgroup, of the table of nftables and the comment of our iptables rules. */
  readonly name: string;
  readonly bridge: string;
  /** The link that holds addresses of services. */
  readonly serviceLink: string;
  /** Cgroup (from the root of each hierarchy) below which the agent puts its pods and we put containerd. */
  readonly cgroupRoot: string;
  readonly runtimeCgroup: string;
  readonly runDir: string;
  readonly socket: string;
  readonly ttrpcSocket: string;
  readonly containerdRoot: string;
  readonly containerdState: string;
  readonly runcRoot: string;
  /** Sockets of the shims; configurable only in containerd 2; 1.6 uses `/run/containerd/s`. */
  readonly shimSocketDir: string;
  readonly configFile: string;
  readonly logFile: string;
  readonly cniConfDir: string;
  readonly ipamDir: string;
  readonly certsDir: string;
  /** Pid and start time of the running containerd. */
  readonly recordFile: string;
  /** What was chosen at the first start; also the mark that the directory is ours. */
  readonly settingsFile: string;
  readonly imagesFile: string;
}

/** The layout of one state directory. */
export function layoutOf(options: EmbeddedOptions): Layout {
  const stateDir = resolve(options.stateDir);
  const hash = createHash("sha256").update(stateDir).digest("hex").slice(0, 8);
  const name = `kubelet-ts-${hash}`;
  const runDir = join(stateDir, "run");
  const socket = join(runDir, "containerd.sock");
  return {
    stateDir,
    hash,
    name,
    bridge: options.bridge ?? `kts-${hash}`,
    serviceLink: `ksv-${hash}`,
    cgroupRoot: `/${name}`,
    runtimeCgroup: `/${name}/runtime`,
    runDir,
    socket,
    ttrpcSocket: `${socket}.ttrpc`,
    containerdRoot: join(stateDir, "containerd"),
    containerdState: join(runDir, "containerd"),
    runcRoot: join(runDir, "runc"),
    shimSocketDir: join(runDir, "s"),
    configFile: join(stateDir, "containerd.toml"),
    logFile: join(stateDir, "containerd.log"),
    cniConfDir: join(stateDir, "cni", "net.d"),
    ipamDir: join(stateDir, "cni", "ipam"),
    certsDir: join(stateDir, "certs.d"),
    recordFile: join(runDir, "containerd.json"),
    settingsFile: join(stateDir, "settings.json"),
    imagesFile: join(stateDir, "images.json"),
  };
}

/** A tool that comes with containerd: from beside the binary if that was given by path, else from PATH. */
export function besideContainerd(options: EmbeddedOptions, tool: string): string {
  const binary = options.containerdBinary;
  if (binary === undefined || basename(binary) === binary) return tool;
  return join(dirname(binary), tool);
}
