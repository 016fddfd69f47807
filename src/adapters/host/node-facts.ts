import { lookup } from "node:dns/promises";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { statfs } from "node:fs/promises";

const HUGE_PAGES = "/sys/kernel/mm/hugepages";

/** Calls that have not returned, by path. */
const asked = new Map<string, Promise<number>>();

/**
 * Size in bytes of the filesystem that holds `path`; 0 when it cannot be told. It may hang: a call that does is shared by
 * all that ask meanwhile, so that it holds one thread and no more.
 */
export function filesystemSize(
  path: string,
  call: (path: string) => Promise<{ blocks: number; bsize: number }> = statfs,
): Promise<number> {
  const known = asked.get(path);
  if (known !== undefined) return known;
  const size = call(path)
    .then(({ blocks, bsize }) => blocks * bsize)
    .catch(() => 0)
    .finally(() => asked.delete(path));
  asked.set(path, size);
  return size;
}

/** Bytes of huge pages that the kernel holds, by the suffix of their resource (`2Mi`, `1Gi`). */
export function hugePages(directory = HUGE_PAGES): Record<string, number> {
  const found: Record<string, number> = {};
  let names: string[] = [];
  try {
    names = readdirSync(directory);
  } catch {
    // No huge pages in this kernel.
  }
  for (const name of names) {
    const kilobytes = Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0);
    if (kilobytes === 0) continue;
    found[sizeSuffix(kilobytes)] = Number(readOr(`${directory}/${name}/nr_hugepages`, "0")) * kilobytes * 1024;
  }
  return found;
}

function sizeSuffix(kilobytes: number): string {
  if (kilobytes % (1024 * 1024) === 0) return `${kilobytes / (1024 * 1024)}Gi`;
  return kilobytes % 1024 === 0 ? `${kilobytes / 1024}Mi` : `${kilobytes}Ki`;
}

/** Bytes of swap. */
export function swapSize(): number {
  return Number(/^SwapTotal:\s+(\d+) kB$/m.exec(readOr("/proc/meminfo", ""))?.[1] ?? 0) * 1024;
}

/** Addresses of a name, as the machine resolves it; none when it does not. */
export async function addressesOf(name: string): Promise<readonly string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    return [];
  }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return otherwise;
  }
}

/** Whether SELinux is on, enforcing or not: only then is its filesystem mounted. */
export function hasSelinux(file = "/sys/fs/selinux/enforce"): boolean {
  return existsSync(file);
}

/** Whether the kernel has AppArmor, and it is switched on. */
export function hasAppArmor(file = "/sys/module/apparmor/parameters/enabled"): boolean {
  try {
    return readFileSync(file, "latin1").startsWith("Y");
  } catch {
    return false;
  }
}
