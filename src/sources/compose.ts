import { manifestFiles } from "../adapters/host/manifest-files.ts";
import { fetchManifest } from "../adapters/net/http-get.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { watchPath } from "../lib/file-watch.ts";
import { select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import { parseDocuments } from "../lib/yaml.ts";
import { FileSource } from "./file-source.ts";
import type { Snapshot, SourceProblem } from "./snapshot.ts";
import { UrlSource } from "./url-source.ts";

/** The names of the sources of static pods. Each runs even without a path or URL, which may be set at run time. */
export const LOCAL_SOURCES = ["file", "http"];

/** A source without a path or URL wakes only when its settings change; the number is a day in milliseconds. */
const NOTHING_TO_CHECK_MS = 86_400_000;

export interface LocalSourceDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  readonly hasApiServer: boolean;
  readonly journal: {
    event(event: { type: "Warning"; reason: string; message: string; subject: string }): void;
  };
  publish(snapshot: Snapshot): void;
}

/** The sources of static pods: manifest files and a URL. */
export function localSources(deps: LocalSourceDeps): readonly Loop[] {
  const { clock, store, nodeName, hasApiServer } = deps;
  const shared = {
    clock,
    parse: (text: string, { signal }: Abortable) => parseDocuments(text, { clock, signal }),
    publish: (snapshot: Snapshot) => deps.publish(snapshot),
    report: (problem: SourceProblem) => report(deps, problem),
  };
  const file = new FileSource(
    { ...shared, files: manifestFiles, watch: (path, watch) => watchPath(path, { ...watch, clock }) },
    select(store.live("staticPodPath", "fileCheckFrequency"), (o) => ({
      path: o.staticPodPath,
      nodeName,
      hasApiServer,
      checkFrequencyMs: o.staticPodPath === "" ? NOTHING_TO_CHECK_MS : o.fileCheckFrequency,
    })),
  );
  const url = new UrlSource(
    { ...shared, fetchManifest },
    select(store.live("staticPodURL", "staticPodURLHeader", "httpCheckFrequency"), (o) => ({
      url: o.staticPodURL,
      headers: o.staticPodURLHeader,
      nodeName,
      hasApiServer,
      checkFrequencyMs: o.staticPodURL === "" ? NOTHING_TO_CHECK_MS : o.httpCheckFrequency,
    })),
  );
  return [
    { name: "file", run: (signal) => file.run(signal) },
    { name: "http", run: (signal) => url.run(signal) },
  ];
}

/** Logs an invalid manifest, and records an event under the name of its file. */
function report({ log, journal }: LocalSourceDeps, { file, line, message }: SourceProblem): void {
  log.warn("Failed to decode manifest", { file, ...(line === undefined ? {} : { line }), message });
  const subject = line === undefined ? file : `${file}:${line}`;
  journal.event({ type: "Warning", reason: "InvalidManifest", message, subject });
}
