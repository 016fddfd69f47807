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
    const fixedOne = names.find((name) => this.table[name]?.applies === "restart");
    if (fixedOne !== undefined) throw new Error(`option ${fixedOne} is not live`);
    const view = new LiveView(this.value, names);
    return view;
  }

  /** What a change would do, without doing it: the values that would be in force, and what would wait. Pure. */
  plan(next: Values<Table>, { reload = true }: { readonly reload?: boolean } = {}): Planned<Table> {
    const merged: Record<string, unknown> = { ...this.current };
    const names = { restart: [] as Name<Table>[], reload: [] as Name<Table>[], applied: [] as Name<Table>[] };
    for (const [name, { applies }] of Object.entries(this.table)) {
      if (same(next[name], merged[name])) continue;
      if (applies === "restart") names.restart.push(name);
      else if (applies === "reload" && !reload) names.reload.push(name);
      else {
        merged[name] = next[name];
        names.applied.push(name);
      }
    }
    return { values: merged as Values<Table>, ...names }; // reason: it is `current` with values of `next`
  }

  /**
   * Puts new values in force. What can evict or reject pods waits unless `reload` (SIGHUP, `config apply`). Returns the
   * changed options that wait for a restart, and those that wait for a reload; they keep their values.
   */
  update(next: Values<Table>, options: { readonly reload?: boolean } = {}): Waiting<Table> {
    const { values, restart, reload, applied } = this.plan(next, options);
    if (applied.length > 0) this.value.set(values);
    return { restart, reload };
  }
}

type Name<Table extends OptionTable> = keyof Table & string;

/** What a change would do. */
export interface Planned<Table extends OptionTable> extends Waiting<Table> {
  readonly values: Values<Table>;
  /** Changed options that would be in force. */
  readonly applied: readonly Name<Table>[];
}

/** Changed options that are not in force yet. */
export interface Waiting<Table extends OptionTable> {
  readonly restart: readonly (keyof Table & string)[];
  readonly reload: readonly (keyof Table & string)[];
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
