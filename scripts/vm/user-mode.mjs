// One run in a kernel that is a program of this machine (User Mode Linux): several times faster than an emulated machine.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { outcome } from "./boot.mjs";
import { environment } from "./disk.mjs";

/** Where the memory of the machine is kept: has to be a tmpfs from which programs may be run. */
const MEMORY = "/dev/shm";

/** Boots, hands the command's output to `onText`, and answers with its exit code. */
export async function bootUserMode(work, { image, disks, signal, onText }) {
  // `c`: not locked, the other machine may read the same disk.
  const drives = [image.disk, ...disks].map((file, index) => `ubd${index}c=${join(work, `${index}.cow`)},${file}`);
  const child = spawn(
    image.userKernel,
    [
      ...["mem=3072M", ...drives, "root=/dev/ubda1", "rw", "loglevel=4", "panic=-1"],
      // The console is told where it is read after a failure, the command writes to the second serial line.
      ...["console=tty0", "con0=null,fd:2", "con=null", "ssl0=null", "ssl1=null,fd:1"],
    ],
    // A group of its own: each process inside is one outside.
    { stdio: ["ignore", "pipe", "pipe"], env: { ...environment(), TMPDIR: MEMORY }, cwd: work, detached: true },
  );
  const end = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  signal.addEventListener("abort", end, { once: true });
  child.once("exit", end);
  try {
    return await outcome(child, { console: "", onText });
  } finally {
    signal.removeEventListener("abort", end);
  }
}
