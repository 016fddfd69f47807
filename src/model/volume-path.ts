/** A path's parts have at most 255 bytes, a path 4096, as the kernel has it. */
const LONGEST_NAME = 255;
const LONGEST_PATH = 4096;

/** What is wrong with a file's path inside a volume; undefined when it is well. */
export function volumePathProblem(path: string): string | undefined {
  const parts = path.split("/");
  if (path === "") return "is empty";
  if (path.startsWith("/")) return "must be relative";
  if (path.includes("\0")) return "contains a NUL character";
  if (parts.includes("..")) return 'must not contain ".."';
  if (path.startsWith("..")) return 'must not begin with ".."';
  if (Buffer.byteLength(path) > LONGEST_PATH) return `is longer than ${LONGEST_PATH} bytes`;
  if (parts.some((part) => part === "" || part === ".")) return "has empty parts";
  if (parts.some((part) => Buffer.byteLength(part) > LONGEST_NAME)) return `has a name over ${LONGEST_NAME} bytes`;
  return undefined;
}
