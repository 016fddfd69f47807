import type { Material } from "./client-config.ts";
import type { FieldReader } from "./field-reader.ts";

/** `NAME-data` (base64 of a PEM) or the file `NAME`; the data wins, as in kubectl. */
export function readMaterial(
  reader: FieldReader,
  name: string,
  absolute: (path: string) => string,
): Material | undefined {
  const data = reader.text(`${name}-data`);
  if (data !== "") {
    const pem = Buffer.from(data, "base64").toString("utf8");
    if (!pem.includes("-----BEGIN ")) throw reader.problem(`${name}-data`, "is not the base64 of a PEM text");
    return { kind: "data", pem };
  }
  const path = reader.text(name);
  return path === "" ? undefined : { kind: "file", path: absolute(path) };
}
