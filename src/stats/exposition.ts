import { escapedLabel } from "../lib/metrics-text.ts";

/** A metric of the Prometheus text format, whatever its labels. */
export interface MetricFamily {
  readonly name: string;
  readonly type: "counter" | "gauge";
  readonly help: string;
}

/** The lines before the series of a family. */
export function familyHead({ name, type, help }: MetricFamily): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}

/** Labels without their braces, in the order given. */
export function labelText(labels: Readonly<Record<string, string | number>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapedLabel(value)}"`)
    .join(",");
}
