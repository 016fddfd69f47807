import { type Cell, table } from "../lib/table.ts";
import type { PodStep } from "../model/step.ts";
import { detailWords, stepTime } from "./words.ts";

const BAR_WIDTH = 24;

/**
 * Steps under each other with their times, and a bar that shows when each was. `running` and `finished` have no end of
 * their own, so they do not stretch the picture.
 */
export function waterfall(steps: readonly PodStep[], how: { now: number; color: boolean; columns: number }): string {
  if (steps.length === 0) return "";
  const isOpen = (step: PodStep): boolean => step.step === "running" || step.step === "finished";
  const begin = Math.min(...steps.map((step) => step.since));
  const end = Math.max(...steps.map((step) => (isOpen(step) ? step.since : (step.until ?? how.now))));
  const perColumn = Math.max(1, end - begin) / BAR_WIDTH;
  const rows = steps.map((step): Cell[] => {
    const from = Math.min(BAR_WIDTH - 1, Math.floor((step.since - begin) / perColumn));
    const to = isOpen(step) ? BAR_WIDTH : Math.ceil(((step.until ?? how.now) - begin) / perColumn);
    const bar = " ".repeat(from) + "━".repeat(Math.max(1, Math.min(BAR_WIDTH, to) - from));
    const outcome = step.outcome ?? "";
    return [
      `  ${step.step}${step.container === undefined ? "" : ` ${step.container}`}`,
      { text: bar.padEnd(BAR_WIDTH), style: outcome === "failed" ? "red" : outcome === "aborted" ? "yellow" : "cyan" },
      stepTime(step, how.now) + (step.until === undefined ? " …" : ""),
      outcome === "ok" ? "" : outcome,
      { text: detailWords(step), style: "dim" },
    ];
  });
  return table(rows, { color: how.color, gap: 2 });
}
