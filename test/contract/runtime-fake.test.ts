import { FakeRuntime } from "../../src/adapters/runtime/fake.ts";
import type { FakeProgram } from "../../src/adapters/runtime/fake-program.ts";
import type { ContainerConfig } from "../../src/adapters/runtime/port.ts";
import { FakeClock } from "../../src/lib/clock.ts";
import type { RuntimeHarness, TestCommand, TestProgram } from "./harness.ts";
import { runtimeContract } from "./runtime-suite.ts";

const IMAGE = "localhost/fake:1";

runtimeContract("fake", async () => {
  const clock = new FakeClock();
  const runtime = new FakeRuntime({ clock }, { program });
  runtime.image(IMAGE);
  const time = new RunningTime(clock);
  const harness: RuntimeHarness = {
    runtime,
    images: runtime,
    clock,
    image: IMAGE,
    cgroupParent: "/fake",
    logDirectory: "/fake/logs",
    command: (wanted: TestProgram) => ["run", JSON.stringify(wanted)],
    execCommand: (wanted: TestCommand) => ["exec", JSON.stringify(wanted)],
    listens: async () => undefined,
    memoryLimit: (id) => runtime.limitsOf(id)?.memoryLimitBytes,
    rotateLog: (_path, id) => {
      const reopened = (): number =>
        runtime.control.calls.filter(({ method, subject }) => method === "reopenContainerLog" && subject === id).length;
      const before = reopened();
      return () => reopened() > before;
    },
    brokenCommand: ["no-such-command"],
    kill: async () => runtime.goAway(),
    revive: async () => runtime.comeBack(),
    stop: () => time.stop(),
  };
  return harness;
});

function program({ command: [verb, detail] }: ContainerConfig): FakeProgram {
  if (verb !== "run") return { failsToStart: `exec: "${verb}": not found` };
  return {
    // The test's own encoding, see `command` above.
    ...(JSON.parse(detail ?? "{}") as TestProgram),
    exec: ([, wanted]) => JSON.parse(wanted ?? "{}") as TestCommand,
  };
}

/** Lets a fake clock jump from timer to timer by itself, so that a suite written for real time takes none. */
class RunningTime {
  private stopped = false;
  private readonly running: Promise<void>;

  constructor(private readonly clock: FakeClock) {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.clock.nextIn;
      if (next !== undefined) await this.clock.advance(next);
    }
  }
}
