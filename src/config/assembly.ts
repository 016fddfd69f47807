import { posix } from "node:path";
import { linePath } from "../lib/line-path.ts";
import { type AgentOptions, type OptionName, optionNames, optionOf } from "./agent-options.ts";
import type { ConfigProblem } from "./config-problem.ts";
import {
  type ConfigDocument,
  type DocumentEntry,
  decodeEntry,
  decodeOldEntry,
  lineOf,
  sortDocument,
  unknownField,
} from "./document.ts";
import type { OldKubelets, OldOutcome } from "./old.ts";
import { isGiven, type Origin, type Provenance } from "./origin.ts";

interface Setting extends Provenance {
  readonly value: unknown;
}

type Map_ = Readonly<Record<string, unknown>>;

/** The hard thresholds of a file that gives none. */
export const DEFAULT_EVICTION: Readonly<Record<string, string>> = {
  "memory.available": "100Mi",
  "nodefs.available": "10%",
  "nodefs.inodesFree": "5%",
  "imagefs.available": "15%",
  "imagefs.inodesFree": "5%",
};

/** Settings while they are put together, layer over layer; each keeps where it came from. */
export class Assembly {
  readonly problems: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  private readonly settings = new Map<OptionName, Setting>();

  /** Begins with the defaults: those of files, or those that hold without one. */
  constructor(base: "file" | "no file") {
    for (const name of optionNames) {
      const entry = optionOf(name);
      const isLegacy = base === "no file" && entry.legacyDefault !== undefined;
      this.settings.set(name, {
        value: isLegacy ? entry.legacyDefault : entry.default,
        origin: { from: isLegacy ? "legacy" : "default" },
      });
    }
  }

  /** The `--config` file, or a dynamic one in its place. */
  file(document: ConfigDocument, role: "file" | "dynamic", old?: { language: OldKubelets; isSpoken: boolean }): void {
    const isOld = old?.isSpoken === true;
    for (const [option, value] of isOld ? old.language.defaults : []) {
      this.settings.set(option, { value, origin: { from: "legacy" } });
    }
    const { entries, unknown, problems } = sortDocument(document);
    this.problems.push(...problems);
    for (const entry of entries) {
      if (entry.isNull) continue;
      const decoded = (isOld ? decodeOldEntry : decodeEntry)(document, withoutNulls(entry), this);
      if (decoded === undefined) continue;
      const { isPath, nullable, kind } = optionOf(entry.option);
      if (nullable !== true && isZero(decoded)) continue;
      const isRelative = isPath === true && typeof decoded === "string" && decoded !== "" && !decoded.startsWith("/");
      const value = isRelative ? posix.resolve(document.directory, decoded) : decoded;
      const origin: Origin = { from: role, file: document.file, line: lineOf(document, entry.path) };
      this.settings.set(entry.option, { value, origin, ...partsOf(kind.merges, value, { document, entry, role }) });
    }
    for (const key of unknown) {
      const outcome = key.field.includes(".") ? undefined : old?.language.field(key.field, key.raw);
      const origin: Origin = { from: role, file: document.file, line: key.line };
      if (outcome !== undefined && isOld) this.old(outcome, origin, key.field);
      else this.warnings.push(unknownField(document, key, outcome));
    }
    this.deriveFromFile();
  }

  /** A drop-in: a JSON merge patch over what is there. */
  dropIn(document: ConfigDocument): void {
    const { entries, unknown, problems } = sortDocument(document);
    this.problems.push(...problems);
    for (const key of unknown) this.warnings.push(unknownField(document, key));
    for (const entry of entries) {
      const { kind, nullable } = optionOf(entry.option);
      if (entry.isNull) {
        this.unset(entry.option);
        continue;
      }
      const decoded = decodeEntry(document, withoutNulls(entry), this);
      if (decoded === undefined) continue;
      if (kind.merges === true) {
        this.merge({ document, entry, decoded: decoded as Map_ }); // reason: `merges` kinds are maps
      } else if (nullable !== true && isZero(decoded)) this.unset(entry.option);
      else {
        const line = lineOf(document, entry.path);
        this.settings.set(entry.option, { value: decoded, origin: { from: "drop-in", file: document.file, line } });
      }
    }
  }

  /** Flags go over everything; only feature gates are united with those of the files. */
  flags(given: Iterable<readonly [OptionName, unknown]>): void {
    for (const [name, value] of given) {
      const { flag = name } = optionOf(name);
      const origin: Origin = { from: "flag", flag };
      const isIgnored = (name === "address" || name === "healthzBindAddress") && value === "";
      if (isIgnored) continue;
      if (name === "featureGates") {
        const before = this.setting(name);
        const gates = value as Map_; // reason: the kind of featureGates is a map
        const parts = new Map(before.parts);
        for (const gate of Object.keys(gates)) parts.set(gate, origin);
        this.settings.set(name, { value: { ...(before.value as Map_), ...gates }, origin, parts });
      } else this.settings.set(name, { value, origin });
    }
  }

