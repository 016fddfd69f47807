import { readFileSync, writeFileSync } from "node:fs";
import { messageOf } from "../../lib/errors.ts";
import { loadNative, systemError } from "../../lib/native.ts";

const RLIMIT_NOFILE = 7;
const UNLIMITED = 2n ** 64n - 1n;
/** Of the memory only the headers of programs, which identify the build, are in a core file. */
const CORE_HEADERS = "0x10";

/** What the agent asks of the kernel for its own process. */
export interface OwnLimits {
  /** How late it is ended when memory is short: -1000 is never. */
  readonly oomScoreAdj: number;
  readonly maxOpenFiles: number;
}

/**
 * Sets both, and keeps memory out of core files: it has the secrets of pods. The answer says in words what the kernel
 * refused. Never rejects: the agent also works without.
 */
export async function setOwnLimits({ oomScoreAdj, maxOpenFiles }: OwnLimits): Promise<readonly string[]> {
  const refused: string[] = [];
  try {
    setOomScoreAdj("/proc/self/oom_score_adj", oomScoreAdj);
  } catch (error) {
    refused.push(`oomScoreAdj ${oomScoreAdj}: ${messageOf(error)}`);
  }
  try {
    await setOpenFiles(BigInt(maxOpenFiles));
  } catch (error) {
    refused.push(`maxOpenFiles ${maxOpenFiles}: ${messageOf(error)}`);
  }
  try {
    writeFileSync("/proc/self/coredump_filter", CORE_HEADERS);
  } catch (error) {
    refused.push(`coredump_filter ${CORE_HEADERS}: ${messageOf(error)}`);
  }
  return refused;
}

/** Only when it differs: writing down what is already there may be refused too. */
function setOomScoreAdj(path: string, score: number): void {
  if (Number(readFileSync(path, "utf8")) !== score) writeFileSync(path, String(score));
}

/** A higher hard limit stays as it is; a lower one is raised where the kernel lets us. */
async function setOpenFiles(wanted: bigint): Promise<void> {
  const native = await loadNative();
  if (native === undefined) throw new Error("the C library is not available");
  const prlimit = native.libc.func("int prlimit(int pid, int resource, const void *fresh, void *old)");
  const limits = Buffer.alloc(16);
  const call = (fresh: Buffer | null, old: Buffer | null): void => {
    if (prlimit(0, RLIMIT_NOFILE, fresh, old) === 0) return;
    throw systemError(native, { syscall: "prlimit", path: "RLIMIT_NOFILE", errno: native.koffi.errno() });
  };
  call(null, limits);
  const hard = limits.readBigUInt64LE(8);
  if (limits.readBigUInt64LE(0) === wanted) return;
  limits.writeBigUInt64LE(wanted, 0);
  if (hard !== UNLIMITED && hard < wanted) limits.writeBigUInt64LE(wanted, 8);
  try {
    call(limits, null);
  } catch (error) {
    limits.writeBigUInt64LE(hard, 0);
    limits.writeBigUInt64LE(hard, 8);
    call(limits, null);
    throw new Error(`the limit stays at ${hard}: ${messageOf(error)}`, { cause: error });
  }
}
