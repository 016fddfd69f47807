import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Series } from "./store.ts";
import { color, palette } from "./theme.ts";

export interface ChartLine {
  readonly label: string;
  /** The index in the series. */
  readonly index: number;
  readonly color: string;
  readonly fill?: boolean;
}

interface ChartProps {
  readonly title: string;
  /** The value of now, in words: what a screen reader reads. */
  readonly value: string;
  readonly series: Series;
  readonly lines: readonly ChartLine[];
  readonly format: (value: number) => string;
  /** The top of the scale; by default the highest value, and `least` at least. */
  readonly max?: number | undefined;
  readonly least: number;
  /** True for bytes: marks at powers of two. */
  readonly binary?: boolean;
  /** The axis begins here, in seconds, though this series may begin later. */
  readonly since?: number | undefined;
  /** Changes when a sample was added. */
  readonly version: unknown;
}

const HEIGHT = 130;
/** A chart shows this time at least. */
const SHORTEST_SECONDS = 120;
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** A live chart with its title and the value of now. */
export function Chart(props: ChartProps) {
  const { title, value, lines, version } = props;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const colors = palette.value;
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const made = new uPlot(optionsOf(latest, current.clientWidth), dataOf(latest.current), current);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (current.clientWidth > 0) made.setSize({ width: current.clientWidth, height: HEIGHT });
    });
    observer.observe(current);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [colors, lines.map(({ label }) => label).join()]);

  useEffect(() => plot.current?.setData(dataOf(latest.current)), [version]);

  return (
    <figure class="card chart">
      <figcaption>
        <span>{title}</span> <strong>{value}</strong>
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={`${title}: ${value}`} />
      {lines.length > 1 && (
        <ul class="legend" aria-hidden="true">
          {lines.map((line) => (
            <li key={line.label}>
              <i class={`swatch ${line.color}`} /> {line.label}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}

function dataOf({ series, lines }: ChartProps): uPlot.AlignedData {
  return [series.at, ...lines.map(({ index }) => series.values[index] ?? [])] as uPlot.AlignedData; // reason: equal lengths
}

function optionsOf(latest: { readonly current: ChartProps }, width: number): uPlot.Options {
  const { lines } = latest.current;
  const [muted, grid] = [color("muted"), color("grid")];
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    padding: [8, 10, 0, 0],
    scales: {
      y: {
        range: (_plot, _low, high) => [0, latest.current.max ?? Math.max((high ?? 0) * 1.1, latest.current.least)],
      },
      // Of the data itself: uPlot widens the range of a single sample to years.
      x: {
        range: ({ data: [at] }) => {
          const last = at.at(-1) ?? 0;
          return [Math.min(at[0] ?? last, latest.current.since ?? last, last - SHORTEST_SECONDS), last];
        },
      },
    },
    axes: [
      { ...axis, space: 64, size: 22, values: (...[, marks, , , step]) => marks.map(timeLabels(step)) },
      {
        ...axis,
        space: 32,
        gap: 6,
        size: (_plot, labels) => 10 + LETTER_WIDTH * Math.max(...(labels ?? [""]).map((label) => label.length)),
        ...(latest.current.binary === true && { incrs: POWERS }),
        values: (_plot, marks) => marks.map((mark) => latest.current.format(mark)),
      },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const stroke = color(line.color);
        const fill = stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.15)");
        return { label: line.label, stroke, width: 1.75, points: { show: false }, ...(line.fill && { fill }) };
      }),
    ],
  };
}

/** Of a label in its font, in pixels, rounded up. */
const LETTER_WIDTH = 7;

/** Marks of the time axis on a clock of 24 hours; with seconds where they are closer than a minute. */
function timeLabels(step: number): (mark: number) => string {
  const two = (part: number): string => String(part).padStart(2, "0");
  return (mark) => {
    const at = new Date(mark * 1000);
    const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
    return step < 60 ? `${minutes}:${two(at.getSeconds())}` : minutes;
  };
}
