import { lazyLauncher, outputOn, runCli } from "./cli/index.ts";
import { type Abortable, AbortedError, manyListeners } from "./lib/abort.ts";
import { SystemClock } from "./lib/clock.ts";
import { LineSink, writerFor } from "./lib/output.ts";
import { ProcessStreams } from "./lib/process-streams.ts";
import { DescriptorTerminal } from "./lib/terminal.ts";

/** Milliseconds that the last lines may take to reach a slow reader before the process exits. */
const FLUSH_MS = 2000;
/** Commands that keep running when their output is closed: pods must not depend on a reader. */
const DEAF = new Set(["up", ""]);

/** Delivers SIGHUP to its listener; one that came before there is a listener is delivered to the first. */
class HangUps {
  private listener: (() => void) | undefined;
  private isUnheard = false;

  heard(): void {
    if (this.listener === undefined) this.isUnheard = true;
    else this.listener();
  }

  listen(fn: () => void, { signal }: Abortable): void {
    this.listener = fn;
    signal.addEventListener("abort", () => (this.listener = undefined), { once: true });
    if (this.isUnheard) fn();
    this.isUnheard = false;
  }
}

async function main(argv: readonly string[]): Promise<number> {
  const clock = new SystemClock();
  const stop = manyListeners();
  const first = argv[0]?.startsWith("-") === false ? argv[0] : "";
  const onBroken = (): void => {
    if (!DEAF.has(first)) stop.abort(new AbortedError("the reader of the output closed it"));
  };
  const out = new LineSink({ writer: writerFor(1, clock), clock, describeDropped: () => undefined, onBroken });
  const err = new LineSink({ writer: writerFor(2, clock), clock });
  const finish = async (): Promise<void> => {
    await Promise.all([out.flush({ timeoutMs: FLUSH_MS }), err.flush({ timeoutMs: FLUSH_MS })]);
  };
  const crash = (error: unknown): void => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    err.write(`kubelet: internal error, the agent exits and its pods keep running: ${text}\n`);
    void finish().then(() => process.exit(2));
  };
  process.on("uncaughtException", crash).on("unhandledRejection", crash);
  const hangUps = new HangUps();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      // The plain agent reloads its configuration; `up` and the commands end with their terminal.
      if (name === "SIGHUP" && first === "") hangUps.heard();
      else stop.abort(new AbortedError(`stopped by ${name}`));
    });
  }
  const output = outputOn(out, new DescriptorTerminal(1), process.env);
  const launcher = lazyLauncher(async () => {
    const { Launcher } = await import("./agent/launcher.ts");
    return new Launcher({
      clock,
      out: output,
      logSink: err,
      onReload: (fn, { signal }) => hangUps.listen(fn, { signal }),
    });
  });
  const program = process.env["KUBELET_PROGRAM"] ?? "kubelet";
  const streams = new ProcessStreams(clock);
  const deps = {
    out: output,
    err: outputOn(err, new DescriptorTerminal(2), process.env),
    clock,
    launcher,
    program,
    streams,
  };
  const code = await runCli(argv, deps, { signal: stop.signal });
  await finish();
  return code;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    throw error;
  },
);
