import { nearest } from "../../lib/nearest.ts";
import { ownValue } from "../../lib/own-value.ts";
import { type FieldProblem, shownValue } from "../../model/problem.ts";

/** Reads the fields of one object of a configuration file; what has another type is a problem and reads as empty. */
export class ConfigFields {
  private readonly fields: Readonly<Record<string, unknown>>;
  readonly isObject: boolean;

  constructor(
    value: unknown,
    private readonly path: string,
    private readonly problems: FieldProblem[],
  ) {
    this.isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    // Just checked.
    this.fields = this.isObject ? (value as Record<string, unknown>) : {};
    if (!this.isObject) this.add("", { message: "must be an object", fix: "", value: shownValue(value) });
  }

  /** Adds a problem about one field, or about the object itself. */
  problem(name: string, message: string, fix: string): void {
    const [, field = "", item] = /^(\w*)(?:\[(\d+)\])?$/.exec(name) ?? [];
    const whole = ownValue(this.fields, field);
    const value = item === undefined ? whole : Array.isArray(whole) ? whole[Number(item)] : undefined;
    this.add(name, { message, fix, value: field === "" ? "" : shownValue(value) });
  }

  /** Fields that are not known are problems: they may be slips of an important one. */
  knows(names: readonly string[]): void {
    for (const name of Object.keys(this.fields)) {
      if (names.includes(name)) continue;
      const [near] = nearest(name, names, 1);
      this.add(name, { message: "is not known", fix: near === undefined ? "remove it" : `use ${near}`, value: "" });
    }
  }

  has(name: string): boolean {
    return (ownValue(this.fields, name) ?? undefined) !== undefined;
  }

  text(name: string): string {
    const value = ownValue(this.fields, name) ?? "";
    if (typeof value === "string") return value;
    this.add(name, { message: "must be a string", fix: "put it in quotes", value: "" });
    return "";
  }

  flag(name: string): boolean | undefined {
    const value = ownValue(this.fields, name) ?? undefined;
    if (value === undefined || typeof value === "boolean") return value;
    this.add(name, { message: "must be a boolean", fix: "set true or false", value: shownValue(value) });
    return undefined;
  }

  list(name: string): readonly unknown[] {
    const value = ownValue(this.fields, name) ?? [];
    if (Array.isArray(value)) return value;
    this.add(name, { message: "must be a list", fix: "", value: shownValue(value) });
    return [];
  }

  texts(name: string): readonly string[] {
    return this.list(name).flatMap((item, at) => {
      if (typeof item === "string") return [item];
      this.add(`${name}[${at}]`, { message: "must be a string", fix: "put it in quotes", value: "" });
      return [];
    });
  }

  object(name: string): ConfigFields | undefined {
    return this.has(name) ? new ConfigFields(ownValue(this.fields, name), this.place(name), this.problems) : undefined;
  }

  objects(name: string): readonly ConfigFields[] {
    return this.list(name).map((item, at) => new ConfigFields(item, this.place(`${name}[${at}]`), this.problems));
  }

  private place(name: string): string {
    return [this.path, name].filter((part) => part !== "").join(".");
  }

  private add(name: string, problem: Omit<FieldProblem, "path">): void {
    this.problems.push({ ...problem, path: this.place(name) });
  }
}
