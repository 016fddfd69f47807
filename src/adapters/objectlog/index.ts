export type { LogContent } from "./file-log.ts";
export { hostLogFiles, type LogFile, type LogFiles } from "./files.ts";
export { MemoryLog } from "./memory-log.ts";
export { type OpenLogDeps, type OpenLogOptions, openObjectLog } from "./open-log.ts";
export { type LoadedObjects, LogError, type LogErrorCode, type LogWrite, type ObjectLog } from "./port.ts";
