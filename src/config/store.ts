import type { Abortable } from "../lib/abort.ts";
import { type Live, LiveValue } from "../lib/live.ts";
import type { OptionTable, Values } from "./option.ts";

/** Holds the settings in force. Options that are not live keep their start value until the next start. */
export class OptionStore<Table extends OptionTable> {
  private readonly value: LiveValue<Values<Table>>;

  constructor(
    private readonly table: Table,
    values: Values<Table>,
  ) {
    this.value = new LiveValue(values);
  }

  get current(): Values<Table> {
    return this.value.current;
  }

  /** A live view of a few options; it changes only when one of them does. Asking for one that is not live is a bug. */
  live<Name extends keyof Table & string>(...names: readonly Name[]): Live<Pick<Values<Table>, Name>> {
    const fixedOne = names.find((name) => this.table[name]?.live !== true);
    if (fixedOne !== undefined) throw new Error(`option ${fixedOne} is not live`);
    const view = new LiveView(this.value, names);
    return view;
  }

  /** Puts new values of live options in force; returns the names of changed options that need a restart. */
  update(next: Values<Table>): (keyof Table & string)[] {
    const merged: Record<string, unknown> = { ...this.current };
    const waiting: (keyof Table & string)[] = [];
    for (const [name, entry] of Object.entries(this.table)) {
      if (same(next[name], merged[name])) continue;
      if (entry.live) merged[name] = next[name];
      else waiting.push(name);
    }
    this.value.set(merged as Values<Table>); // reason: it is `current` with values of `next`, both of this type
    return waiting;
  }
}

class LiveView<T extends object, Name extends keyof T> implements Live<Pick<T, Name>> {
  private source: T | undefined;
  private picked: Pick<T, Name> | undefined;

  constructor(
    private readonly whole: Live<T>,
    private readonly names: readonly Name[],
  ) {}

  /** The same object as long as none of its options changed. */
  get current(): Pick<T, Name> {
    const whole = this.whole.current;
    const { source, picked } = this;
    if (picked !== undefined && (source === whole || this.names.every((name) => same(picked[name], whole[name])))) {
      return picked;
    }
    const entries = this.names.map((name) => [name, whole[name]] as const);
    const fresh = Object.fromEntries(entries) as Pick<T, Name>; // reason: exactly the picked names
    this.source = whole;
    this.picked = fresh;
    return fresh;
  }

  onChange(fn: (value: Pick<T, Name>) => void, options: Abortable): void {
    let last = this.current;
    this.whole.onChange(() => {
      const next = this.current;
      if (next === last) return;
      last = next;
      fn(next);
    }, options);
  }
}

/** Equal by value: options are scalars, lists of text and maps of lists. */
function same(a: unknown, b: unknown): boolean {
  return Object.is(a, b) || JSON.stringify(a) === JSON.stringify(b);
}
