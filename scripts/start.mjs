// `npm start`: makes the machine ready, then runs the agent alone on it with the example pods.
// Further arguments go to the agent: npm start -- --state-dir /tmp/demo
import "./require-node.mjs";
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { isatty } from "node:tty";
import { CommandError, red, say } from "./progress.mjs";
import { root, setup } from "./setup.mjs";

const extra = process.argv.slice(2);
const ownRuntime = extra.some((arg) => arg.startsWith("--runtime-endpoint"));

try {
  const missing = await setup();
  if (missing.length > 0 && !ownRuntime) {
    say(red(`Cannot start a runtime without ${missing.join(", ")}.`));
    say("  With a runtime of your own: npm start -- --runtime-endpoint unix:///run/containerd/containerd.sock");
    process.exit(1);
  }
} catch (error) {
  say(red(error instanceof CommandError ? error.message : String(error)));
  process.exit(1);
}

const args = ["up", "--pods", join(root, "examples/pods"), ...extra];
const agent = spawn(join(root, "bin/kubelet"), args, {
  stdio: "inherit",
  env: { KUBELET_PROGRAM: "bin/kubelet", ...process.env, KUBELET_NODE: process.env.KUBELET_NODE ?? process.execPath },
});

// Ctrl-C: the terminal tells the agent itself, and npm tells us a second time, so we say nothing. Without a terminal
// a SIGINT was meant for the agent and came only here. SIGTERM always comes only here. We end when the agent does.
const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
process.on("SIGINT", () => hasTerminal || agent.kill("SIGINT"));
process.on("SIGTERM", () => agent.kill("SIGTERM"));
process.on("SIGHUP", () => hasTerminal || agent.kill("SIGHUP"));
agent.on("error", (error) => {
  say(red(`cannot run bin/kubelet: ${error.message}`));
  process.exit(1);
});
agent.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
