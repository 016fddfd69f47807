/** What every asynchronous call takes. */
export interface Abortable {
  readonly signal: AbortSignal;
}
