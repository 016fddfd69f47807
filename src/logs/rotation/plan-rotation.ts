/** `0.log.20261117-093000`, for a second rotation within a second `0.log.20261117-093000_1`, compressed with `.gz` behind it. */
const ROTATED = /^(\d{8}-\d{6})(?:_(\d+))?(\.gz)?$/;

/** A rotated file of one log. */
export interface RotatedLog {
  readonly name: string;
  readonly isCompressed: boolean;
  /** The name without `.gz`: the same before and after compression, and in order of time. */
  readonly key: string;
}

/** What is done to the files of one log, by name within its directory. */
export interface RotationPlan {
  /** Removed first: temporary files, plain files that are compressed already, and the oldest ones beyond the limit. */
  readonly remove: readonly string[];
  /** The new name of the current file. */
  readonly rotateTo: string;
  /** Compressed afterwards; the file that was rotated last stays plain, because the runtime may still write to it. */
  readonly compress: readonly string[];
}

/** The log that is planned for, with the names in its directory. */
export interface RotationFacts {
  /** Name of the current file, such as `0.log`. */
  readonly base: string;
  readonly names: readonly string[];
  /** True for a temporary file that is being written right now. */
  isBusy(name: string): boolean;
  /** Files of one log in all, the current one included; at least 2. */
  readonly maxFiles: number;
}

/** Returns the rotated files among the names of a directory, oldest first. Pure. */
export function rotatedLogs(base: string, names: readonly string[]): RotatedLog[] {
  const found = names.filter((name) => name.startsWith(`${base}.`));
  return found
    .map((name) => ({ name, match: ROTATED.exec(name.slice(base.length + 1)) }))
    .filter(({ match }) => match !== null)
    .map(({ name, match }) => ({
      name,
      isCompressed: match?.[3] !== undefined,
      key: `${match?.[1] ?? ""}_${(match?.[2] ?? "0").padStart(6, "0")}`,
    }))
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

/** Returns what a rotation of the log does. Pure. */
export function planRotation(facts: RotationFacts, wall: Date): RotationPlan {
  const { remove, kept } = tidy(facts, facts.maxFiles - 2);
  const rotateTo = freeName(facts, wall);
  return { remove, rotateTo, compress: kept.filter(({ isCompressed }) => !isCompressed).map(({ name }) => name) };
}

/** Returns what an interrupted rotation left to be done, without rotating anything. Pure. */
export function planRecovery(facts: RotationFacts): Pick<RotationPlan, "remove" | "compress"> {
  const { remove, kept } = tidy(facts, facts.maxFiles - 1);
  const plain = kept.slice(0, -1).filter(({ isCompressed }) => !isCompressed);
  return { remove, compress: plain.map(({ name }) => name) };
}

function tidy({ base, names, isBusy }: RotationFacts, most: number): { remove: string[]; kept: RotatedLog[] } {
  const temporary = names.filter((name) => name.startsWith(`${base}.`) && name.endsWith(".tmp") && !isBusy(name));
  const rotated = rotatedLogs(base, names);
  const compressed = new Set(rotated.filter(({ isCompressed }) => isCompressed).map(({ key }) => key));
  const isTwin = ({ key, isCompressed }: RotatedLog): boolean => !isCompressed && compressed.has(key);
  const single = rotated.filter((log) => !isTwin(log));
  const old = single.slice(0, Math.max(0, single.length - Math.max(0, most)));
  const remove = [...temporary, ...rotated.filter(isTwin).map(({ name }) => name), ...old.map(({ name }) => name)];
  return { remove, kept: single.slice(old.length) };
}

/** A name behind all others, also when the clock was set back or two rotations fall into one second. */
function freeName({ base, names }: RotationFacts, wall: Date): string {
  const newest = rotatedLogs(base, names).at(-1)?.key ?? "";
  const stamp = timestamp(wall);
  if (`${stamp}_000000` > newest) return `${base}.${stamp}`;
  const [time = "", count = "0"] = newest.split("_");
  return `${base}.${time}_${Number(count) + 1}`;
}

/** `20261117-093000` in local time, as Kubernetes names rotated logs. */
function timestamp(date: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}${two(date.getMonth() + 1)}${two(date.getDate())}`;
  return `${day}-${two(date.getHours())}${two(date.getMinutes())}${two(date.getSeconds())}`;
}
