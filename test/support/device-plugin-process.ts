import { statSync, watch } from "node:fs";
import { join } from "node:path";
import { type ServiceError, status } from "@grpc/grpc-js";
import { DevicePluginServer, type PluginScript } from "./device-plugin.ts";

// A device plugin as a process of its own: `device-plugin-process.ts DIRECTORY SCRIPT`. It registers at once and again
// with each new agent, as plugins do, and reports each answer on a line. A line of its input is another list of devices.

const RETRY_MS = 100;

const [dir = "", script = "{}"] = process.argv.slice(2);
const plugin = new DevicePluginServer(dir, JSON.parse(script) as PluginScript);
let known = "";

async function register(): Promise<void> {
  const found = statSync(join(dir, "kubelet.sock"), { throwIfNoEntry: false });
  // The next socket may get the inode of the one before.
  const identity = found === undefined ? "" : `${found.ino} ${found.ctimeMs}`;
  if (identity === "" || identity === known) return;
  known = identity;
  const isServed = statSync(join(dir, plugin.socket), { throwIfNoEntry: false }) !== undefined;
  // The agent has removed the socket: a plugin serves a new one.
  if (!isServed) await plugin.serveAgain();
  try {
    await plugin.register();
    process.stdout.write("registered\n");
  } catch (error) {
    if ((error as Partial<ServiceError>).code === status.UNAVAILABLE) {
      // The agent has bound its socket and does not listen yet: a plugin tries again.
      known = "";
      setTimeout(() => void register(), RETRY_MS);
      return;
    }
    process.stdout.write(`refused: ${error instanceof Error ? error.message : String(error)}\n`);
  }
}

await plugin.serve();
watch(dir, () => void register());
await register();
process.stdin
  .setEncoding("utf8")
  .on("data", (line: string) => plugin.list(JSON.parse(line) as PluginScript["devices"]));
