/** What the configuration of the private containerd depends on. */
export interface ContainerdSettings {
  /** Major and minor version of the binary: 1.x speaks configuration version 2, 2.x version 3. */
  readonly version: ContainerdVersion;
  readonly root: string;
  readonly state: string;
  readonly socket: string;
  readonly runcRoot: string;
  readonly shimSocketDir: string;
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  readonly certsDir: string;
  readonly sandboxImage: string;
  readonly snapshotter: "overlayfs" | "native";
  /** Without CAP_SYS_RESOURCE no process can lower its OOM score, and RunPodSandbox would fail on trying. */
  readonly mayLowerOomScore: boolean;
}

export interface ContainerdVersion {
  readonly major: number;
  readonly minor: number;
}

/** Reads `containerd --version`; undefined when it is not containerd that answered. */
export function parseContainerdVersion(output: string): ContainerdVersion | undefined {
  const match = /containerd\S*\s+v?(\d+)\.(\d+)/.exec(output);
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]) };
}

/**
 * Plug-ins that the private containerd does without. Start-up is 30 ms with or without them; they go because they
 * write outside our state directory (`opt`, `nri`), start other programs (`aufs` calls modprobe), listen or restart
 * things behind the agent's back (`restart`), or only fill the log with what is not supported here.
 */
const UNUSED_V1 = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.restart",
  "io.containerd.internal.v1.tracing",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
];
const UNUSED_V2 = [
  "io.containerd.image-verifier.v1.bindir",
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.monitor.container.v1.restart",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
  "io.containerd.tracing.processor.v1.otlp",
];

/** As in containerd's own default: longer lines are split by the runtime. */
const LONGEST_LOG_LINE = 16384;

/** The containerd configuration file. Pure; the same settings give the same text, so a change can be seen. */
export function renderContainerdConfig(settings: ContainerdSettings): string {
  return settings.version.major >= 2 ? renderVersion3(settings) : renderVersion2(settings);
}

function renderVersion2(s: ContainerdSettings): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return lines([
    ...head(2, s, UNUSED_V1),
    `[${cri}]`,
    "disable_tcp_service = true",
    'stream_server_address = "127.0.0.1"',
    'stream_server_port = "0"',
    `sandbox_image = ${quote(s.sandboxImage)}`,
    ...runtimeKeys(s),
    `[${cri}.containerd]`,
    `snapshotter = ${quote(s.snapshotter)}`,
    'default_runtime_name = "runc"',
    ...runcTables(`${cri}.containerd`, s),
    `[${cri}.cni]`,
    `bin_dir = ${quote(s.cniBinDir)}`,
    `conf_dir = ${quote(s.cniConfDir)}`,
    `[${cri}.registry]`,
    `config_path = ${quote(s.certsDir)}`,
  ]);
}

function renderVersion3(s: ContainerdSettings): string {
  const runtime = 'plugins."io.containerd.cri.v1.runtime"';
  const images = 'plugins."io.containerd.cri.v1.images"';
  return lines([
    ...head(3, s, UNUSED_V2),
    '[plugins."io.containerd.grpc.v1.cri"]',
    "disable_tcp_service = true",
    'stream_server_address = "127.0.0.1"',
    'stream_server_port = "0"',
    `[${runtime}]`,
    ...runtimeKeys(s),
    `[${runtime}.containerd]`,
    'default_runtime_name = "runc"',
    ...runcTables(`${runtime}.containerd`, s),
    `[${runtime}.cni]`,
    s.version.major === 2 && s.version.minor === 0
      ? `bin_dir = ${quote(s.cniBinDir)}`
      : `bin_dirs = [${quote(s.cniBinDir)}]`,
    `conf_dir = ${quote(s.cniConfDir)}`,
    "use_internal_loopback = true",
    `[${images}]`,
    `snapshotter = ${quote(s.snapshotter)}`,
    `[${images}.pinned_images]`,
    `sandbox = ${quote(s.sandboxImage)}`,
    `[${images}.registry]`,
    `config_path = ${quote(s.certsDir)}`,
    ...shimSockets(s),
  ]);
}

function head(version: number, s: ContainerdSettings, unused: readonly string[]): string[] {
  return [
    "# Written by kubelet-ts at each start: changes are lost. Registries: see certs.d beside this file.",
    `version = ${version}`,
    `root = ${quote(s.root)}`,
    `state = ${quote(s.state)}`,
    `oom_score = ${s.mayLowerOomScore ? -999 : 0}`,
    "imports = []",
    // Without CRI it should end at once, with the reason as its last words.
    'required_plugins = ["io.containerd.grpc.v1.cri"]',
    `disabled_plugins = [${unused.map(quote).join(", ")}]`,
    "[grpc]",
    `address = ${quote(s.socket)}`,
    // A shim that has not answered by then is taken for dead, and its containers are killed. The default of 5 s is short
    // for a machine whose disk or CPUs are busy just after containerd was restarted.
    "[timeouts]",
    '"io.containerd.timeout.shim.load" = "30s"',
    "[debug]",
    'level = "info"',
  ];
}

/** Keys that have the same names in both configuration versions. */
function runtimeKeys(s: ContainerdSettings): string[] {
  return [
    `max_container_log_line_size = ${LONGEST_LOG_LINE}`,
    `restrict_oom_score_adj = ${!s.mayLowerOomScore}`,
    // Network namespaces below our own state directory: found and removed with it, never mixed with others'.
    "netns_mounts_under_state_dir = true",
    "enable_unprivileged_ports = true",
    "enable_unprivileged_icmp = true",
  ];
}

function runcTables(parent: string, s: ContainerdSettings): string[] {
  return [
    `[${parent}.runtimes.runc]`,
    'runtime_type = "io.containerd.runc.v2"',
    `[${parent}.runtimes.runc.options]`,
    `Root = ${quote(s.runcRoot)}`,
    "SystemdCgroup = false",
  ];
}

/** A shim's socket is named by 64 hex digits, and a unix socket's path ends at 107 bytes. */
function shimSockets(s: ContainerdSettings): string[] {
  if (Buffer.byteLength(s.shimSocketDir) + 1 + 64 > 107) return [];
  return ['[plugins."io.containerd.shim.v1.manager"]', `socket_dir = ${quote(s.shimSocketDir)}`];
}

/** A TOML basic string; JSON's escapes are a subset of TOML's. */
function quote(text: string): string {
  return JSON.stringify(text);
}

function lines(all: readonly string[]): string {
  return `${all.join("\n")}\n`;
}
