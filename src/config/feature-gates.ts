import { didYouMean } from "./rules.ts";
import { GATE_NEEDS, GATES, GATES_WITHOUT_EFFECT, type Stage } from "./table/gates.ts";

/** What is known about a gate. */
export interface Gate {
  readonly stage: Stage;
  readonly isOn: boolean;
  readonly isLocked: boolean;
  /** False for a gate of the kubelet that this agent does not act on. */
  readonly isHonoured: boolean;
}

/** The outcome of a map of gates: problems and warnings by name. */
export interface GateVerdict {
  readonly problems: readonly { readonly gate: string; readonly message: string }[];
  readonly warnings: readonly { readonly gate: string; readonly message: string }[];
}

/** The gates that set all others of their stage. */
const GROUPS: Readonly<Record<string, Stage>> = { AllAlpha: "Alpha", AllBeta: "Beta" };

let table: ReadonlyMap<string, Gate> | undefined;

/** Every gate by name. Made at first use. */
export function knownGates(): ReadonlyMap<string, Gate> {
  const ignored = new Set(GATES_WITHOUT_EFFECT.trim().split(/\s+/));
  table ??= new Map(
    GATES.flatMap(({ stage, isOn, names }) =>
      names
        .trim()
        .split(/\s+/)
        .map((text) => {
          const name = text.replace("!", "");
          return [name, { stage, isOn, isLocked: text.endsWith("!"), isHonoured: !ignored.has(name) }] as const;
        }),
    ),
  );
  return table;
}

/** Whether a gate is on under a map of settings; unknown gates are off. */
export function isGateOn(name: string, given: Readonly<Record<string, boolean>>): boolean {
  const gate = knownGates().get(name);
  if (gate === undefined) return false;
  if (gate.isLocked) return gate.isOn;
  const own = Object.hasOwn(given, name) ? given[name] : undefined;
  const group = gate.stage === "Alpha" ? given["AllAlpha"] : gate.stage === "Beta" ? given["AllBeta"] : undefined;
  return own ?? group ?? gate.isOn;
}

/** A gate of an older release: what it became, from the table of older kubelets. */
export type OldGate = (
  name: string,
  value: boolean,
) => { readonly isFine: boolean; readonly message: string } | undefined;

/** Judges a map of gates. Gates of other components are known too, since tools give one map to all. */
export function judgeGates(given: Readonly<Record<string, boolean>>, oldGate: OldGate = () => undefined): GateVerdict {
  const known = knownGates();
  const problems: { gate: string; message: string }[] = [];
  const warnings: { gate: string; message: string }[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (Object.hasOwn(GROUPS, name)) continue;
    const gate = known.get(name);
    if (gate === undefined) {
      const old = oldGate(name, value);
      if (old !== undefined) (old.isFine ? warnings : problems).push({ gate: name, message: old.message });
      else problems.push({ gate: name, message: `is no feature gate${didYouMean(name, known.keys())}` });
      continue;
    }
    if (gate.isLocked && value !== gate.isOn) {
      problems.push({ gate: name, message: `is locked to ${gate.isOn} and cannot be ${value}` });
      continue;
    }
    if (gate.stage === "GA")
      warnings.push({ gate: name, message: "is generally available and will go away as a switch" });
    if (!gate.isHonoured && value !== gate.isOn) warnings.push({ gate: name, message: "has no effect on this agent" });
    if (gate.stage === "Deprecated") warnings.push({ gate: name, message: "is deprecated and will be removed" });
    if (!value) continue;
    const missing = (GATE_NEEDS[name] ?? []).filter((needed) => !isGateOn(needed, given));
    if (missing.length > 0) problems.push({ gate: name, message: `needs ${missing.join(" and ")}, which is off` });
  }
  return { problems, warnings };
}
