import { Collection } from "../store/index.ts";
import { collectionOf, type Kind } from "./kind.ts";

/** All kinds that are served. */
export class KindTable {
  private readonly byPath = new Map<string, Kind>();

  constructor(readonly all: readonly Kind[]) {
    for (const kind of all) this.byPath.set(pathKey(kind.resource), kind);
  }

  /** The kind of a resource's path; undefined if it is not served. */
  find(resource: { readonly group: string; readonly version: string; readonly plural: string }): Kind | undefined {
    return this.byPath.get(pathKey(resource));
  }

  /** The kind of a resource that is served. */
  of(resource: { readonly group: string; readonly version: string; readonly plural: string }): Kind {
    const found = this.find(resource);
    if (found === undefined) throw new Error(`${collectionOf(resource)} is not served`);
    return found;
  }

  /** The groups and versions, each once, in the order of the table. */
  get groupVersions(): readonly { readonly group: string; readonly version: string }[] {
    const seen = new Map<string, { readonly group: string; readonly version: string }>();
    for (const { apiVersion, resource } of this.all) {
      if (!seen.has(apiVersion)) seen.set(apiVersion, { group: resource.group, version: resource.version });
    }
    return [...seen.values()];
  }

  /** Empty collections for the store. */
  collectionsAt(revision: number): ReadonlyMap<string, Collection> {
    const own = this.all.filter(({ storedAs }) => storedAs === undefined);
    return new Map(
      own.map(({ collection, isSecret }) => [
        collection,
        new Collection({ id: collection, isSecret: isSecret === true }, revision),
      ]),
    );
  }
}

function pathKey({
  group,
  version,
  plural,
}: Kind["resource"] | { group: string; version: string; plural: string }): string {
  return `${group}/${version}/${plural}`;
}
