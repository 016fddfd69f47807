const SHORT: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

/** All access modes there are. */
export const ACCESS_MODES = Object.keys(SHORT);

/** Access modes as a table shows them. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return ACCESS_MODES.filter((mode) => modes?.includes(mode))
    .map((mode) => SHORT[mode] ?? mode)
    .join(",");
}
