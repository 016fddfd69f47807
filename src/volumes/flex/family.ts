import type { PersistentVolumeSpec, Volume } from "../../model/generated/types.ts";
import type { VolumeHost, VolumeKind } from "../kind.ts";
import type { KindFamily } from "../kind-list.ts";
import { listLevels } from "../paths.ts";
import type { VolumeUse } from "../volumes-in-use.ts";
import { FLEX_PLUGIN, type FlexKindDeps, flexKind } from "./kind.ts";
import { isDriverName } from "./options.ts";

/** The kinds of flexVolume drivers: one for each name, whether its driver is installed or not. */
export class FlexFamily implements KindFamily {
  private readonly kinds = new Map<string, VolumeKind>();

  constructor(private readonly deps: FlexKindDeps) {}

  ofVolume({ flexVolume }: Volume): VolumeKind | undefined {
    return flexVolume && this.kind(flexVolume.driver);
  }

  ofPersistent({ flexVolume }: PersistentVolumeSpec): VolumeKind | undefined {
    return flexVolume && this.kind(flexVolume.driver);
  }

  /** `vendor~driver`, or the name of a driver without a vendor that is known. Those of Kubernetes are no drivers. */
  ofDirectory(name: string): VolumeKind | undefined {
    if (name.startsWith("kubernetes.io~")) return undefined;
    if (name.includes("~")) return this.kind(name.replace("~", "/"));
    const known = [...this.kinds.keys(), ...this.deps.drivers.names];
    return known.includes(name) ? this.kind(name) : undefined;
  }

  /** By the directories of `kubernetes.io/flexvolume/VENDOR/DRIVER/mounts`, or without a vendor. */
  async staged(pluginsDir: string, host: VolumeHost): Promise<readonly VolumeKind[]> {
    const base = `${pluginsDir}/${FLEX_PLUGIN}`;
    const names = new Set<string>();
    for (const path of await listLevels(base, 2, host)) {
      const [first = "", second = ""] = path.split("/");
      if (second === "mounts") names.add(first);
      else if ((await host.list(`${base}/${path}`)).includes("mounts")) names.add(path);
    }
    return [...names].map((name) => this.kind(name));
  }

  private kind(driver: string): VolumeKind {
    // The name of a kind is a part of paths: one that cannot be is refused when the volume is set up.
    const name = isDriverName(driver) ? driver : FLEX_PLUGIN;
    const kind = this.kinds.get(name) ?? flexKind(name, this.deps);
    this.kinds.set(name, kind);
    return kind;
  }
}

/** The names under which the attach controller knows the volumes that are staged. */
export async function stagedFlexVolumes(
  family: Pick<FlexFamily, "staged">,
  pluginsDir: string,
  host: VolumeHost,
): Promise<readonly VolumeUse[]> {
  const kinds = await family.staged(pluginsDir, host);
  const uses = kinds.map(async (kind) => {
    const stages = (await kind.staging?.list(pluginsDir, host)) ?? [];
    return stages.map((stage) => {
      return { name: `${kind.plugin}/${stage.slice(stage.lastIndexOf("/") + 1)}`, stage: `${pluginsDir}/${stage}` };
    });
  });
  return (await Promise.all(uses)).flat();
}
