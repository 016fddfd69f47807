import { messageOf } from "../../lib/errors.ts";
import { parseDuration } from "../../model/duration.ts";
import { ZonedTime } from "./zoned-time.ts";

/** Times that come again and again. */
export interface Schedule {
  /** The first time after a moment, in milliseconds; undefined if there is none within five years. */
  next(afterMs: number): number | undefined;
  /** The interval of `@every`, whose times count from the moment that they are asked from; undefined for whole minutes. */
  readonly intervalMs: number | undefined;
}

const MACROS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MOST_YEARS = 5;

/** Reads a schedule of cron: five fields, a macro, or `@every` with a duration. Throws an `Error` that names what is wrong. */
export function parseSchedule(text: string, timeZone?: string): Schedule {
  const trimmed = text.trim();
  if (trimmed.startsWith("@every ")) return everySchedule(trimmed.slice("@every ".length).trim());
  const macro = trimmed.startsWith("@") ? MACROS[trimmed.toLowerCase()] : undefined;
  if (trimmed.startsWith("@") && macro === undefined) throw new Error(`unrecognized descriptor: ${trimmed}`);
  const fields = (macro ?? trimmed).split(/\s+/);
  if (fields.length !== 5) throw new Error(`expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`);
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = fields;
  return new FieldSchedule(
    {
      minutes: parseField(minute, { least: 0, most: 59 }),
      hours: parseField(hour, { least: 0, most: 23 }),
      days: parseField(day, { least: 1, most: 31 }),
      months: parseField(month, { least: 1, most: 12, names: MONTHS }),
      weekdays: parseField(weekday, { least: 0, most: 6, names: DAYS }),
    },
    new ZonedTime(timeZone),
  );
}

/** At fixed intervals of whole seconds, at least one. */
function everySchedule(text: string): Schedule {
  const intervalMs = Math.max(1, Math.floor(intervalOf(text) / 1000)) * 1000;
  return { next: (afterMs) => Math.floor(afterMs / 1000) * 1000 + intervalMs, intervalMs };
}

function intervalOf(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new Error(`failed to parse duration @every ${text}: ${messageOf(error)}`, { cause: error });
  }
}

interface Field {
  readonly values: ReadonlySet<number>;
  /** True for `*`: any value, which leaves the decision to the other field of days. */
  readonly isAny: boolean;
}

interface Limits {
  readonly least: number;
  readonly most: number;
  readonly names?: readonly string[];
}

function parseField(text: string, limits: Limits): Field {
  const values = new Set<number>();
  let isAny = false;
  for (const part of text.split(",").filter((one) => one !== "")) {
    const { first, last, step, isStar } = parseRange(part, limits);
    for (let value = first; value <= last; value += step) values.add(value);
    isAny ||= isStar && step === 1;
  }
  if (values.size === 0) throw new Error(`empty field: ${text}`);
  return { values, isAny };
}

function parseRange(part: string, { least, most, names = [] }: Limits) {
  const [range = "", stepText, ...more] = part.split("/");
  if (more.length > 0) throw new Error(`too many slashes: ${part}`);
  const [from = "", to, ...others] = range.split("-");
  if (others.length > 0) throw new Error(`too many hyphens: ${part}`);
  const read = (word: string): number => {
    const index = names.indexOf(word.toLowerCase());
    if (index !== -1) return index + least;
    if (!/^\d+$/.test(word)) throw new Error(`failed to parse int from ${word}`);
    return Number(word);
  };
  const isStar = from === "*" || from === "?";
  const first = isStar ? least : read(from);
  const step = stepText === undefined ? 1 : read(stepText);
  // `3/5` means from 3 on.
  const last = isStar || (to === undefined && stepText !== undefined) ? most : read(to ?? from);
  if (first < least) throw new Error(`beginning of range (${first}) below minimum (${least}): ${part}`);
  if (last > most) throw new Error(`end of range (${last}) above maximum (${most}): ${part}`);
  if (first > last) throw new Error(`beginning of range (${first}) beyond end of range (${last}): ${part}`);
  if (step === 0) throw new Error(`step of range should be a positive number: ${part}`);
  return { first, last, step, isStar };
}

interface Fields {
  readonly minutes: Field;
  readonly hours: Field;
  readonly days: Field;
  readonly months: Field;
  readonly weekdays: Field;
}

class FieldSchedule implements Schedule {
  readonly intervalMs = undefined;

  constructor(
    private readonly fields: Fields,
    private readonly zone: ZonedTime,
  ) {}

  /** Goes from field to field, the largest first; each step is forward and checked anew, whatever the clocks do. */
  next(afterMs: number): number | undefined {
    const { minutes, hours, months } = this.fields;
    let ms = (Math.floor(afterMs / MINUTE_MS) + 1) * MINUTE_MS;
    const lastYear = this.zone.at(ms).year + MOST_YEARS;
    for (;;) {
      const now = this.zone.at(ms);
      if (now.year > lastYear) return undefined;
      if (!months.values.has(now.month)) ms = this.later(ms, this.zone.midnight(now.year, now.month + 1, 1));
      else if (!this.isDay(now)) ms = this.later(ms, this.zone.midnight(now.year, now.month, now.day + 1));
      else if (!hours.values.has(now.hour)) ms += HOUR_MS - now.minute * MINUTE_MS;
      else if (!minutes.values.has(now.minute)) ms += MINUTE_MS * minutesUntil(minutes, now.minute);
      else return ms;
    }
  }

  private later(ms: number, wanted: number): number {
    return wanted > ms ? wanted : ms + HOUR_MS;
  }

  /** If both fields of days name some, one of them suffices. */
  private isDay({ day, weekday }: { readonly day: number; readonly weekday: number }): boolean {
    const { days, weekdays } = this.fields;
    const [matchesDay, matchesWeekday] = [days.values.has(day), weekdays.values.has(weekday)];
    return days.isAny || weekdays.isAny ? matchesDay && matchesWeekday : matchesDay || matchesWeekday;
  }
}

/** Minutes until the next that is named, or until the hour is over. */
function minutesUntil({ values }: Field, minute: number): number {
  for (let next = minute + 1; next < 60; next++) if (values.has(next)) return next - minute;
  return 60 - minute;
}
