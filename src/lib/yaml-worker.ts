import { parentPort, workerData } from "node:worker_threads";
import { type ParseWishes, parseText } from "./yaml-parse.ts";

// The whole program of the thread that parses large texts; its parent ends it.
// `workerData` is what `lib/yaml.ts` gives: the text and what is wanted of it.
const { text, wishes } = workerData as { text: string; wishes: ParseWishes };
parentPort?.postMessage(parseText(text, wishes));
