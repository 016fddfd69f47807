/** Returns the message of `FreeDiskSpaceFailed`, in the words of Kubernetes. Pure. */
export function insufficientSpace(
  { capacityBytes }: { readonly capacityBytes: number },
  usagePercent: number,
  freedBytes: number,
): string {
  return (
    `Insufficient free disk space on the node's image filesystem (${usagePercent}% of ${sizeWords(capacityBytes)} used). ` +
    `Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). ` +
    "Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
  );
}

const UNITS = ["KiB", "MiB", "GiB", "TiB"] as const;

/** A size as Kubernetes writes it in this message: `512 B`, `1.5 GiB`. */
export function sizeWords(bytes: number): string {
  if (bytes < 1024) return `${Math.floor(bytes)} B`;
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(1)} ${UNITS[unit]}`;
}
