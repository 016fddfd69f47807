/** Called when the connection of events is made or lost, and with the delay of each event. */
export type EventsListener = (what: "connected" | "lost" | { readonly lateMs: number }) => void;
