import { closeSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { MessageBus, systemBusSocket } from "./bus.ts";
import type { BusValue, Variant } from "./values.ts";

const LOGIND = { destination: "org.freedesktop.login1", path: "/org/freedesktop/login1" };
const MANAGER = "org.freedesktop.login1.Manager";
const SYSTEMD = {
  destination: "org.freedesktop.systemd1",
  path: "/org/freedesktop/systemd1",
  interface: "org.freedesktop.systemd1.Manager",
};
const SIGHUP = 1;
/** The drop-in file of Kubernetes. */
const CONFIG_DIRECTORY = "/etc/systemd/logind.conf.d";
const CONFIG_FILE = "99-kubelet.conf";

/** Delays the shutdown of the machine while it is held. */
export interface InhibitLock {
  /** Lets the shutdown go on. May be repeated. */
  release(): void;
}

/** The login manager of systemd, which announces a shutdown and waits for those who ask for it. */
export class Logind {
  private constructor(
    private readonly bus: MessageBus,
    private readonly options: { readonly configDirectory: string; readonly trustsAnyone: boolean },
  ) {}

  /** Rejects once the connection is lost. */
  get closed(): Promise<never> {
    return this.bus.closed;
  }

  /** Connects to the system's bus; rejects if there is none. */
  static async connect({
    clock,
    signal,
    socket = systemBusSocket(),
    configDirectory = CONFIG_DIRECTORY,
    trustsAnyone = false,
  }: Abortable & {
    readonly clock: Clock;
    readonly socket?: string;
    readonly configDirectory?: string;
    /** True if shutdowns count that somebody else on the bus announces. */
    readonly trustsAnyone?: boolean;
  }): Promise<Logind> {
    return new Logind(await MessageBus.connect(socket, { clock, signal }), { configDirectory, trustsAnyone });
  }

  /** How long logind waits at most for those who hold a lock, in milliseconds. */
  async inhibitDelayMs(options: Abortable): Promise<number> {
    return Number(await this.property("InhibitDelayMaxUSec", options)) / 1000;
  }

  /** True if the machine is being shut down. */
  async isShuttingDown(options: Abortable): Promise<boolean> {
    return (await this.property("PreparingForShutdown", options)) === true;
  }

  /** Delays shutdowns, by at most `inhibitDelayMs`, until the lock is released or the agent ends. */
  async inhibit(options: Abortable): Promise<InhibitLock> {
    const body = ["shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay"];
    const { fds } = await this.bus.call(
      { ...LOGIND, interface: MANAGER, member: "Inhibit", signature: "ssss", body },
      options,
    );
    const [fd] = fds;
    if (fd === undefined) throw new Error("inhibit shutdown: logind returned no file descriptor");
    let isHeld = true;
    return {
      release: () => {
        if (isHeld) closeSync(fd);
        isHeld = false;
      },
    };
  }

  /** Calls `fn` when a shutdown begins (true), and when one is cancelled (false). */
  onShutdown(fn: (isActive: boolean) => void, options: Abortable): Promise<void> {
    const sender = this.options.trustsAnyone ? undefined : LOGIND.destination;
    const match = { sender, path: LOGIND.path, interface: MANAGER, member: "PrepareForShutdown" };
    return this.bus.onSignal(match, ([isActive]) => fn(isActive === true), options);
  }

  /** Raises the delay in logind's configuration, as Kubernetes does, and has logind read it. */
  async raiseInhibitDelay(ms: number, options: Abortable): Promise<void> {
    await mkdir(this.options.configDirectory, { recursive: true, mode: 0o755 });
    const text = `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${Math.ceil(ms / 1000)}\n`;
    await writeFile(join(this.options.configDirectory, CONFIG_FILE), text, { mode: 0o644 });
    const body = ["systemd-logind.service", "all", SIGHUP];
    await this.bus.call({ ...SYSTEMD, member: "KillUnit", signature: "ssi", body }, options);
  }

  close(): void {
    this.bus.close();
  }

  private async property(name: string, options: Abortable): Promise<BusValue> {
    const { body } = await this.bus.call(
      {
        ...LOGIND,
        interface: "org.freedesktop.DBus.Properties",
        member: "Get",
        signature: "ss",
        body: [MANAGER, name],
      },
      options,
    );
    return (body[0] as Variant).value; // reason: the call returns a variant
  }
}
