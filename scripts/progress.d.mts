/** Types of progress.mjs for the test runner, which is TypeScript. */
export interface Progress {
  update(text: string): void;
  done(note?: string): void;
  skipped(note: string): void;
  failed(note?: string): void;
}
export function progress(title: string): Progress;
export function tail(output: string, limit?: number): string;
export function say(line: string): void;
export function seconds(ms: number): string;
export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string;
