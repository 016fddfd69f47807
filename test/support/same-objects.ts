import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { KubeApi } from "../../src/adapters/kubeapi/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { normalized } from "../contract/apiserver-normal.ts";

interface Found {
  readonly metadata: {
    readonly name: string;
    readonly generateName?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields?: readonly {
      readonly manager: string;
      readonly operation: string;
      readonly subresource?: string;
    }[];
  };
  readonly spec?: { readonly template?: object };
  readonly data?: object;
}

const core = (kind: string) => (namespace: string) => `/api/v1/namespaces/${namespace}/${kind}`;
const group = (name: string, kind: string) => (namespace: string) => `/apis/${name}/namespaces/${namespace}/${kind}`;

const PATHS = {
  replicasets: group("apps/v1", "replicasets"),
  controllerrevisions: group("apps/v1", "controllerrevisions"),
  pods: core("pods"),
  deployments: group("apps/v1", "deployments"),
  statefulsets: group("apps/v1", "statefulsets"),
  daemonsets: group("apps/v1", "daemonsets"),
  jobs: group("batch/v1", "jobs"),
  cronjobs: group("batch/v1", "cronjobs"),
  endpointslices: group("discovery.k8s.io/v1", "endpointslices"),
} as const;

const HASHES = ["pod-template-hash", "controller-revision-hash", "controller.kubernetes.io/hash"];
/** Not written here, see docs/local-api-services.md. */
const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";
/** Which of two is later is no matter of what they are. */
const TIMES = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;

/**
 * The objects of a namespace that controllers made, in a form that is the same on two servers: hashes are replaced by one of
 * what they stand for, random parts of names, identities, addresses and times by words.
 */
export class ComparableObjects {
  private readonly words = new Map<string, string>();

  constructor(private readonly api: KubeApi) {}

  async read(namespace: string): Promise<Record<string, unknown[]>> {
    const entries = Object.entries(PATHS);
    const lists = await Promise.all(entries.map(([, path]) => this.list(path(namespace))));
    const found = new Map(entries.map(([kind], index) => [kind, lists[index] ?? []]));
    for (const kind of ["replicasets", "controllerrevisions"]) found.get(kind)?.forEach((one) => this.learnHash(one));
    for (const one of lists.flat()) this.learnName(one);
    // How often a slice was written follows from what came together.
    found.set(
      "endpointslices",
      (found.get("endpointslices") ?? []).map((one) => ({ ...one, metadata: { ...one.metadata, generation: 0 } })),
    );
    return Object.fromEntries(
      [...found].map(([kind, list]) => [kind, list.map((one) => this.comparable(one)).sort(byText)]),
    );
  }

  /** A text of kubectl's with the same words. */
  text(text: string): string {
    // A name before the hash in it.
    const words = [...this.words].sort(([a], [b]) => b.length - a.length);
    return words.reduce((all, [word, other]) => all.replaceAll(word, other), text);
  }

  private async list(path: string): Promise<Found[]> {
    const answer = await this.api.raw({ method: "GET", path }, { signal: manyListeners().signal });
    return (JSON.parse(answer.body.toString("utf8")) as { items: Found[] }).items;
  }

  private learnHash({ metadata, spec, data }: Found): void {
    const hash = HASHES.map((label) => metadata.labels?.[label]).find((value) => value !== undefined);
    if (hash === undefined) return;
    const meaning = canonical(spec?.template ?? data)
      .replaceAll(hash, "")
      .replaceAll(TIMES, "TIME");
    this.words.set(hash, `HASH${createHash("sha256").update(meaning).digest("hex").slice(0, 6)}`);
  }

  private learnName({ metadata }: Found): void {
    const { name, generateName } = metadata;
    // Pods of StatefulSets have both, and no random part.
    if (generateName === undefined || !/^[a-z0-9]{5}$/.test(name.slice(generateName.length))) return;
    this.words.set(name, `${this.text(generateName)}RANDOM`);
  }

  private comparable(one: Found): unknown {
    const { managedFields = [], annotations, ...rest } = one.metadata;
    const kept = Object.entries(annotations ?? {}).filter(([name]) => name !== TRIGGER_TIME);
    const metadata = { ...rest, ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) };
    // The scheduler writes to a pod only if there is no node for it yet, which is a matter of milliseconds.
    const managers = managedFields
      .filter(({ manager }) => manager !== "kube-scheduler")
      .map(({ manager, operation, subresource = "" }) => [manager, operation, subresource]);
    const whole = { ...one, metadata: { ...metadata, managers: managers.sort(byText) } };
    const text = this.text(JSON.stringify(normalized(whole)))
      .replaceAll(TIMES, "TIME")
      // Lists of an empty slice, see docs/local-api-services.md.
      .replaceAll(/"(endpoints|ports)":null/g, '"$1":[]')
      .replaceAll(/"10\.1\.0\.\d+"/g, '"IP"');
    return JSON.parse(text);
  }
}

function byText(a: unknown, b: unknown): number {
  return canonical(a) < canonical(b) ? -1 : 1;
}

/** JSON with sorted keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

interface Observed {
  readonly metadata: { readonly name: string; readonly generation?: number; readonly deletionTimestamp?: string };
  readonly status?: { readonly observedGeneration?: number };
}

/** What controllers have not observed yet, or what is on its way out. */
export function unsettled(objects: Readonly<Record<string, readonly unknown[]>>): string[] {
  return Object.entries(objects).flatMap(([kind, list]) =>
    (list as readonly Observed[]) // reason: what the servers listed
      .filter(({ metadata, status }) => {
        const isObserved = OBSERVED.includes(kind) && status?.observedGeneration !== metadata.generation;
        return isObserved || metadata.deletionTimestamp !== undefined;
      })
      .map(({ metadata }) => `${kind}/${metadata.name} is not settled`),
  );
}

const OBSERVED = ["deployments", "replicasets", "statefulsets", "daemonsets"];

/** Where two values differ, a line each. */
export function differences(found: unknown, expected: unknown, path = ""): string[] {
  if (isDeepStrictEqual(found, expected)) return [];
  if (!isParent(found) || !isParent(expected) || Array.isArray(found) !== Array.isArray(expected)) {
    return [`${path}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`];
  }
  const names = new Set([...Object.keys(found), ...Object.keys(expected)]);
  return [...names].flatMap((name) => differences(found[name], expected[name], `${path}.${name}`));
}

function isParent(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
