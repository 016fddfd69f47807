import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { imageArchitecture } from "../../src/adapters/embedded/oci-archive.ts";
import { tar } from "../../src/adapters/embedded/tar.ts";

/** An image as a registry stores it. */
export interface TestImage {
  readonly mediaType: string;
  readonly manifest: Buffer;
  /** Layers, then the configuration. */
  readonly blobs: readonly { readonly digest: string; readonly data: Buffer }[];
}

/** An image of these layers, each an uncompressed tar. */
export function testImage(layers: readonly Buffer[]): TestImage {
  const blobs = layers.map((data) => ({ digest: digestOf(data), data }));
  const config = Buffer.from(
    JSON.stringify({
      created: "1970-01-01T00:00:00Z",
      architecture: imageArchitecture(process.arch),
      os: "linux",
      config: { Cmd: ["/bin/sh"], Env: ["PATH=/bin"] },
      rootfs: { type: "layers", diff_ids: blobs.map(({ digest }) => digest) },
    }),
  );
  const described = (type: string, data: Buffer): object => ({
    mediaType: `application/vnd.oci.image.${type}`,
    digest: digestOf(data),
    size: data.length,
  });
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: described("config.v1+json", config),
    layers: layers.map((data) => described("layer.v1.tar", data)),
  };
  return {
    mediaType,
    manifest: Buffer.from(JSON.stringify(manifest)),
    blobs: [...blobs, { digest: digestOf(config), data: config }],
  };
}

/** A layer with busybox as its shell. */
export function shellLayer(busybox: string): Buffer {
  return tar([
    { kind: "directory", path: "bin", mode: 0o755 },
    { kind: "file", path: "bin/busybox", mode: 0o755, data: readFileSync(busybox) },
    ...["sh", "sleep"].map((name) => ({ kind: "symlink", path: `bin/${name}`, target: "busybox" }) as const),
  ]);
}

/** A layer of about so many bytes that no other image has. */
export function fillingLayer(name: string, bytes: number): Buffer {
  const data = Buffer.alloc(bytes, createHash("sha256").update(name).digest());
  return tar([{ kind: "file", path: `filling-${name}`, mode: 0o644, data }]);
}

function digestOf(data: Buffer): string {
  return `sha256:${createHash("sha256").update(data).digest("hex")}`;
}
