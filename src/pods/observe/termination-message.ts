import { lastBytes } from "../../lib/bounded-text.ts";
import { messageOf } from "../../lib/errors.ts";
import { TERMINATION_MESSAGE_PATH_ANNOTATION, TERMINATION_MESSAGE_POLICY_ANNOTATION } from "../../model/labels.ts";
import type { ObservedContainer } from "../../model/observed.ts";

const FILE_BYTES = 4096;
const LOG_BYTES = 2048;
const LOG_LINES = 80;
/** Enough for 80 lines of 2048 bytes together, with some 45 bytes of time, stream and tag before each. */
const RAW_LOG_BYTES = 8192;
/** No time, stream and tag together are longer. */
const LONGEST_PREFIX = 64;

/** Reads the ends of files; the empty text where there is none. */
export interface TailReader {
  readTail(path: string, bytes: number): Promise<string>;
}

/**
 * The termination message of an exited container: the runtime's message, then its message file or the end of its log.
 * A file that cannot be read is reported in the message: it must not keep the pod from being observed.
 */
export async function terminationMessage(files: TailReader, container: ObservedContainer): Promise<string> {
  const text = await lastWords(files, container).catch(
    (error: unknown) => `Error on reading termination log: ${messageOf(error)}`,
  );
  return [container.message, text].filter((part) => part !== "").join(": ");
}

async function lastWords(files: TailReader, container: ObservedContainer): Promise<string> {
  const own = await messageFile(files, container);
  return own !== "" || !wantsLog(container) ? own : logEnd(files, container.logPath);
}

async function messageFile(files: TailReader, container: ObservedContainer): Promise<string> {
  const path = container.annotations[TERMINATION_MESSAGE_PATH_ANNOTATION];
  // Ours is the last mount; a volume of the user's at the same path may be a directory or a pipe.
  const mount = container.mounts.findLast(({ containerPath }) => containerPath === path);
  return mount === undefined ? "" : files.readTail(mount.hostPath, FILE_BYTES);
}

function wantsLog(container: ObservedContainer): boolean {
  const policy = container.annotations[TERMINATION_MESSAGE_POLICY_ANNOTATION];
  return policy === "FallbackToLogsOnError" && container.exitCode !== 0 && container.reason !== "ContainerCannotRun";
}

/** The text of the last log lines without the runtime's time stamp, stream and tag. */
async function logEnd(files: TailReader, path: string): Promise<string> {
  if (path === "") return "";
  // One byte more tells whether the first line was cut off. A replaced byte counts once, as in the file.
  const read = await files.readTail(path, RAW_LOG_BYTES + 1);
  const isLonger = Buffer.byteLength(read.replaceAll("\ufffd", "?")) > RAW_LOG_BYTES;
  const isCut = isLonger && !read.startsWith("\n");
  const raw = isLonger ? read.slice(1) : read;
  let text = "";
  for (const [index, line] of raw.split("\n").entries()) {
    const entry = /^\S+ (?:stdout|stderr) ([^\s:]+)\S* (.*)$/.exec(line);
    // A piece that is not the last of its line goes on in the next entry.
    if (entry !== null) text += entry[1] === "P" ? entry[2] : `${entry[2]}\n`;
    // The first one may be the end of a very long line, cut off from its beginning.
    else if (isCut && index === 0 && line.length > LONGEST_PREFIX) text += `${line}\n`;
  }
  const lines = text.replace(/\n$/, "").split("\n").slice(-LOG_LINES).join("\n");
  return lastBytes(lines, LOG_BYTES);
}
