import type { Kind, Verb } from "../kinds/kind.ts";
import type { KindTable } from "../kinds/kind-table.ts";
import type { SubresourceTable } from "../rest/subresource.ts";

/** What discovery is made of. */
export interface DiscoveryDeps {
  readonly kinds: KindTable;
  readonly subresources: SubresourceTable;
  /** Resources without objects, such as reviews. */
  readonly virtual: readonly VirtualResource[];
}

/** A resource that is not stored: a review, or numbers that are measured. */
export interface VirtualResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly shortNames?: readonly string[];
}

/** One resource or sub-resource, in the form of both kinds of discovery. */
interface Entry extends Omit<VirtualResource, "verbs"> {
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly SubEntry[];
}

interface SubEntry {
  readonly name: string;
  readonly verbs: readonly string[];
  readonly answer: { readonly group: string; readonly version: string; readonly kind: string };
}

const STATUS_VERBS: readonly Verb[] = ["get", "patch", "update"];

/** The documents by which clients learn what is served. */
export class Discovery {
  private readonly entries: readonly Entry[];

  constructor({ kinds, subresources, virtual }: DiscoveryDeps) {
    const none = { shortNames: [], categories: [], subresources: [] };
    this.entries = [
      ...kinds.all.map((kind) => entryOf(kind, subresources)),
      ...virtual.map((one) => ({ ...none, ...one, shortNames: one.shortNames ?? [] })),
    ];
  }

  /** True if a group is served in a version. */
  has(group: string, version?: string): boolean {
    return this.entries.some((one) => one.group === group && (version === undefined || one.version === version));
  }

  /** `/api`. */
  coreVersions(): object {
    const address = { clientCIDR: "0.0.0.0/0", serverAddress: "" };
    return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [address] };
  }

  /** `/apis`. */
  groups(): object {
    return { kind: "APIGroupList", apiVersion: "v1", groups: this.groupNames(true).map((name) => this.groupOf(name)) };
  }

  /** `/apis/GROUP`. */
  group(name: string): object {
    return { kind: "APIGroup", apiVersion: "v1", ...this.groupOf(name) };
  }

  /** `/api/v1`, `/apis/GROUP/VERSION`. */
  resources(group: string, version: string): object {
    const own = this.entriesOf(group, version);
    const resources = own.flatMap((entry) => [
      {
        name: entry.plural,
        singularName: entry.singular,
        namespaced: entry.isNamespaced,
        kind: entry.kind,
        verbs: entry.verbs,
        ...(entry.shortNames.length > 0 && { shortNames: entry.shortNames }),
        ...(entry.categories.length > 0 && { categories: entry.categories }),
      },
      ...entry.subresources.map(({ name, verbs, answer }) => ({
        name: `${entry.plural}/${name}`,
        singularName: "",
        namespaced: entry.isNamespaced,
        ...(answer.group !== group && { group: answer.group, version: answer.version }),
        kind: answer.kind,
        verbs,
      })),
    ]);
    const groupVersion = group === "" ? version : `${group}/${version}`;
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources };
  }

  /** The aggregated form, of `/api` or of `/apis`. */
  aggregated(isCore: boolean, version: string): object {
    const items = this.groupNames(!isCore).map((name) => ({
      metadata: { ...(name !== "" && { name }), creationTimestamp: null },
      versions: this.versionsOf(name).map((word) => ({
        version: word,
        resources: this.entriesOf(name, word).map(aggregatedResource),
        freshness: "Current",
      })),
    }));
    return { kind: "APIGroupDiscoveryList", apiVersion: `apidiscovery.k8s.io/${version}`, metadata: {}, items };
  }

  private groupNames(areNamed: boolean): readonly string[] {
    const all = [...new Set(this.entries.map(({ group }) => group))];
    return all.filter((name) => (name !== "") === areNamed);
  }

  private versionsOf(group: string): readonly string[] {
    return [...new Set(this.entries.filter((one) => one.group === group).map(({ version }) => version))];
  }

  private entriesOf(group: string, version: string): readonly Entry[] {
    return this.entries
      .filter((one) => one.group === group && one.version === version)
      .sort((a, b) => (a.plural < b.plural ? -1 : 1));
  }

  private groupOf(name: string): object {
    const versions = this.versionsOf(name).map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions, preferredVersion: versions[0] };
  }
}

function entryOf(kind: Kind, subresources: SubresourceTable): Entry {
  const { resource, singular, shortNames = [], categories = [], verbs } = kind;
  const { group, version } = resource;
  const own = { group, version, kind: resource.kind };
  const updates = [...(kind.status === undefined ? [] : ["status"]), ...Object.keys(kind.updates ?? {})];
  const all: SubEntry[] = [
    ...updates.map((name) => ({
      name,
      verbs: name === "finalize" ? ["update"] : STATUS_VERBS,
      answer: own,
    })),
    ...subresources.of(kind).map(({ name, verbs, answer }) => ({ name, verbs: connectVerbs(verbs), answer })),
  ];
  return {
    group,
    version,
    plural: resource.plural,
    singular: singular ?? resource.kind.toLowerCase(),
    kind: resource.kind,
    isNamespaced: resource.isNamespaced,
    verbs,
    shortNames,
    categories,
    subresources: all.sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** A stream can be opened by two methods. */
function connectVerbs(verbs: readonly string[]): readonly string[] {
  return verbs.flatMap((verb) => (verb === "connect" ? ["create", "get"] : [verb]));
}

function aggregatedResource(entry: Entry): object {
  const scope = entry.isNamespaced ? "Namespaced" : "Cluster";
  return {
    resource: entry.plural,
    responseKind: { group: "", version: "", kind: entry.kind },
    scope,
    singularResource: entry.singular,
    verbs: entry.verbs,
    ...(entry.shortNames.length > 0 && { shortNames: entry.shortNames }),
    ...(entry.categories.length > 0 && { categories: entry.categories }),
    ...(entry.subresources.length > 0 && {
      subresources: entry.subresources.map(({ name, verbs, answer }) => ({
        subresource: name,
        responseKind: answer.group === entry.group ? { group: "", version: "", kind: answer.kind } : answer,
        verbs,
      })),
    }),
  };
}
