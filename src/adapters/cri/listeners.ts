/** One call that ended: its full path, how long it took, and what went wrong. */
export interface EndedCall {
  readonly path: string;
  readonly tookMs: number;
  readonly error?: unknown;
  /** The runtime handler of a sandbox that was to be made. */
  readonly handler?: string;
}

/** Called when the connection of events is made or lost, and with the delay of each event. */
export type EventsListener = (what: "connected" | "lost" | { readonly lateMs: number }) => void;
