import { readFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ownValue } from "../../lib/own-value.ts";

/** A file of the page. */
interface Asset {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The files of the page in the folder that the build writes: read at each request, so that they cost no memory. */
export function pageAssets(folder = pageFolder()): {
  read(name: string, options: { readonly gzip: boolean }): Promise<Asset | undefined>;
} {
  return {
    async read(name, { gzip }) {
      const type = ownValue(TYPES, extname(name));
      if (type === undefined || !/^[\w.-]+$/.test(name)) return undefined;
      const zipped = gzip ? await readOr(join(folder, `${name}.gz`)) : undefined;
      if (zipped !== undefined) return { type, bytes: zipped, isCompressed: true };
      const bytes = await readOr(join(folder, name));
      return bytes && { type, bytes, isCompressed: false };
    },
  };
}

/** Beside the bundle; from source, where the bundle would be. */
function pageFolder(): string {
  if (typeof __dirname === "string") return join(__dirname, "page");
  return join(dirname(fileURLToPath(import.meta.url)), "../../../dist/page");
}

async function readOr(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch {
    return undefined;
  }
}
