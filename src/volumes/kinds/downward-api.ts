import { setUpContent, tearDownContent, type VolumeContent } from "../content-volume.ts";
import type { VolumeKind } from "../kind.ts";
import { downwardFiles } from "../payload.ts";

/** Fields of the pod itself as files; labels and annotations follow the pod. */
export const downwardApi: VolumeKind = {
  plugin: "kubernetes.io/downward-api",
  handles: (volume) => volume.downwardAPI !== undefined,
  isLive: true,
  isPlain: true,
  references: () => ({ objects: [], pod: true }),

  setUp(of, deps) {
    const content = async (): Promise<VolumeContent> => {
      const { items = [], defaultMode = 0o644 } = of.volume.downwardAPI ?? {};
      const { allocatable } = deps.node;
      return { files: downwardFiles(items, { pod: of.pod, allocatable, defaultMode }) };
    };
    return setUpContent(of, deps, { content: content(), inMemory: true });
  },

  tearDown: tearDownContent,
};
