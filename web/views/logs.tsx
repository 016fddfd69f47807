import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PodExplanation } from "../../src/model/step.ts";
import { count } from "../format.ts";
import { linesOf } from "../lines.ts";
import { Marked } from "../parts.tsx";
import { href } from "../router.ts";
import { ask } from "../session.ts";

/** The newest lines are kept, so many of them, and so many characters. */
const MOST_LINES = 20_000;
const MOST_CHARACTERS = 8_000_000;
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
  const { lines, problem, isLive, isCut } = useLog(uid, { container, previous: isPrevious, timestamps });
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
          {search === "" ? count(lines.length, "line") : `${shown.length} of ${count(lines.length, "line")}`}
          {isCut && ", the newest"}
          {isLive && ", following"}
        </span>
      </div>
      {problem !== undefined && <p role="alert">{problem}</p>}
      {problem === undefined && <LogLines lines={shown} search={search} label={`Log of ${container}`} />}
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
  /** Older lines were dropped here. */
  readonly isCut: boolean;
}

const NOTHING: LogState = { lines: [], isLive: false, isCut: false };

/** The newest lines within both limits. */
function newest(lines: readonly string[]): string[] {
  let from = Math.max(0, lines.length - MOST_LINES);
  let characters = lines.slice(from).reduce((sum, { length }) => sum + length, 0);
  for (; characters > MOST_CHARACTERS; from++) characters -= lines[from]?.length ?? 0;
  return lines.slice(from);
}

function useLog(uid: string, { container, previous, timestamps }: LogChoice): LogState {
  const [state, setState] = useState<LogState>(NOTHING);
  useEffect(() => {
    const own = new AbortController();
    let lines: string[] = [];
    let characters = 0;
    let isCut = false;
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
      for await (const line of linesOf(response, LONGEST_LINE)) {
        const text = line.replaceAll(ESCAPES, "");
        lines.push(text);
        characters += text.length;
        if (lines.length > MOST_LINES * 1.2 || characters > MOST_CHARACTERS * 1.2) {
          lines = newest(lines);
          characters = lines.reduce((sum, { length }) => sum + length, 0);
          isCut = true;
        }
        timer ??= window.setTimeout(() => show({ isCut }), PAINT_MS);
      }
      window.clearTimeout(timer);
      show({ isLive: false, isCut });
    };
    setState(NOTHING);
    read().catch((error: unknown) => {
      if (!own.signal.aborted)
        setState({ lines, isCut, isLive: false, problem: error instanceof Error ? error.message : "failed" });
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
