import type { LinuxResources } from "../../../adapters/runtime/port.ts";
import { ownValue } from "../../../lib/own-value.ts";
import { ConfigError } from "../../../model/config-error.ts";
import type { ContainerContributor, ContainerCreation, Contribution, MergedContribution } from "./contributor.ts";

/** A merge under way: what there is, and by whom. */
interface Merge {
  readonly merged: MergedContribution;
  /** Contributors by what they set, such as `mount /etc/hosts`. */
  readonly owners: ReadonlyMap<string, string>;
}

type Contributor = Pick<ContainerContributor, "name" | "overridesEnv" | "overridesMounts">;

const EMPTY: Merge = {
  merged: { env: [], mounts: [], devices: [], cdiDevices: [], annotations: {}, resources: {} },
  owners: new Map(),
};

/** Asks the contributors in their order and merges what they add. Throws a `ConfigError` that names who conflicts. */
export async function collectContributions(
  contributors: readonly ContainerContributor[],
  creation: ContainerCreation,
): Promise<MergedContribution> {
  let merge = EMPTY;
  for (const contributor of contributors) {
    merge = addContribution(merge, contributor, await contributor.contribute(creation, merge.merged));
  }
  const { users } = merge.merged;
  if (users === undefined) return merge.merged;
  return { ...merge.merged, mounts: merge.merged.mounts.map((mount) => ({ ...mount, users })) };
}

/** Merges contributions that are already there, in their order. Pure. */
export function mergeContributions(all: readonly (readonly [Contributor, Contribution])[]): MergedContribution {
  return all.reduce((merge, [contributor, contribution]) => addContribution(merge, contributor, contribution), EMPTY)
    .merged;
}

function addContribution({ merged, owners }: Merge, contributor: Contributor, added: Contribution): Merge {
  const claims = new Claims(owners, contributor.name);
  const env = new Map(merged.env.map(({ name, value }) => [name, value]));
  for (const { name, value } of added.env ?? []) {
    const isSame = env.get(name) === value || contributor.overridesEnv === true;
    claims.claim(`environment variable ${name}`, isSame);
    env.set(name, value);
  }
  const paths = new Set((added.mounts ?? []).map(({ containerPath }) => normal(containerPath)));
  const overrides = contributor.overridesMounts === true;
  for (const path of paths) claims.claim(`mount ${path}`, overrides);
  const kept = overrides
    ? merged.mounts.filter(({ containerPath }) => !paths.has(normal(containerPath)))
    : merged.mounts;
  for (const { containerPath } of added.devices ?? []) claims.claim(`device ${normal(containerPath)}`);
  for (const [key, value] of Object.entries(added.annotations ?? {})) {
    claims.claim(`annotation ${key}`, ownValue(merged.annotations, key) === value);
  }
  if (added.users !== undefined) claims.claim("user namespace");
  const users = added.users ?? merged.users;
  return {
    merged: {
      env: [...env].map(([name, value]) => ({ name, value })),
      mounts: [...kept, ...(added.mounts ?? [])],
      devices: [...merged.devices, ...(added.devices ?? [])],
      cdiDevices: [...new Set([...merged.cdiDevices, ...(added.cdiDevices ?? [])])],
      annotations: { ...merged.annotations, ...added.annotations },
      resources: mergeResources(merged.resources, added.resources ?? {}, claims),
      ...(users && { users }),
    },
    owners: claims.all,
  };
}

function mergeResources(before: LinuxResources, added: LinuxResources, claims: Claims): LinuxResources {
  const { unified: flatBefore = {}, ...fieldsBefore } = before;
  const { unified = {}, ...fields } = added;
  const known = new Map<string, unknown>(Object.entries(fieldsBefore));
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) claims.claim(`resource ${name}`, known.get(name) === value);
  for (const [name, value] of Object.entries(unified)) {
    claims.claim(`resource ${name}`, ownValue(flatBefore, name) === value);
  }
  const flat = { ...flatBefore, ...unified };
  return {
    ...fieldsBefore,
    ...Object.fromEntries(given),
    ...(Object.keys(flat).length > 0 && { unified: flat }),
  };
}

/** Who set what. */
class Claims {
  readonly all: Map<string, string>;

  constructor(
    owners: ReadonlyMap<string, string>,
    private readonly name: string,
  ) {
    this.all = new Map(owners);
  }

  /** Throws if another contributor has set it already, unless both agree. */
  claim(what: string, isAgreed = false): void {
    const owner = this.all.get(what);
    if (owner !== undefined && owner !== this.name && !isAgreed) {
      throw new ConfigError(`${what}: set by both ${owner} and ${this.name}`);
    }
    this.all.set(what, this.name);
  }
}

/** `/data/` and `//data` are `/data`. */
function normal(path: string): string {
  return path.replace(/\/+/g, "/").replace(/(.)\/$/, "$1");
}
