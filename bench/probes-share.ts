import { spawn } from "node:child_process";
import { join } from "node:path";

/** The share of a core that 500 HTTP probes a second take, in percent, measured in a process of its own. */
export function measureProbes(): Promise<number> {
  return new Promise((resolve, reject) => {
    const script = join(import.meta.dirname, "probes.ts");
    const child = spawn(process.execPath, ["--import", "tsx", script], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", () => {
      const share = /: ([\d.]+) % of a core/.exec(text)?.[1];
      if (share === undefined) reject(new Error(`the probe benchmark said: ${text}`));
      else resolve(Number(share));
    });
  });
}
