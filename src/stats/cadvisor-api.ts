import type { CgroupRow } from "./cgroup-rows.ts";
import {
  attributesJson,
  containerInfo,
  containerSpec,
  containerStats,
  containerStatsV2,
  machineJson,
  timeOf,
} from "./container-info.ts";
import type { MachineDescription } from "./machine-description.ts";

/** What the API shows: the newest samples. */
export interface CadvisorStore {
  readonly machine: MachineDescription;
  readonly rows: readonly CgroupRow[];
}

/** A result of the API: JSON, or a text with the status that cAdvisor gives it. */
export type CadvisorResult = { readonly json: unknown } | { readonly status: number; readonly text: string };

interface Asked {
  readonly version: string;
  /** Cgroup or container, beginning with a slash. */
  readonly path: string;
  readonly query: URLSearchParams;
}

type Handler = (store: CadvisorStore, asked: Asked) => CadvisorResult;

const VERSIONS = ["v1.0", "v1.1", "v1.2", "v1.3", "v2.0", "v2.1"];

const V1: Readonly<Record<string, { readonly since: string; readonly handle: Handler }>> = {
  machine: { since: "v1.0", handle: (store) => ({ json: machineJson(store.machine, rootOf(store).filesystems) }) },
  containers: {
    since: "v1.0",
    handle: (store, { path }) => {
      const row = store.rows.find((one) => one.path === path);
      return row === undefined ? unknown(path) : { json: infoOf(store, row) };
    },
  },
  subcontainers: {
    since: "v1.1",
    handle: (store, { path }) => {
      const found = store.rows.filter((row) => isWithin(row.path, path));
      return found.length === 0 ? unknown(path) : { json: found.map((row) => infoOf(store, row)) };
    },
  },
  docker: {
    since: "v1.2",
    handle: (store, { path }) => {
      const found = store.rows.filter((row) => row.id !== undefined && (path === "/" || row.id === path.slice(1)));
      if (found.length === 0 && path !== "/") return unknown(path);
      return { json: Object.fromEntries(found.map((row) => [row.path, infoOf(store, row)])) };
    },
  },
  // Events are not stored by default in the kubelet's cAdvisor either.
  events: { since: "v1.3", handle: () => ({ json: [] }) },
};

const V2: Readonly<Record<string, { readonly since: string; readonly handle: Handler }>> = {
  version: { since: "v2.0", handle: ({ machine }) => ({ json: machine.version }) },
  attributes: {
    since: "v2.0",
    handle: (store) => ({ json: attributesJson(store.machine, rootOf(store).filesystems) }),
  },
  machine: { since: "v2.0", handle: (store) => ({ json: machineJson(store.machine, rootOf(store).filesystems) }) },
  summary: { since: "v2.0", handle: (store, asked) => each(store, asked, derivedStats) },
  spec: { since: "v2.0", handle: (store, asked) => each(store, asked, containerSpec) },
  stats: {
    since: "v2.0",
    handle: (store, asked) => {
      if (asked.version === "v2.0") return each(store, asked, (row) => [containerStatsV2(row)]);
      const others = { ...store, rows: store.rows.filter(({ path }) => path !== "/" || asked.path !== "/") };
      return each(others, asked, (row) => ({ spec: containerSpec(row), stats: [containerStatsV2(row)] }));
    },
  },
  machinestats: { since: "v2.1", handle: (store) => ({ json: [containerStats(rootOf(store))] }) },
  storage: {
    since: "v2.0",
    handle: (store) => ({ json: rootOf(store).filesystems.map((one) => storageOf(one, store.machine.at)) }),
  },
  events: { since: "v2.0", handle: () => ({ json: [] }) },
  appmetrics: { since: "v2.0", handle: () => ({ json: {} }) },
  ps: { since: "v2.0", handle: () => ({ json: [] }) },
};

