import type { VolumeKind } from "../kind.ts";
import { downwardFiles } from "../payload.ts";
import { setUpWritten, tearDownWritten, type Written } from "../written.ts";

/** Fields of the pod itself as files; labels and annotations follow the pod. */
export const downwardApi: VolumeKind = {
  plugin: "kubernetes.io/downward-api",
  handles: (volume) => volume.downwardAPI !== undefined,
  isLive: true,
  isPlain: true,
  references: () => ({ objects: [], pod: true }),

  setUp(of, deps) {
    const content = async (): Promise<Written> => {
      const { items = [], defaultMode = 0o644 } = of.volume.downwardAPI ?? {};
      const { allocatable } = deps.node;
      return { files: downwardFiles(items, { pod: of.pod, allocatable, defaultMode }) };
    };
    return setUpWritten(of, deps, { content: content(), inMemory: true });
  },

  tearDown: tearDownWritten,
};
