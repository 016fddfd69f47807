import { readFile, stat } from "node:fs/promises";
import type { Material } from "./client-config.ts";

/**
 * A text that may live in a file. `read` reads again when the file is another one or was changed; `forget` makes it
 * read in any case. A failed read leaves the last text as it was.
 */
export class MaterialFile {
  private seen = "";
  private text: string;

  constructor(private readonly source: Material) {
    this.text = source.kind === "data" ? source.pem : "";
  }

  /** The file, or a word for what was given inline. */
  get name(): string {
    return this.source.kind === "file" ? this.source.path : "inline data";
  }

  /** Reads if something changed; true when the text is another one now. Rejects when it cannot be read. */
  async read(): Promise<boolean> {
    if (this.source.kind === "data") return false;
    const { ino, size, mtimeMs } = await stat(this.source.path);
    const mark = `${ino}/${size}/${mtimeMs}`;
    if (mark === this.seen) return false;
    const text = await readFile(this.source.path, "utf8");
    const changed = text !== this.text;
    this.text = text;
    this.seen = mark;
    return changed;
  }

  forget(): void {
    this.seen = "";
  }

  /** What was read last; empty before. */
  get current(): string {
    return this.text;
  }
}
