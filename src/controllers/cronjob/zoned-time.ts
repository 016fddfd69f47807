/** A moment on the clock of a time zone. */
export interface WallTime {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  /** 0 is Sunday. */
  readonly weekday: number;
}

const MINUTE_MS = 60_000;

/** The clock of a time zone. Throws `RangeError` for one that is not known. */
export class ZonedTime {
  private readonly format: Intl.DateTimeFormat;

  /** Without a name: the time zone of the machine. */
  constructor(timeZone?: string) {
    this.format = new Intl.DateTimeFormat("en-US", {
      ...(timeZone !== undefined && { timeZone }),
      hourCycle: "h23",
      ...({ year: "numeric", month: "numeric", day: "numeric" } as const),
      ...({ hour: "numeric", minute: "numeric", second: "numeric" } as const),
    });
  }

  at(ms: number): WallTime {
    const { year, month, day, hour, minute } = this.fields(ms);
    const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay();
    return { year, month, day, hour, minute, weekday };
  }

  /** The offset to UTC, in minutes. */
  offsetMinutes(ms: number): number {
    const { year, month, day, hour, minute, second } = this.fields(ms);
    const wall = Date.UTC(year, month - 1, day, hour, minute, second);
    return Math.round((wall - Math.floor(ms / 1000) * 1000) / MINUTE_MS);
  }

  /** The beginning of a day; where midnight is skipped, the first moment after it. Months and days may overflow. */
  midnight(year: number, month: number, day: number): number {
    const wall = Date.UTC(year, month - 1, day);
    const first = wall - this.offsetMinutes(wall) * MINUTE_MS;
    const begin = wall - this.offsetMinutes(first) * MINUTE_MS;
    // West of Greenwich the clocks change at `first`, and the offset after the change leads back to the day before.
    return this.at(begin).day === new Date(wall).getUTCDate() ? begin : first;
  }

  private fields(ms: number) {
    const parts = new Map(this.format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const read = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    return {
      year: read("year"),
      month: read("month"),
      day: read("day"),
      hour: read("hour"),
      minute: read("minute"),
      second: read("second"),
    };
  }
}
