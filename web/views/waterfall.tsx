import type { PodStep } from "../../src/model/step.ts";
import { ago } from "../format.ts";
import { now } from "../store.ts";
import { progressWords } from "../words.ts";

const SHOWN = 40;

/** `running` and `finished` have no end of their own, so they do not stretch the picture. */
function isOpen({ step }: PodStep): boolean {
  return step === "running" || step === "finished";
}

/** The steps of a pod below each other, each with a bar that shows when it was. */
export function Waterfall({ steps }: { readonly steps: readonly PodStep[] }) {
  const shown = steps.slice(-SHOWN);
  if (shown.length === 0) return <p class="muted">No steps yet.</p>;
  const begin = Math.min(...shown.map((step) => step.since));
  const end = Math.max(...shown.map((step) => (isOpen(step) ? step.since : (step.until ?? now.value))));
  const whole = Math.max(1, end - begin);
  return (
    <ol class="waterfall">
      {shown.map((step) => {
        const from = Math.min(1, (step.since - begin) / whole);
        const to = isOpen(step) ? 1 : Math.min(1, ((step.until ?? now.value) - begin) / whole);
        const tone = step.outcome === "failed" ? "bad" : step.outcome === "aborted" ? "busy" : "good";
        const time = ago((step.until ?? now.value) - step.since);
        return (
          <li key={`${step.step}${step.container}${step.since}`}>
            <span class="step">
              {step.step} {step.container}
            </span>
            <span class="track" aria-hidden="true">
              <i class={tone} style={{ left: `${from * 99}%`, width: `max(4px, ${(to - from) * 99}%)` }} />
            </span>
            <span class="time">
              {time}
              {step.until === undefined && " …"}
              {step.outcome !== undefined && step.outcome !== "ok" && <strong class={tone}> {step.outcome}</strong>}
            </span>
            <span class="muted small detail">
              {step.detail} {step.progress !== undefined && progressWords(step.progress)}
            </span>
          </li>
        );
      })}
    </ol>
  );
}
