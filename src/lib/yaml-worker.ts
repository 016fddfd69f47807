import { parentPort, workerData } from "node:worker_threads";
import { parseText } from "./yaml-parse.ts";

// The whole program of the thread that parses large texts; its parent ends it.
parentPort?.postMessage(parseText(String(workerData)));
