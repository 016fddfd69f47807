import { readEntries } from "../../model/env-objects.ts";
import type { ObjectRef } from "../../model/object-source.ts";
import { setUpContent, tearDownContent, type VolumeContent } from "../content-volume.ts";
import type { VolumeKind, VolumeOfPod } from "../kind.ts";
import { objectFiles } from "../payload.ts";

/** The keys of a ConfigMap as files. */
export const configMap: VolumeKind = {
  plugin: "kubernetes.io/configmap",
  handles: (volume) => volume.configMap !== undefined,
  isLive: true,
  isPlain: true,
  references: (of) => ({ objects: [refOf(of)] }),

  setUp(of, deps, options) {
    const content = async (): Promise<VolumeContent> => {
      const { name, items, optional = false, defaultMode = 0o644 } = of.volume.configMap ?? {};
      const entries = await readEntries(deps.objects, refOf(of), options);
      if (entries === undefined && !optional) throw new Error(`configmap "${name}" not found`);
      return { files: objectFiles(entries ?? new Map(), { ...(items && { items }), optional, defaultMode }, "config") };
    };
    return setUpContent(of, deps, { content: content(), inMemory: false });
  },

  tearDown: tearDownContent,
};

function refOf({ pod, volume }: VolumeOfPod): ObjectRef<"ConfigMap"> {
  return { kind: "ConfigMap", namespace: pod.metadata.namespace ?? "", name: volume.configMap?.name ?? "" };
}
