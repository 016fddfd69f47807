import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PodExplanation } from "../../src/model/step.ts";
import { Marked } from "../parts.tsx";
import { href } from "../router.ts";
import { ask } from "../session.ts";
import { linesOf } from "../stream.ts";

/** The newest lines are kept, so many of them. */
const MOST_LINES = 20_000;
const LONGEST_LINE = 4000;
const LINE_HEIGHT = 18;
const MARGIN_LINES = 20;
/** Lines are shown together at this interval in milliseconds, however fast they come. */
const PAINT_MS = 150;

/** Escape sequences of terminals: colours and the like. */
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** The log of a container: followed, searched, or that of its previous instance. */
export function Logs({ uid, pod, container }: LogsProps) {
  const [isPrevious, setPrevious] = useState(false);
  const [timestamps, setTimestamps] = useState(false);
  const [search, setSearch] = useState("");
  const { lines, problem, isLive } = useLog(uid, { container, previous: isPrevious, timestamps });
  const shown = useMemo(() => {
    if (search === "") return lines;
    const wanted = search.toLowerCase();
    return lines.filter((line) => line.toLowerCase().includes(wanted));
  }, [lines, search]);
  return (
    <>
      <div class="tools">
        <label>
          Container{" "}
          <select
            value={container}
            onChange={(event) => {
              location.hash = href("pods", uid, "logs", event.currentTarget.value);
            }}
          >
            {pod.containers.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label>
          Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={isPrevious} onChange={(event) => setPrevious(event.currentTarget.checked)} />{" "}
          previous instance
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={timestamps}
            onChange={(event) => setTimestamps(event.currentTarget.checked)}
          />{" "}
          timestamps
        </label>
        <span class="muted" role="status">
          {search === "" ? `${lines.length} lines` : `${shown.length} of ${lines.length} lines`}
          {isLive ? ", following" : ""}
        </span>
      </div>
      {problem !== undefined && <p role="alert">{problem}</p>}
      <LogLines lines={shown} search={search} label={`Log of ${container}`} />
    </>
  );
}

interface LogsProps {
  readonly uid: string;
  readonly pod: PodExplanation;
  readonly container: string;
}

interface LogState {
  readonly lines: readonly string[];
  readonly problem?: string | undefined;
  readonly isLive: boolean;
}

function useLog(uid: string, { container, previous, timestamps }: LogChoice): LogState {
  const [state, setState] = useState<LogState>({ lines: [], isLive: false });
  useEffect(() => {
    const own = new AbortController();
    let lines: string[] = [];
    let timer: number | undefined;
    const show = (more: Partial<LogState>): void => {
      timer = undefined;
      if (!own.signal.aborted) setState((before) => ({ ...before, lines: [...lines], ...more }));
    };
    const read = async (): Promise<void> => {
      const query = new URLSearchParams({ follow: String(!previous), previous: String(previous) });
      if (timestamps) query.set("timestamps", "true");
      const path = `logs/${encodeURIComponent(uid)}/${encodeURIComponent(container)}?${query}`;
      const response = await ask(path, { signal: own.signal });
      show({ problem: undefined, isLive: !previous });
      for await (const line of linesOf(response)) {
        lines.push(line.replaceAll(ESCAPES, "").slice(0, LONGEST_LINE));
        if (lines.length > MOST_LINES * 1.2) lines = lines.slice(-MOST_LINES);
        timer ??= window.setTimeout(() => show({}), PAINT_MS);
      }
      window.clearTimeout(timer);
      show({ isLive: false });
    };
    setState({ lines: [], isLive: false });
    read().catch((error: unknown) => {
      if (!own.signal.aborted)
        setState({ lines, isLive: false, problem: error instanceof Error ? error.message : "failed" });
    });
    return () => {
      own.abort();
      window.clearTimeout(timer);
    };
  }, [uid, container, previous, timestamps]);
  return state;
}

interface LogChoice {
  readonly container: string;
  readonly previous: boolean;
  readonly timestamps: boolean;
}

/** Only the lines that can be seen are in the document; it stays at the end while it is there. */
function LogLines({ lines, search, label }: LogLinesProps) {
  const box = useRef<HTMLDivElement>(null);
  const [from, setFrom] = useState(0);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const { current } = box;
    if (current !== null && isAtEnd.current) current.scrollTop = current.scrollHeight;
  }, [lines]);
  const onScroll = (): void => {
    const { current } = box;
    if (current === null) return;
    isAtEnd.current = current.scrollHeight - current.scrollTop - current.clientHeight < 2 * LINE_HEIGHT;
    setFrom(Math.max(0, Math.floor(current.scrollTop / LINE_HEIGHT) - MARGIN_LINES));
  };
  const start = Math.min(from, Math.max(0, lines.length - 1));
  const visible = lines.slice(start, start + 60 + 2 * MARGIN_LINES);
  return (
    <div ref={box} class="log card" role="log" aria-label={label} aria-live="off" tabIndex={0} onScroll={onScroll}>
      <div style={{ height: `${lines.length * LINE_HEIGHT}px` }}>
        <div class="log-lines" style={{ transform: `translateY(${start * LINE_HEIGHT}px)` }}>
          {visible.map((line, index) => (
            <div key={start + index} class="log-line">
              <Marked text={line} search={search} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

interface LogLinesProps {
  readonly lines: readonly string[];
  readonly search: string;
  readonly label: string;
}
