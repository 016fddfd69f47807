import { join } from "node:path";
import { connectRuntime } from "../adapters/connect-runtime.ts";
import { EmbeddedRuntime, tearDown } from "../adapters/embedded/index.ts";
import { openLogFile } from "../adapters/host/agent-log.ts";
import { documentParser, openStore } from "../adapters/host/dynamic-store.ts";
import { HostError, LinuxHost } from "../adapters/host/index.ts";
import { manifestFiles } from "../adapters/host/manifest-files.ts";
import { setOwnLimits } from "../adapters/host/own-process.ts";
import { serviceNotifier } from "../adapters/host/service-notifier.ts";
import { holdSharedLock } from "../adapters/host/shared-lock.ts";
import { stopAgent } from "../adapters/host/stop-agent.ts";
import type { AgentLauncher, AgentStart, DownOptions, Progress, RunningAgent, UpOptions } from "../cli/index.ts";
import {
  type AgentOptions,
  agentLogger,
  agentOptions,
  logNotActedOn,
  logSinks,
  OptionStore,
  startConfiguration,
} from "../config/index.ts";
import { type Abortable, AbortScope, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { fixed, LiveValue } from "../lib/live.ts";
import { type LogSink, silent } from "../lib/log.ts";
import { runBeside } from "../lib/loop.ts";
import { Metrics, measureEventLoop } from "../lib/metrics.ts";
import { prepareHost } from "../node/index.ts";
import { reportOnce, stopOwnedPods } from "../pods/index.ts";
import { Kubelet } from "./kubelet.ts";
import { joinLocalCluster } from "./local-cluster.ts";
import { joinCluster, prepareSettings } from "./prepare.ts";

/** Timeout of a call to the runtime during `down`, in milliseconds. */
const DOWN_CALL_MS = 20_000;

function lockPath(directory: string): string {
  return join(directory, "agent.lock");
}

/** What the launcher is built from. */
export interface LauncherDeps {
  readonly clock: Clock;
  /** Writes the results of run-once. */
  readonly out: LogSink & { send(text: string, options: Abortable): Promise<boolean> };
  /** Takes the log lines of the plain agent. */
  readonly logSink: LogSink;
  /** Calls `fn` at each SIGHUP of the plain agent, also for one that came before. */
  onReload(fn: () => void, abortable: Abortable): void;
}

/** Starts agents on this machine, and removes what `up` made. */
export class Launcher implements AgentLauncher {
  private readonly host: LinuxHost;

  constructor(private readonly deps: LauncherDeps) {
    this.host = new LinuxHost({ clock: deps.clock });
  }

  /** The plain agent. */
  async run(given: AgentOptions, { signal, configuration: start }: Abortable & AgentStart): Promise<number> {
    const { host } = this;
    const { clock } = this.deps;
    const releases = [await this.claim(given.rootDir, 0o750)];
    const scope = new AbortScope([signal]);
    try {
      if (given.dynamicConfigDir !== "") releases.push(await this.lockConfigStore(given.dynamicConfigDir));
      const started = await startConfiguration(this.configurationDeps(), start, scope);
      const { store, log, configuration } = started;
      const options = store.current;
      const notifier = serviceNotifier({ clock, log });
      prepareHost({ host, log }, options, start.loaded);
      if (options.lockFile !== "") releases.push(await holdSharedLock({ clock, log, host }, options, scope));
      for (const refused of await setOwnLimits(options)) log.warn("Failed to set a limit of the agent", { refused });
      const paths = { options, containerLogsDir: "/var/log/containers" };
      const settings = await prepareSettings({ host, clock, log }, paths, scope);
      const found = await joinCluster({ host, clock, log, store }, settings, scope);
      const joined = found.connection ? found : await joinLocalCluster({ host, clock, log, store }, settings, scope);
      const metrics = newMetrics();
      const { dynamic } = configuration;
      const kubelet = new Kubelet(
        { host, clock, log, metrics },
        { ...settings, ...joined, store, configuration, dynamic },
      );
      started.attach(kubelet, metrics);
      if (options.runOnce) return await this.once(kubelet, scope);
      const notifying = notifier.run(scope, kubelet.stalled);
      const follow = (stop: AbortSignal) => configuration.run(stop);
      await runBeside((options) => kubelet.run(options), follow, scope).finally(() => scope.abort());
      await notifying;
      return 0;
    } catch (error) {
      if (isAborted(error, signal)) return 0;
      throw error;
    } finally {
      scope.dispose();
      for (const release of releases) release();
    }
  }

  async lockConfigStore(directory: string): Promise<() => void> {
    await this.host.makeDir(directory, 0o755);
    const lock = await this.host.lock(join(directory, "store.lock"));
    return () => lock.release();
  }

  /** `kubelet up`: the agent, and an embedded runtime unless one is given. */
  async up(options: UpOptions, { progress }: Progress, { signal }: Abortable): Promise<RunningAgent> {
    this.requireRoot("up");
    const { host } = this;
    const { clock } = this.deps;
    // Containers in user namespaces pass through this directory to their files.
    const release = await this.claim(options.stateDir, 0o711);
    try {
      const { stateDir, agent, containerLogsDir } = options;
      const levels = { verbosity: new LiveValue(agent.verbosity), modules: fixed(agent.vmodule) };
      const log = agentLogger(clock, { ...agent, ...levels }, { sink: openLogFile(options.logFile, clock) });
      for (const warning of options.warnings) log.warn("Configuration has a problem", { warning });
      logNotActedOn(log, options.notActedOn);
      const { podCIDR } = agent;
      const subnet = podCIDR === "" ? {} : { podCidr: podCIDR };
      const isEmbedded = options.runtimeEndpoint === undefined;
      const embedded = isEmbedded ? new EmbeddedRuntime({ clock, log, host }, { stateDir, ...subnet }) : undefined;
      const started = await embedded?.start({ signal, progress });
      const given = embedded
        ? { ...agent, containerRuntimeEndpoint: embedded.endpoint, cgroupRoot: embedded.cgroupRoot }
        : agent;
      const owner = embedded === undefined ? { owner: stateDir } : {};
      const settings = await prepareSettings(
        { host, clock, log },
        { options: given, containerLogsDir, ...owner },
        { signal },
      );
      const store = new OptionStore(agentOptions, given);
      // The main port may change it.
      store.live("verbosity").onChange(({ verbosity }) => levels.verbosity.set(verbosity), { signal });
      const { trouble, servicesTrouble, ...joined } = await joinLocalCluster(
        { host, clock, log, store },
        { ...settings, network: embedded?.network() },
        { signal },
      );
      const kubelet = new Kubelet({ host, clock, log, metrics: newMetrics() }, { ...settings, ...joined, store });
      const servers = Object.values(kubelet.servers);
      await Promise.all(servers.map((server) => server.open()));
      const pid = started === undefined ? "" : ` (pid ${started.pid}${started.adopted ? ", found running" : ""})`;
      const { localApi: _socket, apiSocket: _apiSocket, ...ports } = kubelet.servers;
      return {
        view: kubelet.view,
        pods: () => kubelet.view.pods(),
        runtime: `${settings.runtimeName} ${settings.runtimeVersion}${pid}`,
        ports: () => [
          ...Object.values(ports).map((port) => ({ name: port.name, address: port.address, trouble: port.trouble })),
          ...(trouble === undefined ? [] : [{ name: "API", address: undefined, trouble }]),
          ...(servicesTrouble === undefined
            ? []
            : [{ name: "services", address: undefined, trouble: servicesTrouble }]),
        ],
        onPorts: (fn, abortable) => servers.forEach((server) => server.onChange(fn, abortable)),
        // The embedded runtime outlives the agent, with the pods.
        done: runBeside((abortable) => kubelet.run(abortable), embedded && ((stop) => embedded.supervise(stop)), {
          signal,
        })
          .finally(release)
          .then(() => 0),
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** `kubelet down`: stops the agent, its pods and its runtime, and removes the state directory. */
  async down({ stateDir, runtimeEndpoint }: DownOptions, { progress }: Progress, { signal }: Abortable): Promise<void> {
    this.requireRoot("down");
    const { host } = this;
    const { clock } = this.deps;
    await stopAgent({ host, clock, progress }, lockPath(stateDir), { signal });
    if (runtimeEndpoint !== undefined) {
      const endpoint = { endpoint: runtimeEndpoint, requestTimeoutMs: fixed(DOWN_CALL_MS) };
      const { runtime, close } = connectRuntime({ clock, log: silent }, endpoint);
      await stopOwnedPods(runtime, stateDir, { signal }).finally(close);
    }
    const { left } = await tearDown({ clock, log: silent, host }, { stateDir, progress });
    if (left.length > 0) throw new HostError("Busy", `remove ${stateDir}: ${left.join("; ")}`);
  }

  /** Runs until the outcome of each pod is known; the exit code. */
  private async once(kubelet: Kubelet, scope: AbortScope): Promise<number> {
    const running = kubelet.run(scope);
    running.catch((error: unknown) => scope.abort(error));
    const isOk = await reportOnce({ ...this.deps, view: kubelet.view, desired: kubelet.desired }, scope);
    scope.abort();
    await running;
    return isOk ? 0 : 1;
  }

  private configurationDeps(): Parameters<typeof startConfiguration>[0] {
    const { clock, logSink: sink, out, onReload } = this.deps;
    return {
      clock,
      onReload,
      files: manifestFiles,
      parse: documentParser(clock),
      openStore: (directory) => openStore(directory, clock),
      toLogger: (values, levels) =>
        agentLogger(clock, { ...values, ...levels }, logSinks(values, { sink, infoSink: out })),
    };
  }

  private requireRoot(command: string): void {
    if (this.host.isRoot()) return;
    const message = `kubelet ${command} needs root: it creates containers, mounts and networks; run it with sudo`;
    throw new HostError("PermissionDenied", message);
  }

  private async claim(directory: string, mode: number): Promise<() => void> {
    await this.host.makeDir(directory, mode);
    const lock = await this.host.lock(lockPath(directory));
    return () => lock.release();
  }
}

function newMetrics(): Metrics {
  const metrics = new Metrics();
  measureEventLoop(metrics);
  return metrics;
}
