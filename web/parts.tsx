import type { ComponentChildren } from "preact";
import type { PodSummary } from "../src/model/step.ts";
import { ago } from "./format.ts";
import { now, type Tone, toneOf } from "./store.ts";

const MARKS: Readonly<Record<Tone, string>> = { good: "●", busy: "◌", bad: "✕", done: "○" };

/** The state of a pod: a mark, a colour and the word, so that no one has to see the colour. */
export function State({ pod }: { readonly pod: PodSummary }) {
  const tone = toneOf(pod);
  return (
    <span class={`state ${tone}`}>
      <span aria-hidden="true">{MARKS[tone]}</span> {pod.state}
    </span>
  );
}

/** How long ago it was, kept current. */
export function Age({ at }: { readonly at: number | undefined }) {
  if (at === undefined || at === 0) return <>–</>;
  return (
    <time dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString()}>
      {ago(now.value - at)}
    </time>
  );
}

/** The last values as a line. */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const highest = Math.max(...values, 1e7);
  const step = 80 / 39;
  const start = 80 - (values.length - 1) * step;
  const points = values.map(
    (value, index) => `${(start + index * step).toFixed(1)},${(19 - (value / highest) * 17).toFixed(1)}`,
  );
  return (
    <svg class="spark" viewBox="0 0 80 20" role="img" aria-label={label} preserveAspectRatio="none">
      <polyline points={points.join(" ")} />
    </svg>
  );
}

/** A part of a whole as a bar. */
export function Meter({ label, part, whole, words }: MeterProps) {
  const share = whole === 0 ? 0 : Math.min(1, part / whole);
  const tone = share > 0.9 ? "bad" : share > 0.75 ? "busy" : "good";
  return (
    <div class="meter">
      <span class="meter-label">{label}</span>
      <span class="meter-words">{words}</span>
      <div
        class={`bar ${tone}`}
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(share * 100)}
        aria-valuetext={words}
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
    </div>
  );
}

interface MeterProps {
  readonly label: string;
  readonly part: number;
  readonly whole: number;
  readonly words: string;
}

/** A section with its heading. */
export function Section({ title, children, aside }: SectionProps) {
  return (
    <section class="card" aria-label={title}>
      <div class="section-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

interface SectionProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly aside?: ComponentChildren;
}

/** The heading of a view; it gets the focus when the view is opened. */
export function Title({ children }: { readonly children: ComponentChildren }) {
  return (
    <h1 tabIndex={-1} id="title">
      {children}
    </h1>
  );
}

/** A table that scrolls by itself where it is too wide, also by keyboard. */
export function Table({ label, children, kind = "" }: TableProps) {
  return (
    <div class="table" role="region" aria-label={`Table: ${label}`} tabIndex={0}>
      <table class={kind}>{children}</table>
    </div>
  );
}

interface TableProps {
  readonly label: string;
  readonly children: ComponentChildren;
  readonly kind?: string;
}

/** Text with what is searched for marked. */
export function Marked({ text, search }: { readonly text: string; readonly search: string }) {
  if (search === "") return <>{text}</>;
  const parts: ComponentChildren[] = [];
  const [low, wanted] = [text.toLowerCase(), search.toLowerCase()];
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0 && parts.length < 200; at = low.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark>{text.slice(at, at + search.length)}</mark>);
    from = at + search.length;
  }
  return (
    <>
      {parts}
      {text.slice(from)}
    </>
  );
}
