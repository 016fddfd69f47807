import { TestContainerd, whyNoContainerd } from "../support/containerd.ts";
import { harnessFor } from "./containerd-harness.ts";
import { containerdOnly } from "./containerd-only.ts";
import { runtimeContract } from "./runtime-suite.ts";

/** This process's exit code when the contract cannot be run here at all. */
const LEFT_OUT = 77;

/** The contract on a real containerd: the system's, or the one in CONTAINERD_BIN_DIR. */
function main(): void {
  const binDir = process.env.CONTAINERD_BIN_DIR;
  const options = binDir === undefined || binDir === "" ? {} : { binDir };
  const why = whyNoContainerd(options);
  if (why !== undefined) {
    process.stderr.write(`runtime contract on containerd left out: ${why}\n`);
    process.exitCode = LEFT_OUT;
    return;
  }
  runtimeContract(`containerd ${binDir ?? "of this system"}`, async () =>
    harnessFor(await TestContainerd.start(options)),
  );
  containerdOnly(options);
}

main();
