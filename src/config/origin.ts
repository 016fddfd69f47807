/** Where a value came from. `legacy` is a default that holds only without a --config file or for an old one. */
export type Origin =
  | { readonly from: "default" | "legacy" }
  | { readonly from: "flag"; readonly flag: string }
  | { readonly from: "file" | "drop-in" | "dynamic"; readonly file: string; readonly line: number | undefined }
  /** A default that followed from another setting. */
  | { readonly from: "derived"; readonly of: string };

/** A value's origin; for a map also that of each key, since layers merge maps. */
export interface Provenance {
  readonly origin: Origin;
  readonly parts?: ReadonlyMap<string, Origin>;
}

/** In a word or two: `default`, `--max-pods`, `kubelet.yaml:12`. */
export function showOrigin(origin: Origin): string {
  switch (origin.from) {
    case "default":
      return "default";
    case "legacy":
      return "default (no configuration file)";
    case "derived":
      return `follows from ${origin.of}`;
    case "flag":
      return `--${origin.flag}`;
    case "file":
    case "drop-in":
    case "dynamic":
      return `${origin.from === "dynamic" ? "dynamic " : ""}${origin.file}${origin.line === undefined ? "" : `:${origin.line}`}`;
  }
}

/** True for a value that somebody wrote. */
export function isGiven(origin: Origin): boolean {
  return origin.from !== "default" && origin.from !== "legacy" && origin.from !== "derived";
}
