import { createHash, randomBytes } from "node:crypto";

/** The environment variable by which every process that a suite started is known, however deep or detached. */
export const MARK = "KUBELET_TEST_MARK";
/** How the temporary directory of a suite begins; its path is the mark. Short: a unix socket's path has 107 bytes. */
export const PREFIX = "kt-";

/** Four digits that stand for a mark in names that have no room for it. */
export function tagOf(mark: string): string {
  return createHash("sha256").update(mark).digest("hex").slice(0, 4);
}

/** Eight digits for the names of what a suite makes: the first four tell which suite, where a runner gave it a mark. */
export function markedTag(): string {
  const mark = process.env[MARK];
  return mark === undefined ? randomBytes(4).toString("hex") : tagOf(mark) + randomBytes(2).toString("hex");
}
