import { createHash } from "node:crypto";
import { type TarEntry, tar } from "./tar.ts";

/** An image of one layer, to be made here. */
export interface LocalImage {
  /** Full name with tag; it names no registry that exists. */
  readonly name: string;
  readonly files: readonly TarEntry[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly string[];
  /** The user of its processes, by name or number; defaults to root. */
  readonly user?: string;
}

/** Go's name of the machine's architecture, as image indexes use it. */
export function imageArchitecture(nodeArch: string): string {
  const names: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", mips64el: "mips64le", ppc64: "ppc64le" };
  return names[nodeArch] ?? nodeArch;
}

/**
 * An OCI image layout with these images, as one tar that `ctr images import` takes. Deterministic: the same files give
 * the same digests. Layers are not compressed: they never travel, and unpacking is what a first start waits for.
 */
export function buildOciArchive(images: readonly LocalImage[], architecture: string): Buffer {
  const blobs = new Map<string, Buffer>();
  const put = (mediaType: string, data: Buffer): Descriptor => {
    const digest = sha256(data);
    blobs.set(digest, data);
    return { mediaType, digest: `sha256:${digest}`, size: data.byteLength };
  };
  const manifests = images.map((image) => ({
    ...putImage(image, architecture, put),
    annotations: {
      "io.containerd.image.name": image.name,
      "org.opencontainers.image.ref.name": image.name.slice(image.name.lastIndexOf(":") + 1),
    },
  }));
  return tar([
    { kind: "file", path: "oci-layout", mode: 0o644, data: json({ imageLayoutVersion: "1.0.0" }) },
    { kind: "directory", path: "blobs", mode: 0o755 },
    { kind: "directory", path: "blobs/sha256", mode: 0o755 },
    ...[...blobs].map(
      ([digest, data]) => ({ kind: "file", path: `blobs/sha256/${digest}`, mode: 0o644, data }) as const,
    ),
    {
      kind: "file",
      path: "index.json",
      mode: 0o644,
      data: json({ schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests }),
    },
  ]);
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

function putImage(
  image: LocalImage,
  architecture: string,
  put: (mediaType: string, data: Buffer) => Descriptor,
): Descriptor {
  const layer = put("application/vnd.oci.image.layer.v1.tar", tar(image.files));
  const config = put(
    "application/vnd.oci.image.config.v1+json",
    json({
      created: "1970-01-01T00:00:00Z",
      architecture,
      os: "linux",
      config: { Entrypoint: image.entrypoint, Cmd: image.command, Env: image.env, User: image.user, WorkingDir: "/" },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
      history: [{ created: "1970-01-01T00:00:00Z", created_by: "kubelet-ts" }],
    }),
  );
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  return put(mediaType, json({ schemaVersion: 2, mediaType, config, layers: [layer] }));
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function sha256(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
