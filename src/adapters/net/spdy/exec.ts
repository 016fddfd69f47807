import type { Abortable } from "../../../lib/abort.ts";
import { CodedError } from "../../../lib/errors.ts";
import type { Upgraded } from "../unix-client.ts";
import { SpdySession } from "./session.ts";

/** The command failed to run, or the connection was lost. */
export class ExecError extends CodedError<"Failed" | "Lost"> {}

/** Where the streams of a command come from and go to. */
export interface ExecEnds {
  /** Absent: the command has no input. Its end is told to the command. */
  readonly stdin?: AsyncIterable<Uint8Array>;
  stdout(bytes: Uint8Array): Promise<void>;
  stderr(bytes: Uint8Array): Promise<void>;
  /** Present: the command has a terminal of this size, which may change. */
  readonly terminal?: {
    size(): { readonly columns: number; readonly rows: number };
    onResize(fn: () => void, options: Abortable): void;
  };
}

/** Sub-protocol of exec, the newest that runtimes speak over SPDY. */
export const EXEC_PROTOCOL = "v4.channel.k8s.io";

/** Runs the exec protocol over an upgraded connection until the command ends. Resolves to its exit code. */
export async function runExec({ socket, head }: Upgraded, ends: ExecEnds, { signal }: Abortable): Promise<number> {
  const session = new SpdySession(socket, head);
  const local = new AbortController();
  const cut = (): void => session.close();
  signal.addEventListener("abort", cut, { once: true });
  try {
    const status = collect(session);
    const input = ends.stdin && session.open({ streamtype: "stdin" });
    session.open({ streamtype: "stdout" }, { data: (bytes) => ends.stdout(bytes) });
    if (ends.terminal === undefined) session.open({ streamtype: "stderr" }, { data: (bytes) => ends.stderr(bytes) });
    else followSize(session, ends.terminal, local.signal);
    const feeding = ends.stdin && input && feed(ends.stdin, input);
    feeding?.catch(() => undefined);
    await session.run();
    signal.throwIfAborted();
    return exitCode(status());
  } finally {
    local.abort();
    session.close();
    signal.removeEventListener("abort", cut);
  }
}

async function feed(source: AsyncIterable<Uint8Array>, into: ReturnType<SpdySession["open"]>): Promise<void> {
  for await (const chunk of source) await into.write(chunk);
  into.end();
}

/** The error stream: how the command ended, as a v1 Status. */
function collect(session: SpdySession): () => string {
  const parts: Buffer[] = [];
  session.open({ streamtype: "error" }, { data: (bytes) => void parts.push(Buffer.from(bytes)) });
  return () => Buffer.concat(parts).toString("utf8");
}

function followSize(session: SpdySession, terminal: NonNullable<ExecEnds["terminal"]>, signal: AbortSignal): void {
  const resize = session.open({ streamtype: "resize" });
  const tell = (): void => {
    const { columns, rows } = terminal.size();
    void resize.write(Buffer.from(JSON.stringify({ Width: columns, Height: rows })));
  };
  tell();
  terminal.onResize(tell, { signal });
}

interface Status {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] };
}

/** The exit code in a final status. Throws `ExecError` when there is none. */
export function exitCode(text: string): number {
  if (text === "") throw new ExecError("Lost", "connection to the container lost before the command ended");
  let status: Status;
  try {
    status = JSON.parse(text) as Status; // reason: every field is looked at with care below
  } catch {
    throw new ExecError("Failed", text);
  }
  if (status.status === "Success") return 0;
  const cause = status.details?.causes?.find(({ reason }) => reason === "ExitCode");
  const code = Number(cause?.message);
  if (status.reason === "NonZeroExitCode" && Number.isSafeInteger(code)) return code;
  throw new ExecError("Failed", status.message ?? text);
}
