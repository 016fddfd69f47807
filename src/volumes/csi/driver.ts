import type { CsiCallOptions, CsiCapabilities, CsiClient, CsiNodeInfo } from "../../adapters/plugins/csi-client.ts";
import type { Abortable } from "../../lib/abort.ts";
import { Listeners } from "../../lib/listeners.ts";
import type { Logger } from "../../lib/log.ts";
import type { VolumeCalls } from "./volume-calls.ts";

/** A driver as it introduced itself, see `PluginHandler` of the plugins. */
export interface CsiPlugin {
  readonly name: string;
  readonly endpoint: string;
  readonly versions: readonly string[];
  readonly socket: string;
}

/** The node service of a driver. */
export type CsiNodeService = Pick<
  CsiClient,
  "info" | "capabilities" | "stage" | "unstage" | "publish" | "unpublish" | "expand" | "stats" | "close"
>;

export interface CsiDriversDeps {
  readonly log: Pick<Logger, "info" | "warn">;
  /** The calls about volumes of all drivers. */
  readonly calls: VolumeCalls;
  connect(plugin: CsiPlugin): CsiNodeService;
  /** Publishes the driver on the node's objects; undefined without an API server. Rejects if that cannot be done. */
  readonly publish?: CsiNodeReport | undefined;
}

/** Where the drivers of the node are reported. */
export interface CsiNodeReport {
  install(driver: { readonly name: string } & CsiNodeInfo, options: Abortable): Promise<void>;
  /** The driver is there, and says something else of the node by now. */
  update(driver: { readonly name: string } & CsiNodeInfo, options: Abortable): Promise<void>;
  uninstall(name: string): void;
}

/** A driver that is registered. */
export interface CsiDriver {
  readonly name: string;
  readonly service: CsiNodeService;
  capabilities(options: Abortable): Promise<CsiCapabilities>;
}

interface Registered extends CsiDriver {
  readonly socket: string;
  readonly version: readonly number[];
}

/** The CSI drivers of the node, by the sockets with which they introduced themselves. */
export class CsiDrivers {
  private readonly drivers = new Map<string, Registered>();
  private readonly listeners = new Listeners();

  constructor(private readonly deps: CsiDriversDeps) {}

  /** Returns the driver; throws, in the words of Kubernetes, while it is not registered. */
  get(name: string): CsiDriver {
    const found = this.drivers.get(name);
    if (found !== undefined) return found;
    throw new Error(`driver name ${name} not found in the list of registered CSI drivers`);
  }

  get names(): readonly string[] {
    return [...this.drivers.keys()];
  }

  /** Calls `fn` whenever a driver was registered or deregistered. */
  onChange(fn: () => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }

  validate({ name, versions, socket }: CsiPlugin): void {
    const version = usableVersion(versions);
    const quoted = versions.map((one) => JSON.stringify(one)).join(" ");
    if (versions.length === 0) {
      throw new Error(`CSI driver "${name}": plugin returned an empty list for supported versions`);
    }
    if (version === undefined) {
      throw new Error(`CSI driver "${name}": none of the versions specified [${quoted}] are supported`);
    }
    const known = this.drivers.get(name);
    if (known === undefined || known.socket === socket || compare(known.version, version) < 0) return;
    const have = known.version.join(".");
    throw new Error(
      `CSI driver "${name}": another driver with the same name is already registered with version ${have}`,
    );
  }

  async register(plugin: CsiPlugin, options: Abortable): Promise<void> {
    const { name, endpoint, socket, versions } = plugin;
    const service = inTurn(name, this.deps.connect(plugin), this.deps.calls);
    try {
      const info = await service.info(options);
      if (info.nodeId === "") throw new Error(`CSI driver "${name}": NodeGetInfo returned no node id`);
      await this.deps.publish?.install({ name, ...info }, options);
    } catch (error) {
      service.close();
      throw error;
    }
    this.drivers.get(name)?.service.close();
    this.drivers.set(name, {
      name,
      service,
      socket,
      version: usableVersion(versions) ?? [],
      capabilities: remembered(service),
    });
    this.deps.log.info("Registered CSI driver", { driver: name, endpoint });
    this.listeners.call();
  }

  deregister({ name, socket }: CsiPlugin): void {
    const known = this.drivers.get(name);
    // Another instance took over.
    if (known === undefined || known.socket !== socket) return;
    this.drivers.delete(name);
    known.service.close();
    this.deps.publish?.uninstall(name);
    this.deps.log.info("Deregistered CSI driver", { driver: name });
    this.listeners.call();
  }
}

/** The service with one call at a time for a volume; its statistics are read beside. */
function inTurn(driver: string, service: CsiNodeService, calls: VolumeCalls): CsiNodeService {
  const turn =
    <R extends { readonly volumeId: string }, T>(call: (request: R, options: CsiCallOptions) => Promise<T>) =>
    (request: R, { signal, ...rest }: CsiCallOptions): Promise<T> =>
      calls.run(`${driver}^${request.volumeId}`, (options) => call.call(service, request, { ...rest, ...options }), {
        signal,
      });
  return {
    info: (options) => service.info(options),
    capabilities: (options) => service.capabilities(options),
    stage: turn(service.stage),
    unstage: turn(service.unstage),
    publish: turn(service.publish),
    unpublish: turn(service.unpublish),
    expand: turn(service.expand),
    stats: (request, { signal, ...rest }) => {
      const key = `${driver}^${request.volumeId} ${request.volumePath}`;
      return calls.run(key, (options) => service.stats(request, { ...rest, ...options }), { signal });
    },
    close: () => service.close(),
  };
}

/** Asks once for as long as the driver is registered; a failed call is asked again. */
function remembered(service: CsiNodeService): CsiDriver["capabilities"] {
  let known: CsiCapabilities | undefined;
  return async (options) => {
    known ??= await service.capabilities(options);
    return known;
  };
}

/** The highest version below 2, as numbers; undefined if there is none from 1.0 on. */
function usableVersion(versions: readonly string[]): readonly number[] | undefined {
  const parsed = versions
    .flatMap((text) => {
      const found = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(text);
      return found === null ? [] : [found.slice(1).map((part) => Number(part ?? 0))];
    })
    .filter(([major]) => major === 1);
  return parsed.sort(compare).at(-1);
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [at, number] of a.entries()) {
    const difference = number - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
