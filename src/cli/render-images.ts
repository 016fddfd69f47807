import { ago, bytesWords, type Cell, table } from "../lib/table.ts";
import type { ImageKeepReason, ImageReport, ReportedFilesystem, ReportedImage } from "../model/image-report.ts";

const HEADER = ["IMAGE", "SIZE", "UNUSED FOR", "STATE"];
const REMOVALS_HEADER = ["IMAGE", "SIZE", "IN ALL", "UNUSED FOR", "WHEN"];
/** Characters of an image's digest that are shown if it has no name. */
const SHORT_ID = 19;

const KEPT: Readonly<Record<ImageKeepReason, string>> = {
  inUse: "in use",
  wanted: "named by a pod",
  pulling: "being pulled",
  pinned: "pinned by the runtime",
  sandbox: "image of sandboxes",
  local: "kept: not pulled from a registry (--keep-local-images)",
  young: "unused, kept until its minimum age",
  spare: "unused",
};

/** The images as a table, those that go first at the top, below the state of the disk. */
export function renderImages(report: ImageReport, { color }: { color: boolean }): string {
  const rows = report.images.map((image): Cell[] => [
    nameOf(image),
    bytesWords(image.sizeBytes),
    unused(image),
    { text: stateOf(image), style: image.remove === undefined ? "dim" : "yellow" },
  ]);
  return `${diskLines(report)}\n${rows.length === 0 ? "No images.\n" : table(rows, { header: HEADER, color })}`;
}

/** The images that may be removed, in the order in which they go, with the bytes that are freed up to each. */
export function renderRemovals(report: ImageReport, { color }: { color: boolean }): string {
  let total = 0;
  const rows = report.images.map((image): Cell[] => {
    total += image.sizeBytes;
    const when = image.remove === undefined ? "when space is needed" : `now: ${image.remove}`;
    const style = image.remove === undefined ? "dim" : "yellow";
    return [nameOf(image), bytesWords(image.sizeBytes), bytesWords(total), unused(image), { text: when, style }];
  });
  const body = rows.length === 0 ? "No image may be removed.\n" : table(rows, { header: REMOVALS_HEADER, color });
  return `${diskLines(report)}\n${body}`;
}

function diskLines(report: ImageReport): string {
  const { imageFilesystem, containerFilesystem, bytesToFree, collected } = report;
  const lines = [
    imageFilesystem === undefined
      ? "Image filesystem: not reported by the runtime"
      : `Image filesystem ${usage(imageFilesystem, report.usagePercent)}`,
    containerFilesystem && `Container filesystem ${usage(containerFilesystem)}`,
    policyLine(report),
    bytesToFree > 0 ? `To be freed now: ${bytesWords(bytesToFree)}` : undefined,
    collected.images > 0
      ? `Removed since the agent started: ${collected.images}, ${bytesWords(collected.bytes)}`
      : undefined,
  ];
  return lines.map((line) => (line === undefined ? "" : `${line}\n`)).join("");
}

function usage({ mountpoint, capacityBytes, availableBytes }: ReportedFilesystem, percent?: number): string {
  const share = percent ?? 100 - Math.floor((availableBytes * 100) / Math.max(1, capacityBytes));
  return `${mountpoint}: ${share}% of ${bytesWords(capacityBytes)} used, ${bytesWords(availableBytes)} available`;
}

function policyLine({ highThresholdPercent, lowThresholdPercent, minimumAgeMs, maximumAgeMs }: ImageReport): string {
  const space =
    highThresholdPercent >= 100
      ? "Unused images are not removed for space"
      : `Unused images are removed from ${highThresholdPercent}% on, down to ${lowThresholdPercent}%, once ${ago(minimumAgeMs)} old`;
  return maximumAgeMs === 0 ? space : `${space}; and after ${ago(maximumAgeMs)} without use`;
}

function nameOf({ names, id, runtimeHandler }: ReportedImage): string {
  const name = names[0] ?? id.slice(0, SHORT_ID);
  const short = name.replace(/@sha256:([0-9a-f]{12})[0-9a-f]*$/, "@sha256:$1");
  return runtimeHandler === undefined ? short : `${short} (${runtimeHandler})`;
}

function unused({ unusedMs }: ReportedImage): string {
  return unusedMs === undefined ? "-" : ago(unusedMs);
}

function stateOf({ remove, keep, by }: ReportedImage): string {
  if (remove !== undefined) return remove === "age" ? "removed next: too old" : "removed next: for space";
  const state = KEPT[keep ?? "spare"];
  return by === undefined ? state : `${state}: ${by}`;
}
