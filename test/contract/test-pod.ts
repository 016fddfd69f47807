import assert from "node:assert/strict";
import type { ContainerConfig, ContainerStatus, SandboxConfig } from "../../src/adapters/runtime/port.ts";
import { containerConfig, type Harness, never, sandboxConfig, type TestProgram } from "./harness.ts";

/** A sandbox with helpers to put containers into it. */
export class TestPod {
  private attempt = 0;

  private constructor(
    private readonly harness: Harness,
    readonly sandbox: SandboxConfig,
    readonly id: string,
  ) {}

  static async run(harness: Harness): Promise<TestPod> {
    const sandbox = sandboxConfig(harness());
    return new TestPod(harness, sandbox, await harness().runtime.runSandbox(sandbox, "", never));
  }

  create(change: Partial<ContainerConfig> = {}): Promise<string> {
    const config = containerConfig(this.harness(), { attempt: this.attempt++, ...change });
    return this.harness().runtime.createContainer({ sandboxId: this.id, config, sandbox: this.sandbox }, never);
  }

  async start(program: TestProgram, change: Partial<ContainerConfig> = {}): Promise<string> {
    const id = await this.create({ command: this.harness().command(program), ...change });
    await this.harness().runtime.startContainer(id, never);
    return id;
  }

  async remove(): Promise<void> {
    await this.harness().runtime.stopSandbox(this.id, never);
    await this.harness().runtime.removeSandbox(this.id, never);
  }
}

/** Waits until the container has exited. */
export async function exited(harness: Harness, id: string): Promise<ContainerStatus> {
  const { runtime, clock } = harness();
  for (const until = clock.now().mono + 30_000; ; await clock.sleep(10)) {
    const status = await runtime.containerStatus(id, never);
    if (status.state === "exited") return status;
    assert.ok(clock.now().mono < until, `still ${status.state}`);
  }
}
