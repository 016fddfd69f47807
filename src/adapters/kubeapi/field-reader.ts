import { KubeconfigError } from "./client-config.ts";

interface Place {
  readonly file: string;
  /** Field path of this object, empty for the whole document. */
  readonly path: string;
}

/** Reads fields of a parsed document; what has the wrong type is refused with the file and the field's path. */
export class FieldReader {
  private readonly fields: Readonly<Record<string, unknown>>;

  constructor(
    value: unknown,
    readonly place: Place,
  ) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new KubeconfigError("Invalid", `${place.file}: ${place.path || "the document"} must be an object`);
    }
    // Checked above; the values stay unknown.
    this.fields = value as Record<string, unknown>;
  }

  /** The error about one field. */
  problem(name: string, message: string): KubeconfigError {
    return new KubeconfigError("Invalid", `${this.place.file}: ${this.pathOf(name)} ${message}`);
  }

  /** A text; empty when it is missing or null. */
  text(name: string): string {
    const value = this.fields[name];
    if (value === undefined || value === null) return "";
    if (typeof value !== "string") throw this.problem(name, "must be a text");
    return value;
  }

  flag(name: string): boolean {
    const value = this.fields[name];
    if (value === undefined || value === null) return false;
    if (typeof value !== "boolean") throw this.problem(name, "must be true or false");
    return value;
  }

  has(name: string): boolean {
    return this.fields[name] !== undefined && this.fields[name] !== null;
  }

  /** An object; an empty one when it is missing. */
  object(name: string): FieldReader {
    return new FieldReader(this.fields[name] ?? {}, { file: this.place.file, path: this.pathOf(name) });
  }

  list(name: string): readonly FieldReader[] {
    return this.array(name).map(
      (item, index) => new FieldReader(item, { file: this.place.file, path: `${this.pathOf(name)}[${index}]` }),
    );
  }

  texts(name: string): readonly string[] {
    return this.array(name).map((item, index) => {
      if (typeof item !== "string") throw this.problem(`${name}[${index}]`, "must be a text");
      return item;
    });
  }

  /** The names that are there. */
  get names(): readonly string[] {
    return Object.keys(this.fields);
  }

  /** The part `inner` of the entry of the list `name` that is called `wanted`. */
  named(name: string, wanted: string, inner: string): FieldReader {
    const all = this.list(name);
    const found = all.find((entry) => entry.text("name") === wanted);
    if (found !== undefined) return found.object(inner);
    const known = all.map((entry) => entry.text("name")).join(", ");
    throw this.problem(name, `has no ${JSON.stringify(wanted)}${known === "" ? "" : ` (there: ${known})`}`);
  }

  private array(name: string): readonly unknown[] {
    const value = this.fields[name];
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value)) throw this.problem(name, "must be a list");
    return value;
  }

  private pathOf(name: string): string {
    return this.place.path === "" ? name : `${this.place.path}.${name}`;
  }
}
