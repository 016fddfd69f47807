import { existsSync, mkdirSync, readFileSync, unlinkSync } from "node:fs";
import { type Abortable, AbortScope, isAborted, TimeLimitError, withScope } from "../../lib/abort.ts";
import { readIfExists, writeAtomic } from "../../lib/atomic-file.ts";
import { Backoff } from "../../lib/backoff.ts";
import { messageOf } from "../../lib/errors.ts";
import { RuntimeError } from "../runtime/port.ts";
import { parseContainerdVersion, renderContainerdConfig } from "./containerd-config.ts";
import { CriProbe } from "./cri-probe.ts";
import {
  bootId,
  type DaemonRecord,
  findDaemon,
  findInPath,
  lastLogWords,
  readRecord,
  startDaemon,
  writeRecord,
} from "./daemon.ts";
import { EmbeddedError } from "./embedded-error.ts";
import type { EmbeddedDeps } from "./host.ts";
import { type EmbeddedOptions, type Layout, layoutOf } from "./layout.ts";
import { ensureImages, PAUSE_IMAGE } from "./local-images.ts";
import { ensureNetwork, findCniPlugins, type PodNetwork } from "./network.ts";
import { type ProcessInfo, readProcess, signalProcess } from "./processes.ts";
import { ShimReaper } from "./shim-reaper.ts";
import { ensureSettings, readSettings, type StateSettings } from "./state-dir.ts";
import { untilGone } from "./until-gone.ts";

/** How often a starting containerd is asked whether it is ready: later on every tenth of the time that it took so far. */
const POLL_MS = { first: 20, most: 500 };
/**
 * A containerd that has not become ready after this long is stuck. A start takes 0.1 s, with many pods a few seconds, on an
 * overloaded machine more than a minute: ending it then would only begin anew.
 */
const READY_LIMIT_MS = 300_000;
/** A running one that does not answer for this long is ended and started anew; its pods run on. */
const ADOPT_LIMIT_MS = 15_000;
/** Time that containerd has to end in order before it is killed. */
const END_LIMIT_MS = 3000;
/** How often containerd is started before its death is an error. */
const MOST_STARTS = 3;
/** Errors that the death of containerd brings about. */
const RETRIED: readonly string[] = ["StartFailed", "ImportFailed"];
/** Silence up to this long needs no word on the terminal. */
const SILENCE_MS = 1000;
/** CAP_SYS_RESOURCE is bit 24 of the capability set. */
const CAP_SYS_RESOURCE = 1n << 24n;

interface StartOptions extends Abortable {
  readonly progress: (text: string) => void;
}

/**
 * A containerd of the agent's own: private root, state, socket, network and images under one directory.
 *
 *   absent ──start──► starting ──CRI ready──► running ──dies──► absent   (supervise starts it again)
 *                                                │
 *                          agent ends, agent starts: found again by pid and start time
 *
 * It is never stopped by the agent; `tearDown` does that.
 */
export class EmbeddedRuntime {
  readonly endpoint: string;
  /** The cgroup below which the agent puts its pods. */
  readonly cgroupRoot: string;
  private readonly layout: Layout;
  private readonly shims: ShimReaper;

  constructor(
    private readonly deps: EmbeddedDeps,
    private readonly options: EmbeddedOptions,
  ) {
    this.layout = layoutOf(options);
    this.shims = new ShimReaper(deps, this.layout);
    this.endpoint = `unix://${this.layout.socket}`;
    this.cgroupRoot = this.layout.cgroupRoot;
  }

  /** Finds the running containerd again or starts one, and makes images and network ready. May be repeated. */
  async start({ signal, progress }: StartOptions): Promise<{ adopted: boolean; pid: number }> {
    refuseLongPath(this.layout);
    const { clock } = this.deps;
    const quietUntil = clock.now().mono + SILENCE_MS;
    const slow = clock.after(SILENCE_MS, () => progress("waiting for containerd"));
    try {
      const settings = await ensureSettings(this.deps, { layout: this.layout, options: this.options }, { signal });
      // Before containerd: it reads the CNI configuration when it starts.
      await ensureNetwork(this.deps, { layout: this.layout, network: settings }, { signal });
      const speak = (text: string): void => {
        if (clock.now().mono >= quietUntil) progress(text);
        else this.deps.log.debug(2, "Embedded runtime made progress", { step: text });
      };
      return await this.bringUp(settings, { signal, progress, speak });
    } finally {
      slow.cancel();
    }
  }

