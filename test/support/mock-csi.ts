import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Program } from "../integration/support/program.ts";

const MOCK = join(process.env["CSI_MOCK_BIN_DIR"] || join(homedir(), ".cache/kubelet-ts/csi-mock-1.36.3"), "csi-mock");

/** Why the mock driver cannot run here, or undefined when it can. */
export function whyNoMockCsi(): string | undefined {
  return existsSync(MOCK) ? undefined : `no ${MOCK} (node scripts/build-csi-mock.mjs)`;
}

/** One call as the mock wrote it. */
export interface MockCall {
  /** `/csi.v1.Node/NodeStageVolume`. */
  readonly method: string;
  /** Empty for a call about none. */
  readonly volume: string;
  readonly code: string;
  /** How long the driver took. */
  readonly micros: number;
  /** Calls of its kind for its volume at that moment. */
  readonly inFlight: number;
  readonly request: object;
}

/** The mock driver of Kubernetes' own tests, as a process. Its volumes are `1`, `2`, `3` and those that are asked for. */
export class MockCsi {
  private constructor(private readonly program: Program) {}

  /** `root` is that of the agent; its directories for plugins must be there. */
  static start(name: string, root: string, flags: readonly string[] = []): MockCsi {
    const endpoint = `-endpoint=${join(root, "plugins", name, "csi.sock")}`;
    const registration = `-registration=${join(root, "plugins_registry", `${name}-reg.sock`)}`;
    return new MockCsi(new Program([MOCK, endpoint, registration, `-name=${name}`, ...flags]));
  }

  calls(): readonly MockCall[] {
    const lines = this.program.stdout.split("\n");
    // The last line may not be whole yet.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as MockCall);
  }

  async stop(): Promise<void> {
    await this.program.end("SIGKILL");
  }
}