  /** An old setting; what is given in today's words goes before it. */
  old(outcome: OldOutcome, origin: Origin, said: string): void {
    const file = "file" in origin ? { file: origin.file, line: origin.line } : {};
    if (outcome.problem !== undefined) {
      this.problems.push({ ...file, field: said, value: "", message: outcome.problem });
      return;
    }
    if (outcome.warning !== undefined) {
      this.warnings.push({ ...file, field: said, value: "", message: outcome.warning });
    }
    for (const { option, value, fills } of outcome.sets ?? []) {
      const before = this.setting(option);
      if (fills === true) {
        const missing = value as Map_; // reason: `fills` is for maps
        this.settings.set(option, {
          value: { ...missing, ...(before.value as Map_) },
          origin: isGiven(before.origin) ? before.origin : origin,
          parts: new Map([...Object.keys(missing).map((key) => [key, origin] as const), ...(before.parts ?? [])]),
        });
      } else if (!isGiven(before.origin) || before.origin.from !== origin.from) {
        this.settings.set(option, { value, origin });
      }
    }
  }

  /** A default that follows from other settings. */
  derive(option: OptionName, value: unknown, of: string): void {
    this.settings.set(option, { value, origin: { from: "derived", of } });
  }

  /** The same value in its proper form; it still comes from where it came. */
  normalise(option: OptionName, value: unknown): void {
    this.settings.set(option, { ...this.setting(option), value });
  }

  setting(option: OptionName): Setting {
    const found = this.settings.get(option);
    if (found === undefined) throw new Error(`no option ${option}`);
    return found;
  }

  isGiven(option: OptionName): boolean {
    return isGiven(this.setting(option).origin);
  }

  values(): AgentOptions {
    const all = Object.fromEntries(optionNames.map((name) => [name, this.setting(name).value]));
    return all as unknown as AgentOptions; // reason: every option, each made by its own kind
  }

  provenance(): ReadonlyMap<OptionName, Provenance> {
    return this.settings;
  }

  private merge({ document, entry, decoded }: { document: ConfigDocument; entry: DocumentEntry; decoded: Map_ }): void {
    const before = this.setting(entry.option);
    const value: Record<string, unknown> = { ...(before.value as Map_ | undefined) };
    const parts = new Map(before.parts);
    for (const [key, raw] of Object.entries(entry.raw as Map_)) {
      if (raw === null) {
        delete value[key];
        parts.delete(key);
      } else {
        Object.defineProperty(value, key, {
          value: decoded[key],
          enumerable: true,
          writable: true,
          configurable: true,
        });
        const line = lineOf(document, linePath(entry.path, key));
        parts.set(key, { from: "drop-in", file: document.file, line });
      }
    }
    const line = lineOf(document, entry.path);
    this.settings.set(entry.option, { value, origin: { from: "drop-in", file: document.file, line }, parts });
  }

  /** Null in a drop-in: the default of files comes back. */
  private unset(option: OptionName): void {
    this.settings.set(option, { value: optionOf(option).default, origin: { from: "default" } });
  }

  /** Defaults derived from the values of the file itself; a drop-in or a flag does not change them. */
  private deriveFromFile(): void {
    const update = this.setting("nodeStatusUpdateFrequency");
    if (isGiven(update.origin) && !this.isGiven("nodeStatusReportFrequency")) {
      this.derive("nodeStatusReportFrequency", update.value, "nodeStatusUpdateFrequency");
    }
    const parallel = this.setting("maxParallelImagePulls").value;
    if (!this.isGiven("serializeImagePulls") && typeof parallel === "number" && parallel >= 2) {
      this.derive("serializeImagePulls", false, "maxParallelImagePulls");
    }
    const eviction = this.setting("evictionHard");
    const isWhole = isGiven(eviction.origin) && this.setting("mergeDefaultEvictionSettings").value !== true;
    if (isWhole) return;
    const given = eviction.value as Map_; // reason: a map by its kind
    const parts = new Map<string, Origin>(Object.keys(DEFAULT_EVICTION).map((key) => [key, { from: "default" }]));
    for (const [key, origin] of eviction.parts ?? []) parts.set(key, origin);
    this.settings.set("evictionHard", { ...eviction, value: { ...DEFAULT_EVICTION, ...given }, parts });
  }
}

/** In a map, null means that the key is not there. */
function withoutNulls(entry: DocumentEntry): DocumentEntry {
  const { raw } = entry;
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) return entry;
  return { ...entry, raw: Object.fromEntries(Object.entries(raw).filter(([, value]) => value !== null)) };
}

function partsOf(
  merges: boolean | undefined,
  value: unknown,
  { document, entry, role }: { document: ConfigDocument; entry: DocumentEntry; role: "file" | "dynamic" },
): { parts?: ReadonlyMap<string, Origin> } {
  if (merges !== true || typeof value !== "object" || value === null) return {};
  const parts = Object.keys(value).map((key): [string, Origin] => {
    return [key, { from: role, file: document.file, line: lineOf(document, linePath(entry.path, key)) }];
  });
  return { parts: new Map(parts) };
}

/** The zero values of Go, which in a file mean the default. */
function isZero(value: unknown): boolean {
  return value === 0 || value === "" || value === false;
}
