import { readEntries } from "../../model/env-objects.ts";
import type { ObjectRef } from "../../model/object-source.ts";
import { setUpContent, tearDownContent, type VolumeContent } from "../content-volume.ts";
import type { VolumeKind, VolumeOfPod } from "../kind.ts";
import { objectFiles } from "../payload.ts";

/** The keys of a Secret as files, in memory only. */
export const secret: VolumeKind = {
  plugin: "kubernetes.io/secret",
  handles: (volume) => volume.secret !== undefined,
  isLive: true,
  isPlain: true,
  references: (of) => ({ objects: [refOf(of)] }),

  setUp(of, deps, options) {
    const content = async (): Promise<VolumeContent> => {
      const { secretName, items, optional = false, defaultMode = 0o644 } = of.volume.secret ?? {};
      const entries = await readEntries(deps.objects, refOf(of), options);
      if (entries === undefined && !optional) throw new Error(`secret "${secretName}" not found`);
      return { files: objectFiles(entries ?? new Map(), { ...(items && { items }), optional, defaultMode }, "secret") };
    };
    return setUpContent(of, deps, { content: content(), inMemory: true });
  },

  tearDown: tearDownContent,
};

function refOf({ pod, volume }: VolumeOfPod): ObjectRef<"Secret"> {
  return { kind: "Secret", namespace: pod.metadata.namespace ?? "", name: volume.secret?.secretName ?? "" };
}
