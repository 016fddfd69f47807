import { useEffect, useRef, useState } from "preact/hooks";
import type { PodExplanation } from "../../src/model/step.ts";
import { href } from "../router.ts";
import { ask, openSocket, RefusedError } from "../session.ts";
import { palette } from "../theme.ts";

/** Channels of the protocol of Kubernetes. */
const STDIN = 0;
const ERROR = 3;
const RESIZE = 4;
const PROTOCOL = "v4.channel.k8s.io";

/** A terminal in a container. */
export function Shell({ uid, pod, container }: ShellProps) {
  const [command, setCommand] = useState("sh");
  const [session, setSession] = useState<{ readonly command: string; readonly id: number } | undefined>(undefined);
  const [ended, setEnded] = useState("");
  const running = pod.containers.filter(({ state }) => state === "running");
  return (
    <>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          setEnded("");
          setSession((before) => ({ command, id: (before?.id ?? 0) + 1 }));
        }}
      >
        <label>
          Container{" "}
          <select
            value={container}
            onChange={(event) => {
              location.hash = href("pods", uid, "terminal", event.currentTarget.value);
            }}
          >
            {running.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Command{" "}
          <input value={command} spellcheck={false} onInput={(event) => setCommand(event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={running.length === 0}>
          {session === undefined ? "Open terminal" : "Open again"}
        </button>
        <span class="muted" role="status">
          {ended}
        </span>
      </form>
      {running.length === 0 && <p class="muted">No container is running.</p>}
      {session !== undefined && (
        <TerminalBox
          key={`${session.id}/${container}`}
          path={`exec/${encodeURIComponent(uid)}/${encodeURIComponent(container)}`}
          command={session.command}
          onEnd={setEnded}
        />
      )}
    </>
  );
}

interface ShellProps {
  readonly uid: string;
  readonly pod: PodExplanation;
  readonly container: string;
}

function TerminalBox({ path, command, onEnd }: TerminalProps) {
  const box = useRef<HTMLDivElement>(null);
  const colors = palette.value;
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    let close = (): void => undefined;
    let isOver = false;
    // The terminal is most of the page's code: loaded when it is opened.
    import("../terminal.ts")
      .then(({ openTerminal }) => {
        if (isOver) return;
        const query = command
          .split(/\s+/)
          .filter((word) => word !== "")
          .map((word) => `command=${encodeURIComponent(word)}`);
        close = openTerminal(current, connection(`${path}?${query.join("&")}`, onEnd));
      })
      .catch((error: unknown) => onEnd(String(error)));
    return () => {
      isOver = true;
      close();
    };
  }, [path, command]);
  return <div ref={box} class="shell card" data-colors={colors} />;
}

interface TerminalProps {
  readonly path: string;
  readonly command: string;
  readonly onEnd: (words: string) => void;
}

/** What a terminal is connected to. */
export interface TerminalConnection {
  open(hooks: { opened(): void; output(bytes: Uint8Array): void; closed(): void }): void;
  input(text: string): void;
  resize(columns: number, rows: number): void;
  close(): void;
}

function connection(path: string, onEnd: (words: string) => void): TerminalConnection {
  const socket = openSocket(path, PROTOCOL);
  socket.binaryType = "arraybuffer";
  const encoder = new TextEncoder();
  const send = (channel: number, text: string): void => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const bytes = encoder.encode(text);
    const frame = new Uint8Array(bytes.length + 1);
    frame[0] = channel;
    frame.set(bytes, 1);
    socket.send(frame);
  };
  return {
    open({ opened, output, closed }) {
      let words = "The connection was closed.";
      let isOpened = false;
      socket.addEventListener("open", () => {
        isOpened = true;
        opened();
      });
      socket.addEventListener("message", ({ data }) => {
        const bytes = new Uint8Array(data as ArrayBuffer); // reason: of the binary type that is set above
        if (bytes[0] === ERROR) words = outcomeOf(new TextDecoder().decode(bytes.subarray(1)));
        else output(bytes.subarray(1));
      });
      socket.addEventListener("close", () => {
        closed();
        onEnd(words);
        if (!isOpened) void refusalOf(path).then((why) => why === undefined || onEnd(why));
      });
    },
    input: (text) => send(STDIN, text),
    resize: (columns, rows) => send(RESIZE, JSON.stringify({ Width: columns, Height: rows })),
    close: () => socket.close(),
  };
}

function outcomeOf(text: string): string {
  try {
    const { status, message } = JSON.parse(text) as { status?: string; message?: string };
    return status === "Success" ? "The command ended." : (message ?? "The command failed.");
  } catch {
    return "The command ended.";
  }
}

/**
 * Why a terminal was refused: a browser does not tell a script about a WebSocket, but a plain request is refused for the same
 * reason. Undefined if only the upgrade was missing.
 */
async function refusalOf(path: string): Promise<string | undefined> {
  try {
    await ask(path);
    return undefined;
  } catch (error) {
    const isPlain = error instanceof RefusedError && error.status === UPGRADE_REQUIRED;
    return isPlain || !(error instanceof Error) ? undefined : error.message;
  }
}

const UPGRADE_REQUIRED = 426;
