import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import type { Abortable } from "../../lib/abort.ts";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { EmbeddedError } from "./embedded-error.ts";
import type { EmbeddedDeps } from "./host.ts";
import type { EmbeddedOptions, Layout } from "./layout.ts";
import { enableForwarding, type ForwardingNote, type PodNetwork } from "./network.ts";
import { type SnapshotterName, usableSnapshotter } from "./snapshotter.ts";
import { chooseSubnet, formatCidr, parseCidr, parseRoutes } from "./subnet.ts";

/** What was chosen at the first start and must stay so until `tearDown`. The file also marks the directory as ours. */
export interface StateSettings extends PodNetwork {
  readonly kind: "kubelet-ts-state";
  readonly snapshotter: SnapshotterName;
  readonly forwarding: ForwardingNote;
  /** Directories outside the state directory that were not there before: removed at the end, if empty. */
  readonly newDirs: readonly string[];
}

/** Directories that containerd, its shims, CNI or the log links may make outside; inner ones first. */
const OUTSIDE_DIRS = [
  "/run/containerd/s",
  "/run/containerd",
  "/var/lib/cni/results",
  "/var/lib/cni",
  "/var/log/containers",
];

/** What the agent may have put there before us: its lock, its socket, its log, its directories. */
const OWN_NAMES = /^\.|\.(lock|sock|pid|log|log\.\d+)$|^(lock|run|log|logs|pods|kubelet)$/;

/** The settings of a state directory, or undefined when it is none of ours. */
export function readSettings(layout: Layout): StateSettings | undefined {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(layout.settingsFile, "utf8"));
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("kind" in value) || value.kind !== "kubelet-ts-state") {
    return undefined;
  }
  // Only we write this file, as a whole; the mark identifies it.
  return value as StateSettings;
}

/** Takes a directory as ours at the first start; a later start finds what was chosen then. */
export async function ensureSettings(
  deps: EmbeddedDeps,
  { layout, options }: { layout: Layout; options: EmbeddedOptions },
  { signal }: Abortable,
): Promise<StateSettings> {
  const known = readSettings(layout);
  if (known !== undefined) {
    warnOfChange(deps, known, options);
    // A reboot turns it off; what is remembered stays the first answer.
    enableForwarding();
    return known;
  }
  refuseForeign(layout);
  mkdirSync(layout.runDir, { recursive: true, mode: 0o711 });
  const settings: StateSettings = {
    kind: "kubelet-ts-state",
    bridge: layout.bridge,
    podCidr: chosenCidr(layout, options),
    snapshotter: await usableSnapshotter(deps.host, layout, { signal }),
    newDirs: OUTSIDE_DIRS.filter((path) => !existsSync(path)),
    forwarding: enableForwarding(),
  };
  await writeAtomic(layout.settingsFile, `${JSON.stringify(settings, undefined, 2)}\n`);
  return settings;
}

function chosenCidr(layout: Layout, options: EmbeddedOptions): string {
  if (options.podCidr === undefined) {
    const routes = parseRoutes(readFileSync("/proc/net/route", "utf8"));
    return formatCidr(chooseSubnet(routes, Number.parseInt(layout.hash.slice(0, 2), 16)));
  }
  const given = parseCidr(options.podCidr);
  if (given === undefined || given.prefix > 29) {
    throw new EmbeddedError(
      "NoSubnet",
      `podCIDR: "${options.podCidr}" must be an IPv4 subnet with room for pods, like 10.88.0.0/24`,
    );
  }
  return formatCidr(given);
}

function warnOfChange({ log }: EmbeddedDeps, known: StateSettings, options: EmbeddedOptions): void {
  const given = options.podCidr === undefined ? undefined : parseCidr(options.podCidr);
  if (given !== undefined && formatCidr(given) !== known.podCidr) {
    log.warn("Kept the pod subnet of the state directory, run kubelet down to change it", { podCidr: known.podCidr });
  }
}

/** A directory that holds somebody's files is not taken: `tearDown` removes it whole. */
function refuseForeign({ stateDir }: Layout): void {
  if (!existsSync(stateDir)) return;
  const foreign = readdirSync(stateDir).filter((name) => !OWN_NAMES.test(name));
  if (foreign.length === 0 && stateDir !== "/") return;
  throw new EmbeddedError(
    "ForeignDirectory",
    `${stateDir} is not a state directory of kubelet-ts and not empty (${foreign.slice(0, 3).join(", ")})`,
  );
}
