import { objectKind } from "../object-kind.ts";

/** The keys of a ConfigMap as files. */
export const configMap = objectKind({
  plugin: "kubernetes.io/configmap",
  kind: "ConfigMap",
  word: "config",
  inMemory: false,
  sourceOf: (volume) => volume.configMap,
});
