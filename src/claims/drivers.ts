import type { Abortable } from "../lib/abort.ts";
import { AbortScope, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { CodedError, messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import { WorkPace } from "../lib/work-pace.ts";
import type { ClaimDevice } from "../model/claim-device.ts";
import { isDnsSubdomain } from "../model/names.ts";

/** A claim as a driver is told of it. */
export interface ClaimRef {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
}

/** A report of a driver about one of its devices. */
export interface DeviceReport {
  readonly pool: string;
  readonly device: string;
  readonly health: "Healthy" | "Unhealthy" | "Unknown";
  readonly validMs: number | undefined;
  readonly message: string;
}

/** One message of a driver about the health of its devices, decoded once when it is read. */
export interface DeviceReports {
  /** Its size. */
  readonly bytes: number;
  read(): readonly DeviceReport[];
}

/** The connection to one instance of a driver. */
export interface DriverConnection {
  /** By UID: `error` is empty if the claim is prepared. */
  prepare(
    claims: readonly ClaimRef[],
    options: Abortable,
  ): Promise<ReadonlyMap<string, { readonly error: string; readonly devices: readonly ClaimDevice[] }>>;
  /** By UID: why it failed, or an empty text. */
  unprepare(claims: readonly ClaimRef[], options: Abortable): Promise<ReadonlyMap<string, string>>;
  watchHealth(options: Abortable): AsyncIterable<DeviceReports>;
  watchConnection(fn: (isConnected: boolean) => void): void;
  close(): void;
}

/** What a plugin says about itself when it registers. */
export interface DriverPlugin {
  readonly name: string;
  readonly endpoint: string;
  readonly versions: readonly string[];
}

export interface DriverDeps<Service extends string> {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  /** The services that the agent speaks. */
  readonly services: readonly Service[];
  connect(options: { readonly driver: string; readonly endpoint: string; readonly service: Service }): DriverConnection;
  /** A driver became usable, or unusable. */
  changed(driver: string, isUsable: boolean): void;
  /** Undefined if the feature gate is off. */
  readonly health?: { update(driver: string, reports: readonly DeviceReport[]): void; clear(driver: string): void };
}

interface Instance {
  readonly endpoint: string;
  readonly connection: DriverConnection;
  readonly scope: AbortScope;
  readonly wakes: Wakes;
  isConnected: boolean;
}

/** Between two attempts to watch the health of devices, in milliseconds, as in Kubernetes. */
const HEALTH_RETRY_MS = 5000;
/**
 * Health reports that are read of one driver: five a second, 20 at once, and fewer long ones, by their bytes. One that sends
 * them without end must not keep the agent busy.
 */
const REPORTS = { pieceMs: 200, itemMs: 0.0025, burstMs: 3800 };

/**
 * The registered drivers. A driver may have two instances while it is updated: the newest one that is connected is
 * used. A handler of the plugin registry.
 */
export class Drivers<Service extends string = string> {
  /** By name, the newest instance last. */
  private readonly instances = new Map<string, readonly Instance[]>();
  private readonly pace: WorkPace;

  constructor(
    private readonly deps: DriverDeps<Service>,
    private readonly signal: AbortSignal,
  ) {
    this.pace = new WorkPace(deps.clock, REPORTS);
  }

  /** The connection to a driver. Throws if it is not registered. */
  get(driver: string): DriverConnection {
    const all = this.instances.get(driver) ?? [];
    const chosen = all.findLast(({ isConnected }) => isConnected) ?? all.at(-1);
    if (chosen === undefined) throw new Error(`DRA driver ${driver} is not registered`);
    return chosen.connection;
  }

  /** True if an instance of the driver is connected. */
  isUsable(driver: string): boolean {
    return (this.instances.get(driver) ?? []).some(({ isConnected }) => isConnected);
  }

  validate(plugin: DriverPlugin): void {
    this.serviceOf(plugin);
    const { name, endpoint } = plugin;
    // The API allows capitals in the names of drivers.
    if (!isDnsSubdomain(name.toLowerCase()))
      throw new Error(`DRA driver name ${JSON.stringify(name)} is not a DNS subdomain`);
    if (this.instances.get(name)?.some((instance) => instance.endpoint === endpoint)) {
      throw new Error(`endpoint ${endpoint} already registered for DRA driver plugin ${name}`);
    }
  }

  register(plugin: DriverPlugin): void {
    const { name, endpoint } = plugin;
    const connection = this.deps.connect({ driver: name, endpoint, service: this.serviceOf(plugin) });
    const scope = new AbortScope([this.signal]);
    const instance: Instance = { endpoint, connection, scope, wakes: new Wakes(this.deps.clock), isConnected: false };
    this.instances.set(name, [...(this.instances.get(name) ?? []), instance]);
    connection.watchConnection((isConnected) => {
      if (scope.signal.aborted || instance.isConnected === isConnected) return;
      instance.isConnected = isConnected;
      instance.wakes.wake();
      this.deps.changed(name, this.isUsable(name));
    });
    this.deps.changed(name, this.isUsable(name));
    if (this.deps.health !== undefined) void this.followHealth(name, instance);
  }

  deregister({ name, endpoint }: DriverPlugin): void {
    const all = this.instances.get(name) ?? [];
    const left = all.filter((instance) => instance.endpoint !== endpoint);
    if (left.length === 0) this.instances.delete(name);
    else this.instances.set(name, left);
    for (const instance of all) {
      if (left.includes(instance)) continue;
      instance.scope.abort();
      instance.scope.dispose();
      instance.connection.close();
    }
    this.deps.changed(name, this.isUsable(name));
  }

  private serviceOf({ name, endpoint, versions }: DriverPlugin): Service {
    const { services } = this.deps;
    const where = `invalid supported gRPC versions of DRA driver plugin ${name} at endpoint ${endpoint}`;
    if (versions.length === 0) throw new Error(`${where}: empty list of supported gRPC services`);
    for (const version of versions) for (const service of services) if (version === service) return service;
    throw new Error(`${where}: none of ${versions.join(", ")} are supported by the kubelet (${services.join(", ")})`);
  }

  /** Watches the health of an instance's devices as long as it is connected; a driver without the service is left alone. */
  private async followHealth(driver: string, instance: Instance): Promise<void> {
    const { signal } = instance.scope;
    const { clock, health, log } = this.deps;
    let lastError = "";
    while (!signal.aborted) {
      let waitMs: number | undefined;
      if (instance.isConnected) {
        waitMs = HEALTH_RETRY_MS;
        try {
          for await (const reports of instance.connection.watchHealth({ signal })) {
            await this.pace.turn(driver, { signal });
            this.takeReports(driver, reports);
            lastError = "";
          }
        } catch (error) {
          if (isAborted(error, signal)) break;
          const isLacking = error instanceof CodedError && error.code === "Unimplemented";
          const message = messageOf(error);
          if (isLacking) waitMs = undefined;
          // The same is not logged every few seconds.
          else if (message !== lastError) log.info("Health of devices is not watched", { driver, error: message });
          lastError = message;
        }
        if (!this.hasOther(driver, instance)) health?.clear(driver);
      }
      instance.wakes.clear();
      if (waitMs === undefined) await instance.wakes.sleep(undefined, signal);
      else await clock.sleep(waitMs, { signal }).catch(() => undefined);
    }
    if (!this.hasOther(driver, instance)) health?.clear(driver);
  }

  /** Not part of `followHealth`, which would keep the decoded reports until the next ones are there. */
  private takeReports(driver: string, reports: DeviceReports): void {
    // Also if they cannot be used.
    this.pace.spend(driver, reports.bytes);
    this.deps.health?.update(driver, reports.read());
  }

  private hasOther(driver: string, instance: Instance): boolean {
    return (this.instances.get(driver) ?? []).some((other) => other !== instance && other.isConnected);
  }
}
