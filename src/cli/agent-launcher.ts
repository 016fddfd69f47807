import { join } from "node:path";
import { readKernelLimits } from "../adapters/cgroup/facts.ts";
import { CriRuntime } from "../adapters/cri/cri-runtime.ts";
import { findInPath } from "../adapters/embedded/daemon.ts";
import { EmbeddedRuntime, tearDown } from "../adapters/embedded/index.ts";
import { openLogFile } from "../adapters/host/agent-log.ts";
import { watchOpened } from "../adapters/host/file-opened.ts";
import { LinuxHost } from "../adapters/host/index.ts";
import { sendDatagram } from "../adapters/host/notify-socket.ts";
import { setOwnLimits } from "../adapters/host/own-process.ts";
import { PodHost } from "../adapters/host/pod-host.ts";
import { type ConnectDeps, connectApi } from "../adapters/kubeapi/index.ts";
import { Kubelet, type KubeletSettings } from "../agent/kubelet.ts";
import { type AgentOptions, isGiven } from "../config/index.ts";
import { type Abortable, AbortScope, isAborted, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { fixed } from "../lib/live.ts";
import { createLogger, type Logger, type LogLevels, type LogSink, silent } from "../lib/log.ts";
import { Metrics, measureEventLoop } from "../lib/metrics.ts";
import { OWNER_ANNOTATION } from "../model/labels.ts";
import { resolveNodeAddresses } from "../node/index.ts";
import { findUserPool, runOnce, type UserPool } from "../pods/index.ts";
import { beginConfiguration, tellNotActedOn } from "./begin-configuration.ts";
import { CliError } from "./cli-error.ts";
import { checkHost, swapsIn } from "./host-checks.ts";
import type {
  AgentLauncher,
  AgentStart,
  DownOptions,
  PortState,
  Progress,
  RunningAgent,
  UpOptions,
} from "./launcher.ts";
import type { Output } from "./output.ts";
import type { RunningConfiguration, StartConfiguration } from "./running-configuration.ts";
import { takeSharedLock } from "./shared-lock.ts";
import { Supervisor } from "./supervisor.ts";
import { webAddresses } from "./web-addresses.ts";

/** Run-once: how long pods may take, and how often a step may fail. */
const ONCE = { limitMs: 300_000, retries: 3 };
/** How long a start waits for a runtime to say who it is; one that is not there yet is connected to later. */
const ASK_RUNTIME_MS = 2000;

/** `down` ends things: pods get a short grace, calls a short time. */
const DOWN_GRACE_SECONDS = 2;
const DOWN_CALL_MS = 20_000;
const STOP_AGENT_MS = 15_000;

function lockPath(directory: string): string {
  return join(directory, "agent.lock");
}

/** What the launcher is built from. */
export interface LauncherDeps {
  readonly host: LinuxHost;
  readonly clock: Clock;
  readonly out: Output;
  /** The agent's log lines in the plain mode. */
  readonly logSink: LogSink;
  /** Opens a log file for `up`; rotated when it is large. */
  openLog(path: string): LogSink;
  /** Calls `fn` at each SIGHUP of the plain agent, also for one that came before. */
  onReload(fn: () => void, abortable: Abortable): void;
}

/** A launcher on this machine. */
export function openLauncher(deps: Omit<LauncherDeps, "host" | "openLog">): Launcher {
  const { clock } = deps;
  return new Launcher({ ...deps, host: new LinuxHost({ clock }), openLog: (path) => openLogFile(path, clock) });
}

/** Builds agents: the only place that knows every part. */
export class Launcher implements AgentLauncher {
  constructor(private readonly deps: LauncherDeps) {}

  async run(given: AgentOptions, { signal, configuration: start }: Abortable & AgentStart): Promise<number> {
    const releases = [await this.claim(given.rootDir, 0o750)];
    const scope = new AbortScope([signal]);
    try {
      const { dynamicConfigDir } = given;
      if (dynamicConfigDir !== "") releases.push(await this.lockConfigStore(dynamicConfigDir));
      const toLogger = (values: AgentOptions, levels: LogLevels): Logger => {
        const isSplit = values.loggingFormat === "json" ? values.logJsonSplitStream : values.logTextSplitStream;
        const { logSink: sink, out } = this.deps;
        return this.logger({ ...values, ...levels }, isSplit ? { sink, infoSink: out } : { sink });
      };
      const begun = await beginConfiguration({ ...this.deps, toLogger }, start, scope);
      const { store, log, configuration } = begun;
      const options = store.current;
      const supervisor = this.supervisor(log);
      this.refuseHost(options, start, log);
      if (options.lockFile !== "") releases.push(await this.takeShared(options, log, scope));
      for (const refused of await setOwnLimits(options))
        log.warn("a limit of the agent's own could not be set", { refused });
      const settings = await this.settle({ options, containerLogsDir: "/var/log/containers" }, log, scope);
      const metrics = newMetrics();
      const joined = await this.join(settings, { log, store }, scope);
      const { dynamic } = configuration;
      const found = { ...settings, ...joined, store, configuration, dynamic };
      const kubelet = new Kubelet({ ...this.deps, log, metrics }, found);
      begun.attach(kubelet, metrics);
      const running = this.together(kubelet, options.runOnce ? undefined : configuration, scope);
      if (!options.runOnce) {
        const telling = supervisor.run(scope);
        await running.finally(() => scope.abort());
        await telling;
        return 0;
      }
      running.catch((error: unknown) => scope.abort(error));
      const code = await this.once(kubelet, scope);
      scope.abort();
      await running;
      return code;
    } catch (error) {
      if (isAborted(error, signal)) return 0;
      throw error;
    } finally {
      scope.dispose();
      for (const release of releases) release();
    }
  }

  /** Settings that cannot hold on this machine end the start, all in one list. */
  private refuseHost(options: AgentOptions, { loaded }: StartConfiguration, log: Logger): void {
    const { cgroupVersion } = readKernelLimits(this.deps.host.cgroupMounts());
    const facts = { cgroupVersion, swaps: swapsIn(new PodHost(this.deps.host).readSmall("/proc/swaps")) };
    const { refusals, warnings } = checkHost(options, facts, (name) => {
      const origin = loaded.provenance.get(name)?.origin;
      return origin !== undefined && isGiven(origin);
    });
    for (const warning of warnings) log.warn("host", { warning });
    if (refusals.length > 0) throw new CliError(refusals.join("\n"));
  }

  /** `--lock-file`: one agent of this machine, whatever its root directory. */
  private takeShared({ lockFile: path, exitOnLockContention }: AgentOptions, log: Logger, scope: AbortScope) {
    const { clock, host } = this.deps;
    const onContention = (): void => {
      log.info("somebody else opened the lock file: this agent ends, its pods go on", { path });
      scope.abort();
    };
    return takeSharedLock(
      { clock, log, take: (file) => host.lock(file), onOpened: watchOpened },
      { path, ...(exitOnLockContention ? { onContention } : {}) },
      scope,
    );
  }

  private supervisor(log: Logger): Supervisor {
    const { clock } = this.deps;
    return new Supervisor({ clock, log, env: process.env, pid: process.pid, send: sendDatagram });
  }

  async lockConfigStore(directory: string): Promise<() => void> {
    await this.deps.host.makeDir(directory, 0o755);
    const lock = await this.deps.host.lock(join(directory, "store.lock"));
    return () => lock.release();
  }

  async up(options: UpOptions, watcher: Progress, { signal }: Abortable): Promise<RunningAgent> {
    this.refuseWithoutRoot("up");
    const { host, clock } = this.deps;
    // Containers with users of their own have to pass through it on the way to their files.
    const release = await this.claim(options.stateDir, 0o711);
    try {
      const levels = { verbosity: fixed(options.agent.verbosity), modules: fixed(options.agent.vmodule) };
      const log = this.logger({ ...options.agent, ...levels }, { sink: this.deps.openLog(options.logFile) });
      tellNotActedOn(log, options.notActedOn);
      const embedded =
        options.runtimeEndpoint === undefined
          ? new EmbeddedRuntime({ clock, log, host }, { stateDir: options.stateDir })
          : undefined;
      const started = await embedded?.start({ signal, progress: (text) => watcher.progress(text) });
      const agent = {
        ...options.agent,
        ...(embedded && { containerRuntimeEndpoint: embedded.endpoint, cgroupRoot: embedded.cgroupRoot }),
      };
      const { containerLogsDir } = options;
      const owner = embedded === undefined ? { owner: options.stateDir } : {};
      const found = await this.settle({ options: agent, containerLogsDir, ...owner }, log, { signal });
      const kubelet = new Kubelet({ ...this.deps, log, metrics: newMetrics() }, found);
      await Promise.all(Object.values(kubelet.servers).map((server) => server.open()));
      const done = this.untilStopped(kubelet, embedded, { signal, release });
      const pid = started === undefined ? "" : ` (pid ${started.pid}${started.adopted ? ", found running" : ""})`;
      return {
        view: kubelet.view,
        runtime: `${found.runtimeName} ${found.runtimeVersion}${pid}`,
        ports: () => ports(kubelet),
        onPorts: (fn, options) => Object.values(kubelet.servers).forEach((server) => server.onChange(fn, options)),
        urls: () => webAddresses(kubelet.view.pods()),
        done,
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  async down({ stateDir, runtimeEndpoint }: DownOptions, { progress }: Progress, { signal }: Abortable): Promise<void> {
    this.refuseWithoutRoot("down");
    const { host, clock } = this.deps;
    await this.stopAgent(stateDir, { progress }, { signal });
    if (runtimeEndpoint !== undefined) await this.stopMarkedPods(stateDir, runtimeEndpoint, { signal });
    const { left } = await tearDown({ clock, log: silent, host }, { stateDir, progress });
    if (left.length > 0) throw new CliError(`could not be removed: ${left.join("; ")}`);
  }

  /** Ends once the agent did; the embedded containerd and the pods go on. */
  private async untilStopped(
    kubelet: Kubelet,
    embedded: EmbeddedRuntime | undefined,
    { signal, release }: Abortable & { release: () => void },
  ): Promise<number> {
    const scope = new AbortScope([signal]);
    try {
      const supervising = embedded?.supervise(scope.signal);
      await kubelet.run({ signal });
      scope.abort();
      await supervising;
      return 0;
    } finally {
      scope.abort();
      scope.dispose();
      release();
    }
  }

  /** The agent and what follows its configuration; whichever fails ends the other. */
  private async together(kubelet: Kubelet, configuration: RunningConfiguration | undefined, parent: Abortable) {
    const scope = new AbortScope([parent.signal]);
    try {
      const following = configuration?.run(scope.signal).catch((error: unknown) => {
        scope.abort(error);
        throw error;
      });
      const agent = kubelet.run(scope).then(
        () => scope.abort(),
        (error: unknown) => {
          // Not in good order: a configuration on trial may be the reason.
          scope.abort(error);
          throw error;
        },
      );
      for (const end of await Promise.allSettled([agent, following])) if (end.status === "rejected") throw end.reason;
    } finally {
      scope.dispose();
    }
  }

  private async once(kubelet: Kubelet, { signal }: Abortable): Promise<number> {
    const { view, desired } = kubelet;
    const results = await runOnce(
      {
        clock: this.deps.clock,
        sourcesReady: () => desired.allSourcesReady,
        pods: () => view.summaries().flatMap(({ uid }) => view.explain(uid) ?? []),
        onChange: (fn, options) => view.onChange(fn, options),
      },
      ONCE,
      { signal },
    );
    for (const { namespace, name, ok, outcome } of results) {
      const where = namespace === "" ? name : `${namespace}/${name}`;
      await this.deps.out.send(`${ok ? "ok    " : "FAILED"}  ${where}  ${outcome}\n`, { signal });
    }
    if (results.length === 0) await this.deps.out.send("no pods to run\n", { signal });
    return results.every(({ ok }) => ok) ? 0 : 1;
  }

  /** What has to be known before the agent is built; a runtime that does not answer yet does not keep it from starting. */
  private async settle(
    given: Pick<KubeletSettings, "options" | "containerLogsDir" | "owner">,
    log: Logger,
    { signal }: Abortable,
  ): Promise<KubeletSettings & { runtimeVersion: string }> {
    const { host, clock } = this.deps;
    const { options } = given;
    for (const path of [options.rootDir, `${options.rootDir}/pods`]) await host.makeDir(path, 0o750);
    for (const path of [options.podLogsDir, given.containerLogsDir]) await host.makeDir(path, 0o755);
    const runtime = new CriRuntime(
      { clock, log },
      { endpoint: options.containerRuntimeEndpoint, requestTimeoutMs: fixed(ASK_RUNTIME_MS) },
    );
    const ask = async <T>(question: (limited: Abortable) => Promise<T>): Promise<T | undefined> => {
      try {
        return await withScope([signal], { clock, ms: ASK_RUNTIME_MS }, (limited) => question({ signal: limited }));
      } catch (error) {
        if (signal.aborted) throw error;
        log.warn("the runtime does not answer yet", {
          endpoint: options.containerRuntimeEndpoint,
          error: messageOf(error),
        });
        return undefined;
      }
    };
    const version = await ask((limited) => runtime.version(limited));
    const driver = version && (await ask((limited) => runtime.cgroupDriver(limited)));
    runtime.close();
    return {
      ...given,
      userPool: await this.userPool(options),
      machine: { ...host.machine(), nodeName: options.hostnameOverride || host.hostname().toLowerCase() },
      cgroupDriver: driver ?? (options.cgroupDriver === "systemd" ? "systemd" : "cgroupfs"),
      runtimeName: version?.name ?? "containerd",
      runtimeVersion: version?.version ?? "(not answering yet)",
    };
  }

  /** Ids that the administrator set aside for pods with their own users; ends the start when they do not fit. */
  private async userPool(options: AgentOptions): Promise<UserPool | undefined> {
    const { host } = this.deps;
    const run = async (program: string, args: readonly string[]): Promise<string | undefined> => {
      const path = findInPath(program, process.env["PATH"]);
      if (path === undefined) return undefined;
      const { code, stdout, stderr } = await host.exec(path, args, { timeoutMs: ASK_RUNTIME_MS });
      if (code !== 0) throw new Error(`${[program, ...args].join(" ")}: ${stderr.trim() || `ended with ${code}`}`);
      return stdout;
    };
    const users = new PodHost(host).readSmall("/etc/passwd");
    try {
      return await findUserPool({ users, run }, options);
    } catch (error) {
      throw new CliError(`user namespaces: ${messageOf(error)}`);
    }
  }

  /** The way to the cluster and the node's own addresses there; nothing for an agent that runs alone. */
  private async join(
    { machine, options }: KubeletSettings,
    given: Omit<ConnectDeps, "clock">,
    { signal }: Abortable,
  ): Promise<Pick<KubeletSettings, "connection" | "machine">> {
    if (options.runOnce) return { machine };
    const connection = await connectApi({ ...given, clock: this.deps.clock }, machine.nodeName, { signal });
    if (connection === undefined) return { machine };
    const found = await resolveNodeAddresses(options, machine);
    const addresses = found.filter(({ type }) => type === "InternalIP").map(({ address }) => address);
    return { connection: { ...connection, addresses: found }, machine: { ...machine, addresses } };
  }

  private refuseWithoutRoot(command: string): void {
    if (this.deps.host.isRoot()) return;
    throw new CliError(`kubelet ${command} needs root: it makes containers, mounts and networks; run it with sudo`);
  }

  /** An agent that still runs would bring everything up again: it is asked to stop, and waited for. */
  private async stopAgent(stateDir: string, { progress }: Progress, { signal }: Abortable): Promise<void> {
    const { host, clock } = this.deps;
    const holder = await host.lockHolder(lockPath(stateDir));
    if (holder === undefined) return;
    progress(`stopping the agent (pid ${holder.pid})`);
    const deadline = clock.now().mono + STOP_AGENT_MS;
    host.signalProcess(holder, "SIGTERM");
    while ((await host.lockHolder(lockPath(stateDir)))?.pid === holder.pid) {
      if (clock.now().mono > deadline) throw new CliError(`the agent (pid ${holder.pid}) does not stop; end it first`);
      await clock.sleep(50, { signal });
    }
  }

  /** On a runtime that is not ours only the pods with our mark are ours. */
  private async stopMarkedPods(owner: string, endpoint: string, { signal }: Abortable): Promise<void> {
    const { clock } = this.deps;
    const runtime = new CriRuntime({ clock, log: silent }, { endpoint, requestTimeoutMs: fixed(DOWN_CALL_MS) });
    try {
      const all = await runtime.listSandboxes({}, { signal });
      const own = all.filter(({ annotations }) => annotations[OWNER_ANNOTATION] === owner);
      await Promise.all(
        own.map(async ({ id }) => {
          const containers = await runtime.listContainers({ sandboxId: id }, { signal });
          await Promise.all(
            containers.map((container) => runtime.stopContainer(container.id, DOWN_GRACE_SECONDS, { signal })),
          );
          await runtime.stopSandbox(id, { signal });
          await runtime.removeSandbox(id, { signal });
        }),
      );
    } finally {
      runtime.close();
    }
  }

  private logger(
    { loggingFormat, verbosity, modules }: Pick<AgentOptions, "loggingFormat"> & LogLevels,
    sinks: { readonly sink: LogSink; readonly infoSink?: LogSink },
  ): Logger {
    const format = loggingFormat === "json" ? "json" : "text";
    return createLogger({ ...sinks, clock: this.deps.clock, format, verbosity, modules });
  }

  private async claim(directory: string, mode: number): Promise<() => void> {
    await this.deps.host.makeDir(directory, mode);
    const lock = await this.deps.host.lock(lockPath(directory));
    return () => lock.release();
  }
}

function ports({ servers }: Kubelet): PortState[] {
  const state = (name: string, server: { address: string | undefined; trouble: string | undefined }): PortState => ({
    ...{ name, address: server.address, trouble: server.trouble },
  });
  return [
    ...(servers.health === undefined ? [] : [state("health", servers.health)]),
    ...(servers.readOnly === undefined ? [] : [state("read-only", servers.readOnly)]),
    ...(servers.main === undefined ? [] : [state("main", servers.main)]),
  ];
}

function newMetrics(): Metrics {
  const metrics = new Metrics();
  measureEventLoop(metrics);
  return metrics;
}
