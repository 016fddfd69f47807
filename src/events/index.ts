export type { EventFacts, EventSubject } from "./correlate.ts";
export { type RecordJournalDeps, recordJournal } from "./record-journal.ts";
export { EventRecorder } from "./recorder.ts";