/** Answers a path below `/api/` as cAdvisor does, versions 1.0 to 2.1. Pure. */
export function cadvisorApi(store: CadvisorStore, path: string, query: URLSearchParams): CadvisorResult {
  const [version = "", kind = "", ...rest] = path.replace(/^\/api\/?/, "").split("/");
  if (!VERSIONS.includes(version)) {
    return { status: 400, text: `Supported API versions: ${VERSIONS.join(",")}` };
  }
  const table = version.startsWith("v1") ? V1 : V2;
  const kinds = Object.keys(table).filter((name) => (table[name]?.since ?? "") <= version);
  const entry = kinds.includes(kind) ? table[kind] : undefined;
  if (entry === undefined) {
    return { status: 400, text: `Supported request types: ${JSON.stringify(kinds.sort().join(","))}` };
  }
  return entry.handle(store, { version, path: `/${rest.filter((part) => part !== "").join("/")}`, query });
}

/** A map of cgroups by path, or of one container by its id (`type=docker`), with those below if `recursive=true`. */
function each(store: CadvisorStore, { path, query }: Asked, show: (row: CgroupRow) => unknown): CadvisorResult {
  const isRecursive = query.get("recursive") === "true";
  const byId = query.get("type") === "docker";
  const found = store.rows.filter((row) => {
    if (byId) return row.id !== undefined && (path === "/" || row.id === path.slice(1));
    return isRecursive ? isWithin(row.path, path) : row.path === path;
  });
  if (found.length === 0 && path !== "/") return unknown(path);
  return { json: Object.fromEntries(found.map((row) => [row.path, show(row)])) };
}

/** A cgroup with the names of those right below it. */
export function infoOf({ rows }: CadvisorStore, row: CgroupRow): unknown {
  const below = rows.filter(({ path }) => path !== row.path && parentOf(path) === row.path);
  return containerInfo(
    row,
    below.map(({ path }) => path),
  );
}

/** A container of a pod; the UID only if it is known. */
export interface ContainerName {
  readonly namespace: string;
  readonly pod: string;
  readonly uid?: string | undefined;
  readonly container: string;
}

/** A running container in the shape of 1.x; undefined if there is none. */
export function containerNamed(store: CadvisorStore, of: ContainerName): unknown {
  const row = store.rows.find(
    ({ namespace, pod, uid, container }) =>
      namespace === of.namespace && pod === of.pod && container === of.container && (of.uid ?? uid) === uid,
  );
  return row === undefined || of.container === "" ? undefined : infoOf(store, row);
}

function derivedStats({ usage }: CgroupRow): unknown {
  const none = { present: false, mean: 0, max: 0, fifty: 0, ninety: 0, ninetyfive: 0 };
  const period = { percent_complete: 0, cpu: none, memory: none };
  return {
    timestamp: timeOf(usage.at.wall),
    latest_usage: { cpu: Math.round((usage.nanoCores ?? 0) / 1e6), memory: usage.memory?.workingSet ?? 0 },
    minute_usage: period,
    hour_usage: period,
    day_usage: period,
  };
}

function storageOf({ device, mountpoint, space }: CgroupRow["filesystems"][number], at: number): unknown {
  return {
    timestamp: timeOf(at),
    device,
    mountpoint,
    capacity: space.capacityBytes,
    available: space.availableBytes,
    usage: space.usedBytes,
    labels: [],
    inodes: space.inodes,
    inodes_free: space.inodesFree,
  };
}

function rootOf({ rows }: CadvisorStore): CgroupRow {
  const [root] = rows;
  if (root === undefined) throw new Error("the node was not sampled yet");
  return root;
}

function unknown(path: string): CadvisorResult {
  return {
    status: 500,
    text: `failed to get container ${JSON.stringify(path)}: unknown container ${JSON.stringify(path)}`,
  };
}

function isWithin(path: string, top: string): boolean {
  return path === top || top === "/" || path.startsWith(`${top}/`);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
