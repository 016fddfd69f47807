/** One member of a tar archive. Owner is always root and the time the epoch, so equal content gives equal bytes. */
export type TarEntry =
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | { readonly kind: "directory"; readonly path: string; readonly mode: number }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string };

const BLOCK = 512;
const TYPE_FLAGS = { file: "0", symlink: "2", directory: "5" } as const;

/** A ustar archive of these members in this order. Paths and link targets over 100 bytes are refused. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const entry of entries) {
    parts.push(header(entry));
    if (entry.kind !== "file") continue;
    parts.push(entry.data);
    const rest = entry.data.byteLength % BLOCK;
    if (rest !== 0) parts.push(Buffer.alloc(BLOCK - rest));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}

function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK);
  const text = (at: number, length: number, value: string): void => {
    if (Buffer.byteLength(value) > length) throw new RangeError(`too long for a tar header: ${value}`);
    block.write(value, at, "utf8");
  };
  const octal = (at: number, length: number, value: number): void =>
    text(at, length, `${value.toString(8).padStart(length - 1, "0")}\0`);

  text(0, 100, entry.kind === "directory" ? `${entry.path}/` : entry.path);
  octal(100, 8, entry.kind === "symlink" ? 0o777 : entry.mode);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, entry.kind === "file" ? entry.data.byteLength : 0);
  octal(136, 12, 0);
  text(156, 1, TYPE_FLAGS[entry.kind]);
  if (entry.kind === "symlink") text(157, 100, entry.target);
  text(257, 8, "ustar\u000000");
  text(265, 32, "root");
  text(297, 32, "root");
  // The checksum counts its own field as eight spaces.
  block.fill(" ", 148, 156);
  const sum = block.reduce((total, byte) => total + byte, 0);
  text(148, 8, `${sum.toString(8).padStart(6, "0")}\0 `);
  return block;
}
