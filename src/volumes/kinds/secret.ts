import { objectKind } from "../object-kind.ts";

/** The keys of a Secret as files, in memory only. */
export const secret = objectKind({
  plugin: "kubernetes.io/secret",
  kind: "Secret",
  word: "secret",
  inMemory: true,
  sourceOf: ({ secret: source }) => source && { ...source, name: source.secretName },
});
