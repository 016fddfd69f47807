import { useEffect, useState } from "preact/hooks";
import { askJson } from "./session.ts";

/** An answer of the agent, asked for again at an interval while the page is visible; nothing without a path. */
export function useAnswer<T>(
  path: string | undefined,
  everyMs?: number,
): { readonly answer: T | undefined; readonly problem: string | undefined } {
  const [answer, setAnswer] = useState<T>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    if (path === undefined) return undefined;
    let isOver = false;
    const read = (): void => {
      if (document.hidden) return;
      askJson<T>(path).then(
        (value) => {
          if (isOver) return;
          setAnswer(value);
          setProblem(undefined);
        },
        (error: unknown) => {
          if (!isOver) setProblem(error instanceof Error ? error.message : String(error));
        },
      );
    };
    read();
    const timer = everyMs === undefined ? undefined : window.setInterval(read, everyMs);
    return () => {
      isOver = true;
      window.clearInterval(timer);
    };
  }, [path, everyMs]);
  return { answer, problem };
}
