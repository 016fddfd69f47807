export type { EventFacts, EventSubject } from "./correlate.ts";
export { EventRecorder } from "./recorder.ts";