  /** Once more if containerd dies while it is brought up: a crash of the runtime does not end the agent. */
  private async bringUp(
    settings: StateSettings,
    { signal, progress, speak }: StartOptions & { readonly speak: StartOptions["progress"] },
  ): Promise<{ adopted: boolean; pid: number }> {
    for (let left = MOST_STARTS - 1; ; left--) {
      try {
        const adopted = await this.adopt(settings, { signal, progress });
        const daemon = adopted ?? (await this.launch(settings, { signal }));
        await this.prepareImages(settings, { signal, progress: speak });
        return { adopted: adopted !== undefined, pid: daemon.pid };
      } catch (error) {
        if (signal.aborted || left === 0 || !this.isDeath(error)) throw error;
        this.deps.log.warn("Containerd ended while it was started", { error: messageOf(error) });
      }
    }
  }

  /** True for an error that the death of containerd brings about; one that lost its connection may still be ending. */
  private isDeath(error: unknown): boolean {
    if (error instanceof EmbeddedError) return RETRIED.includes(error.code) && findDaemon(this.layout) === undefined;
    return error instanceof RuntimeError && error.code === "Unavailable";
  }

  /** The network of the pods, and names of this state directory for what belongs to it; undefined before the start. */
  network(): (PodNetwork & Pick<Layout, "name" | "serviceLink">) | undefined {
    const settings = readSettings(this.layout);
    const { name, serviceLink } = this.layout;
    return settings && { bridge: settings.bridge, podCidr: settings.podCidr, name, serviceLink };
  }

  /** Starts containerd again whenever it dies, with back-off, until the signal aborts. Never stops it. */
  async supervise(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    // The first restart is at once: pods cannot be started meanwhile. A minute of life forgives earlier deaths.
    const backoff = new Backoff({ initialMs: 500, maxMs: 30_000, resetAfterMs: 60_000 });
    this.shims.start(signal);
    while (!signal.aborted) {
      try {
        const running = findDaemon(this.layout);
        if (running !== undefined) {
          await untilGone(this.deps.clock, { process: running.process, layout: this.layout }, signal);
          if (signal.aborted) return;
          log.warn("Restarting containerd after it exited", { pid: running.process.pid });
          const state = backoff.state;
          const recent = state !== undefined && clock.now().mono - state.since.mono < 60_000;
          const delay = backoff.next(clock.now());
          if (recent) await clock.sleep(delay, { signal });
        }
        const settings = readSettings(this.layout);
        // The directory is being torn down: there is nothing to keep alive any more.
        if (settings === undefined) return;
        const record = await this.launch(settings, { signal });
        log.info("Restarted containerd", { pid: record.pid });
        this.shims.start(signal);
      } catch (error) {
        if (isAborted(error, signal)) return;
        log.error("Failed to start containerd", error);
        await clock.sleep(backoff.next(clock.now()), { signal }).catch(() => undefined);
      }
    }
  }

  /** The running containerd, if it answers and was started with the configuration that we would write now. */
  private async adopt(settings: StateSettings, { signal, progress }: StartOptions): Promise<ProcessInfo | undefined> {
    const running = findDaemon(this.layout);
    if (running === undefined) return undefined;
    const { process } = running;
    const isReady = await this.isReadySoon(process, { signal });
    // Without a record, the agent that started it was killed in that moment.
    const version = running.record?.version ?? (await this.installedVersion({ signal }));
    const wanted = version && this.config(settings, version);
    if (isReady && version !== undefined && wanted === (await readIfExists(this.layout.configFile))) {
      if (running.record === undefined) await writeRecord(this.layout, { process, version });
      return process;
    }
    progress("restarting containerd; pods run on");
    await this.end(process, { signal, isReady });
    return undefined;
  }

  /** True once the running containerd answers; false if it does not within the time for adoption. */
  private async isReadySoon(process: ProcessInfo, { signal }: Abortable): Promise<boolean> {
    try {
      await this.untilReady(process, ADOPT_LIMIT_MS, { signal });
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      this.deps.log.warn("Failed to reach running containerd", { pid: process.pid, error: messageOf(error) });
      return false;
    }
  }

  /** The version of the containerd that would be started; undefined if there is none. */
  private async installedVersion({ signal }: Abortable): Promise<string | undefined> {
    try {
      const binary = findInPath(this.options.containerdBinary ?? "containerd", process.env["PATH"]);
      return binary && (await this.deps.host.exec(binary, ["--version"], { signal })).stdout;
    } catch (error) {
      if (signal.aborted) throw error;
      return undefined;
    }
  }

  /** Starts containerd and waits until CRI answers. */
  private async launch(settings: StateSettings, { signal }: Abortable): Promise<DaemonRecord> {
    await this.clearStale();
    const binary = findInPath(this.options.containerdBinary ?? "containerd", process.env["PATH"]);
    if (binary === undefined) throw new EmbeddedError("MissingProgram", "containerd is missing: install containerd");
    const { stdout } = await this.deps.host.exec(binary, ["--version"], { signal });
    mkdirSync(this.layout.certsDir, { recursive: true });
    await writeAtomic(this.layout.configFile, this.config(settings, stdout));
    const record = await startDaemon(this.deps.host, this.layout, { binary, version: stdout });
    await this.untilReady(record, READY_LIMIT_MS, { signal });
    return record;
  }

