import { type ParsedSeries, parseMetrics } from "./metrics-page.ts";

/** How far a number of theirs may be from ours, of the same container and of the whole machine. */
export const NEAR = 0.02;
export const NEAR_OF_MACHINE = 0.15;

/** True if a number of theirs is between two of ours, one read before and one after, or near them. */
export function isNear(theirs: number, ours: readonly number[], share: number): boolean {
  const [low, high] = [Math.min(...ours), Math.max(...ours)];
  return theirs >= low - Math.abs(low) * share - 1e-6 && theirs <= high + Math.abs(high) * share + 1e-6;
}

/** Metrics of cAdvisor whose numbers differ, as docs/monitoring.md says, or are of this very moment. */
const OTHER_NUMBERS =
  /^container_(last_seen|fs_io_current|fs_(io_time|io_time_weighted|read|write)_seconds_total)$|^machine_|_info$/;

/** Three pages: one of ours, then one of theirs, then one of ours again. */
export interface ComparedPages {
  readonly before: string;
  readonly theirs: string;
  readonly after: string;
}

/** Series of a page: missing and extra ones, and those with other numbers. `isLeftOut` are not compared. */
export function differences(
  { before, theirs, after }: ComparedPages,
  isLeftOut: (series: ParsedSeries) => boolean = () => false,
): string[] {
  const [first, last] = [parseMetrics(before), parseMetrics(after)];
  const original = parseMetrics(theirs);
  const problems: string[] = [];
  const word = ({ name, labels }: ParsedSeries): string => `${name} ${JSON.stringify(labels)}`;
  for (const [key, series] of original) {
    if (series.name === "cadvisor_version_info" || isPassing(series) || isLeftOut(series)) continue;
    const ours = [first.get(key)?.value, last.get(key)?.value].filter((value) => value !== undefined);
    if (ours.length === 0) problems.push(`missing: ${word(series)}`);
    else if (!isSame(series, ours)) problems.push(`${word(series)}: theirs ${series.value}, ours ${ours.join(" to ")}`);
  }
  for (const [key, series] of last) {
    const isOurs = series.name === "cadvisor_version_info" || series.name.startsWith("container_pressure_");
    if (!isOurs && !isPassing(series) && !isLeftOut(series) && !original.has(key))
      problems.push(`extra: ${word(series)}`);
  }
  return problems;
}

/** What a suite beside this one has mounted (layers of containers, loop devices); the original looks at mounts less often. */
function isPassing({ labels }: ParsedSeries): boolean {
  return /^(\/tmp\/|overlay_|\/dev\/loop)/.test(labels["device"] ?? "");
}

/** What all programs of the machine have open changes with each that starts or ends. */
const OF_ALL = /^container_(file_descriptors|sockets|processes|threads)$/;

function isSame({ name, labels, value }: ParsedSeries, ours: readonly number[]): boolean {
  if (OTHER_NUMBERS.test(name) || labels["scope"] === "hierarchy") return true;
  const isOfMachine = labels["id"] === "/" || name.startsWith("node_");
  if (isOfMachine && OF_ALL.test(name)) return value > 0 === ours.some((one) => one > 0);
  return isNear(value, ours, isOfMachine ? NEAR_OF_MACHINE : NEAR);
}
