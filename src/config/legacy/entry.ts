import { messageOf } from "../../lib/errors.ts";
import { type OptionName, optionOf } from "../agent-options.ts";
import type { OldOutcome } from "../old.ts";
import type { OptionKind } from "../option.ts";

/** A setting of an older kubelet: as a flag, as a field, or both. */
export interface OldEntry {
  readonly flag?: string;
  readonly field?: string;
  /** The last release that had the flag, or the field. */
  readonly last: string;
  /** What becomes of it, for the documentation. */
  readonly what: string;
  readonly kind: OptionKind<unknown>;
  /** The rule of the option that it became. */
  validate?(value: unknown): string | undefined;
  outcome(value: unknown): OldOutcome;
}

type Names = Pick<OldEntry, "flag" | "field" | "last">;

/** The option's name of today, for messages: its field, else its flag. */
function today(option: OptionName): string {
  const { field, flag } = optionOf(option);
  return field ?? `--${flag}`;
}

/** It lives on under another name. */
export function moved(option: OptionName, names: Names): OldEntry {
  const { kind, validate } = optionOf(option);
  const warning = `ended with ${names.last}; it is ${today(option)} now, which is set from it`;
  return {
    ...names,
    ...(validate === undefined ? {} : { validate }),
    what: `sets ${today(option)}`,
    kind,
    outcome: (value) => ({ sets: [{ option, value }], warning }),
  };
}

/** It has no effect any more, whatever its value; `why` names the replacement. */
export function gone<T>(kind: OptionKind<T>, names: Names, why: string): OldEntry {
  const warning = `ended with ${names.last} and is ignored: ${why}`;
  const what = `ignored: ${why}`;
  return { ...names, what, kind: kind as OptionKind<unknown>, outcome: () => ({ warning }) }; // reason: its own values
}

/** A harmless value is ignored; one that asked for something that cannot be had any more is refused. */
export function refused<T>(
  kind: OptionKind<T>,
  names: Names,
  { isHarmless, why }: { isHarmless(value: T): boolean; why: string },
): OldEntry {
  return {
    ...names,
    what: `ignored if it has its default value, else refused: ${why}`,
    kind: kind as OptionKind<unknown>, // reason: it only ever sees its own values
    outcome: (value) =>
      isHarmless(value as T) // reason: made by this kind
        ? { warning: `ended with ${names.last} and is ignored: ${why}` }
        : { problem: `ended with ${names.last}: ${why}` },
  };
}

/** It was replaced; `outcome` maps its value. */
export function turned<T>(
  kind: OptionKind<T>,
  names: Names & Pick<OldEntry, "what">,
  outcome: (value: T) => OldOutcome,
): OldEntry {
  return { ...names, kind: kind as OptionKind<unknown>, outcome: (value) => outcome(value as T) }; // reason: as above
}

/** The outcome of a field from its value in an old file. */
export function fieldOutcome(entry: OldEntry, raw: unknown): OldOutcome {
  if (raw === null) return {};
  let problem: string | undefined;
  const decoded = entry.kind.decode(raw, {
    problem: (_path, _value, message) => {
      problem ??= message;
    },
    unknownKey: () => undefined,
  });
  if (problem === undefined && decoded !== undefined) return entry.outcome(decoded);
  if (typeof raw !== "string") return { problem: problem ?? "has a value that cannot be used" };
  try {
    return entry.outcome(entry.kind.parse(raw, undefined));
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
