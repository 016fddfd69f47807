/** What the configuration of a test containerd depends on. */
export interface TestConfig {
  /** The binary's major version: 1 reads configuration version 2, 2 reads version 3. */
  readonly major: number;
  readonly dir: string;
  readonly socket: string;
  readonly cniBinDir: string;
  readonly sandboxImage: string;
  readonly snapshotter: "overlayfs" | "native";
  /** Runtime handlers beside `runc`; each is runc with a state directory of its own, `runc-NAME`. */
  readonly handlers?: readonly string[];
  /** Containers are scopes of systemd's. */
  readonly systemdCgroup?: boolean;
  /** The network configuration is made from this file once the runtime is told the addresses of pods. */
  readonly networkTemplate?: string;
  /** Where it finds how to reach registries: a directory for each, with a hosts.toml. */
  readonly registries?: string;
}

/** A configuration that keeps everything below `dir`. Kept apart from the embedded runtime's own, which is under test. */
export function testConfig(config: TestConfig): string {
  const { dir } = config;
  const text = (value: string): string => JSON.stringify(value);
  const v2 = config.major >= 2;
  const runtime = v2 ? 'plugins."io.containerd.cri.v1.runtime"' : 'plugins."io.containerd.grpc.v1.cri"';
  const images = 'plugins."io.containerd.cri.v1.images"';
  const server = 'plugins."io.containerd.grpc.v1.cri"';
  const disabled = v2
    ? ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt"]
    : ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs"];
  const serverKeys = ['stream_server_address = "127.0.0.1"', 'stream_server_port = "0"', "disable_tcp_service = true"];
  const imageTables = v2
    ? [
        `[${images}]`,
        `snapshotter = ${text(config.snapshotter)}`,
        `[${images}.pinned_images]`,
        `sandbox = ${text(config.sandboxImage)}`,
        `[${server}]`,
        ...serverKeys,
        '[plugins."io.containerd.shim.v1.manager"]',
        `socket_dir = ${text(`${dir}/s`)}`,
      ]
    : [];
  return [
    `version = ${v2 ? 3 : 2}`,
    `root = ${text(`${dir}/root`)}`,
    `state = ${text(`${dir}/run`)}`,
    `disabled_plugins = [${disabled.map(text).join(", ")}]`,
    "[grpc]",
    `address = ${text(config.socket)}`,
    `[${runtime}]`,
    ...(v2 ? [] : [...serverKeys, `sandbox_image = ${text(config.sandboxImage)}`]),
    "restrict_oom_score_adj = true",
    "netns_mounts_under_state_dir = true",
    // CDI is on by default from version 2 on; 1.6 does not know it.
    ...(v2 ? [`cdi_spec_dirs = [${text(`${dir}/cdi`)}]`] : []),
    `[${runtime}.containerd]`,
    ...(v2 ? [] : [`snapshotter = ${text(config.snapshotter)}`]),
    'default_runtime_name = "runc"',
    `[${runtime}.containerd.runtimes.runc]`,
    'runtime_type = "io.containerd.runc.v2"',
    `[${runtime}.containerd.runtimes.runc.options]`,
    `Root = ${text(`${dir}/runc`)}`,
    `SystemdCgroup = ${config.systemdCgroup === true}`,
    ...(config.handlers ?? []).flatMap((name) => [
      `[${runtime}.containerd.runtimes.${name}]`,
      'runtime_type = "io.containerd.runc.v2"',
      `[${runtime}.containerd.runtimes.${name}.options]`,
      `Root = ${text(`${dir}/runc-${name}`)}`,
    ]),
    `[${runtime}.cni]`,
    v2 ? `bin_dirs = [${text(config.cniBinDir)}]` : `bin_dir = ${text(config.cniBinDir)}`,
    `conf_dir = ${text(`${dir}/net.d`)}`,
    ...(config.networkTemplate === undefined ? [] : [`conf_template = ${text(config.networkTemplate)}`]),
    ...imageTables,
    ...(config.registries === undefined
      ? []
      : [`[${v2 ? images : runtime}.registry]`, `config_path = ${text(config.registries)}`]),
    "",
  ].join("\n");
}
