import { readHardware } from "../adapters/host/hardware.ts";
import { machineInfo } from "../adapters/host/machine.ts";
import { pageAssets } from "../adapters/host/page-assets.ts";
import type { Guard } from "../adapters/net/http-dispatch.ts";
import type { HttpRoute } from "../adapters/net/http-route.ts";
import type { AgentOptions, ConfigReport } from "../config/index.ts";
import type { PageMachine } from "../model/page-lines.ts";
import { guardGate, sessionGate } from "./gate.ts";
import type { PageDeps, PageOptions } from "./page-deps.ts";
import type { pageHandlers } from "./page-routes.ts";
import { Sessions } from "./sessions.ts";
import { pageSettings } from "./settings.ts";
import { staticRoutes } from "./static-routes.ts";

/** The page's data by method and path below `/page/api`. */
const PATHS = [
  ...["GET stream", "GET pods/:uid", "GET logs/:uid/:container", "GET exec/:uid/:container"],
  ...["GET images", "GET node", "GET settings", "GET machine", "GET topology", "POST login", "POST logout"],
] as const;

/** What the page is composed from. */
export type PageParts = Omit<PageDeps, "assets" | "settings" | "machine" | "hasDebugging"> & {
  readonly store: { readonly current: AgentOptions };
  /** Undefined in `kubelet up`. */
  readonly config?: { report(): ConfigReport } | undefined;
};

/** The page of the cAdvisor port. */
export interface Page {
  /** Its routes: with a guard, that decides what a caller sees; without, a session of a login link is needed. */
  routes(guard: Guard | undefined): readonly HttpRoute[];
  /** The link to the page at this address; where sessions are used, it opens one session, once. */
  link(address: string): string;
}

/** Builds the page. Nothing of it is loaded, read or measured until somebody looks. */
export function composePage(parts: PageParts, options: PageOptions): Page {
  const { clock, store, config } = parts;
  const sessions = new Sessions(clock);
  const deps: PageDeps = {
    ...parts,
    assets: pageAssets(),
    settings: () => pageSettings(store.current, config?.report()),
    machine: describeMachine,
    hasDebugging: () => store.current.enableDebuggingHandlers,
  };
  let isGuarded = false;
  // Two agents on one host have one cookie jar: browsers do not tell ports apart.
  const cookieName = `kubelet-page-${store.current.cadvisorPort}`;
  return {
    routes(guard) {
      isGuarded = guard !== undefined;
      const gate = guard === undefined ? sessionGate(sessions, cookieName) : guardGate(guard);
      const used = guard === undefined ? { store: sessions, cookieName } : undefined;
      let loaded: Promise<ReturnType<typeof pageHandlers>> | undefined;
      const load = () => {
        loaded ??= import("./page-routes.ts").then((it) => it.pageHandlers({ deps, options, gate, sessions: used }));
        return loaded;
      };
      return [...staticRoutes(deps.assets), ...PATHS.map((name) => lazyRoute(name, load))];
    },
    link: (address) =>
      isGuarded
        ? `https://${address.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, options.nodeName)}/`
        : `http://${address}/#login=${sessions.issueLogin()}`,
  };
}

function lazyRoute(name: string, load: () => Promise<ReturnType<typeof pageHandlers>>): HttpRoute {
  const [method = "", path = ""] = name.split(" ");
  return {
    methods: [method],
    path: `/page/api/${path}`,
    async handle(request) {
      const handler = (await load())[name];
      if (handler === undefined) throw new Error(`no handler for ${name}`);
      return handler(request);
    },
  };
}

function describeMachine(): PageMachine {
  const { cores, memoryBytes, kernel, osImage, architecture } = machineInfo();
  const { physicalCores, sockets, cpuKhz, disks, networkDevices } = readHardware();
  return {
    cores,
    physicalCores,
    sockets,
    cpuKhz,
    memoryBytes,
    kernel,
    osImage,
    architecture,
    disks: Object.values(disks).flatMap(({ name, size }) => (size > 0 ? [{ name, size }] : [])),
    networkDevices: networkDevices.map(({ name, speed, mtu }) => ({ name, speed, mtu })),
  };
}
