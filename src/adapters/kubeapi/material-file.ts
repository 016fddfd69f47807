import { readFile, stat } from "node:fs/promises";
import type { Material } from "./client-config.ts";

/**
 * A text that may be in a file. `read` reads it if the file was replaced or modified; after `forget` in any case. A
 * failed read keeps the last text.
 */
export class MaterialFile {
  private seen = "";
  private text: string;

  constructor(private readonly source: Material) {
    this.text = source.kind === "data" ? source.pem : "";
  }

  /** The file, or a description of an inline value. */
  get name(): string {
    return this.source.kind === "file" ? this.source.path : "inline data";
  }

  /** Reads if something changed; true if the text is different. Rejects if it cannot be read. */
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

  /** The last text; empty before the first read. */
  get current(): string {
    return this.text;
  }
}