  private config(settings: StateSettings, versionText: string): string {
    const version = parseContainerdVersion(versionText);
    if (version === undefined || version.major < 1 || (version.major === 1 && version.minor < 6)) {
      throw new EmbeddedError("UnsupportedVersion", `containerd 1.6 or newer is needed, found: ${versionText.trim()}`);
    }
    return renderContainerdConfig({
      version,
      root: this.layout.containerdRoot,
      state: this.layout.containerdState,
      socket: this.layout.socket,
      runcRoot: this.layout.runcRoot,
      shimSocketDir: this.layout.shimSocketDir,
      cniBinDir: findCniPlugins(),
      cniConfDir: this.layout.cniConfDir,
      certsDir: this.layout.certsDir,
      sandboxImage: PAUSE_IMAGE,
      snapshotter: settings.snapshotter,
      mayLowerOomScore: mayLowerOomScore(),
    });
  }

  /**
   * What a dead containerd left: its sockets always; after a reboot also its run-time state, whose mounts and shims are
   * gone. After a mere crash that state is kept, because containerd takes its shims, and so the pods, up again.
   */
  private async clearStale(): Promise<void> {
    for (const path of [this.layout.socket, this.layout.ttrpcSocket]) {
      try {
        unlinkSync(path);
      } catch {
        // Not there: it ended in order.
      }
    }
    const record = readRecord(this.layout);
    if (record === undefined || record.bootId === bootId()) return;
    this.deps.log.info("Clearing volatile state of the runtime after a reboot");
    for (const path of [this.layout.containerdState, this.layout.runcRoot, this.layout.shimSocketDir]) {
      if (existsSync(path)) await this.deps.host.removeTree(path);
    }
  }

  private async untilReady(
    daemon: { pid: number; startTime: number },
    limitMs: number,
    { signal }: Abortable,
  ): Promise<void> {
    const { clock } = this.deps;
    const began = clock.now().mono;
    const deadline = began + limitMs;
    let last = "no answer";
    for (;;) {
      const probe = new CriProbe(this.layout.socket);
      try {
        const limit = { clock, ms: Math.max(1, deadline - clock.now().mono) };
        const missing = await withScope([signal], limit, (scoped) => probe.unreadiness({ signal: scoped }));
        if (missing.length === 0) return;
        last = missing.join("; ");
      } catch (error) {
        if (signal.aborted) throw error;
        if (!(error instanceof TimeLimitError)) last = messageOf(error);
      } finally {
        probe.close();
      }
      if (readProcess(daemon.pid)?.startTime !== daemon.startTime) {
        throw new EmbeddedError("StartFailed", `containerd ended at once: ${lastLogWords(this.layout)}`);
      }
      if (clock.now().mono >= deadline) {
        throw new EmbeddedError("StartFailed", `containerd is not ready after ${limitMs / 1000} s: ${last}`);
      }
      const tenth = (clock.now().mono - began) / 10;
      await clock.sleep(Math.min(Math.max(POLL_MS.first, tenth), POLL_MS.most), { signal });
    }
  }

  private async prepareImages(settings: StateSettings, options: StartOptions): Promise<void> {
    const probe = new CriProbe(this.layout.socket);
    const { layout, deps } = this;
    try {
      await ensureImages(deps, { layout, options: this.options, probe, snapshotter: settings.snapshotter }, options);
    } finally {
      probe.close();
    }
  }

  /**
   * Ends containerd; its pods run on. One that does not answer is killed at once: interrupted in order while it loads its
   * shims, it takes the shim at hand for dead and kills its container.
   */
  private async end(
    process: ProcessInfo,
    { signal, isReady }: Abortable & { readonly isReady: boolean },
  ): Promise<void> {
    const { clock } = this.deps;
    if (isReady) {
      const scope = new AbortScope([signal], { clock, ms: END_LIMIT_MS });
      try {
        signalProcess(process, "SIGTERM");
        await untilGone(clock, { process, layout: this.layout }, scope.signal);
      } finally {
        scope.dispose();
      }
    }
    if (!signal.aborted && signalProcess(process, "SIGKILL")) {
      await untilGone(clock, { process, layout: this.layout }, signal);
    }
    if (signal.aborted) throw signal.reason;
  }
}

function mayLowerOomScore(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0";
  return (BigInt(`0x${effective}`) & CAP_SYS_RESOURCE) !== 0n;
}

/** A unix socket's path ends at 107 bytes; containerd's second socket is the longest of ours. */
function refuseLongPath({ stateDir, ttrpcSocket }: Layout): void {
  if (Buffer.byteLength(ttrpcSocket) <= 107) return;
  throw new EmbeddedError("PathTooLong", `the path of the state directory is too long for unix sockets: ${stateDir}`);
}
