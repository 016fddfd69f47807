export { CriDecoder, type DecodeOptions, type LogStream } from "./cri-decoder.ts";
export type { LogFile, LogFiles } from "./files.ts";
export { logReader } from "./log-reader.ts";
export { type Follow, LogError, type ReadLogRequest, readLog } from "./read-log.ts";
export { rotateLogs } from "./rotation/rotate-logs.ts";
