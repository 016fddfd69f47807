/** What a test file finds in its process and has to leave as it was. */
export interface ProcessState {
  readonly umask: number;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How many listeners each event of the process has. */
  readonly listeners: Readonly<Record<string, number>>;
  /** What keeps the event loop alive (timers, sockets, child processes), counted by kind. */
  readonly resources: Readonly<Record<string, number>>;
}

/** How long a socket or a child process may take to close after the last test of its file. */
const SETTLE_MS = 1000;
/** Reads of the runner itself and the thread pool's requests come and go. */
const PASSING = new Set(["FSReqCallback", "FSReqPromise", "PipeWrap", "WriteWrap", "TTYWrap"]);

export function readProcessState(): ProcessState {
  return {
    umask: process.umask(),
    cwd: process.cwd(),
    env: { ...process.env },
    listeners: Object.fromEntries(
      process.eventNames().map((event) => [String(event), process.listenerCount(String(event))]),
    ),
    resources: count(process.getActiveResourcesInfo().filter((kind) => !PASSING.has(kind))),
  };
}

/** Each difference in words; empty when `after` is as `before`. Fewer resources and listeners than before are no fault. */
export function processChanges(before: ProcessState, after: ProcessState): string[] {
  const changes: string[] = [];
  if (before.umask !== after.umask) changes.push(`umask ${octal(before.umask)} → ${octal(after.umask)}`);
  if (before.cwd !== after.cwd) changes.push(`working directory ${before.cwd} → ${after.cwd}`);
  for (const name of new Set([...Object.keys(before.env), ...Object.keys(after.env)])) {
    if (before.env[name] !== after.env[name]) changes.push(`environment variable ${name}`);
  }
  changes.push(...surplus("listener for", before.listeners, after.listeners));
  changes.push(...surplus("open", before.resources, after.resources));
  return changes;
}

/** The same for now, once everything that was on its way out had time to go. */
export async function changesSince(before: ProcessState): Promise<string[]> {
  const until = performance.now() + SETTLE_MS;
  for (;;) {
    const changes = processChanges(before, readProcessState());
    if (changes.length === 0 || performance.now() > until) return changes;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Makes the process as it was, so that the next file does not pay for this one. */
export function restoreProcess(state: ProcessState): void {
  process.umask(state.umask);
  process.chdir(state.cwd);
  for (const name of Object.keys(process.env)) if (state.env[name] === undefined) delete process.env[name];
  for (const [name, value] of Object.entries(state.env)) if (value !== undefined) process.env[name] = value;
}

function surplus(
  what: string,
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): string[] {
  return Object.entries(after)
    .map(([name, number]) => [name, number - (before[name] ?? 0)] as const)
    .filter(([, more]) => more > 0)
    .map(([name, more]) => `${more} × ${what} ${name}`);
}

function count(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}
