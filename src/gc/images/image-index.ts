import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import { type ImageRef, parseImageRef } from "../../model/image-ref.ts";

const DOCKER = "docker.io";

/** Finds images by any reference to them: id, tag or digest, with or without a registry. */
export class ImageIndex {
  private readonly keys = new Map<string, Set<string>>();

  /** `keyOf` names an image; two copies of one image for different runtime handlers have different keys. */
  constructor(images: readonly RuntimeImage[], keyOf: (image: RuntimeImage) => string) {
    for (const image of images) {
      const key = keyOf(image);
      this.put(image.id, key);
      for (const name of [...image.tags, ...image.digests]) {
        this.put(name, key);
        for (const known of namesOf(name)) this.put(known, key);
      }
    }
  }

  /** Keys of the images that a container or a pod may mean by this reference; rather too many than too few. */
  find(reference: string): readonly string[] {
    if (reference === "") return [];
    const found = new Set(this.keys.get(reference) ?? []);
    for (const key of this.keys.get(`sha256:${reference}`) ?? []) found.add(key);
    for (const name of meantBy(reference)) for (const key of this.keys.get(name) ?? []) found.add(key);
    return [...found];
  }

  private put(name: string, key: string): void {
    const known = this.keys.get(name);
    if (known === undefined) this.keys.set(name, new Set([key]));
    else known.add(key);
  }
}

/** The names under which a listed tag or digest is found: in full, and without its registry for those who leave it out. */
function namesOf(listed: string): readonly string[] {
  const ref = parse(listed);
  if (ref === undefined) return [];
  const { registry, repository } = canonical(ref);
  const rest = suffix(ref);
  return [`${registry}/${repository}${rest}`, `*/${repository}${rest}`];
}

/** The names that a reference may stand for: a runtime may search several registries for one that names none. */
function meantBy(reference: string): readonly string[] {
  const ref = parse(reference);
  if (ref === undefined) return [];
  const { registry, repository } = canonical(ref);
  return [`${registry}/${repository}${suffix(ref)}`, ...(ref.registry === "" ? [`*/${repository}${suffix(ref)}`] : [])];
}

function canonical({ registry, repository }: ImageRef): { registry: string; repository: string } {
  if (registry !== "" && registry !== DOCKER && registry !== "index.docker.io") return { registry, repository };
  return { registry: DOCKER, repository: repository.replace(/^library\//, "") };
}

/** A digest says more than a tag beside it. */
function suffix({ tag, digest }: ImageRef): string {
  return digest === "" ? `:${tag || "latest"}` : `@${digest}`;
}

/** References that were parsed; the same few hundred are looked up before each removal. */
const parsed = new Map<string, ImageRef | undefined>();
const MOST_PARSED = 4096;

/** Parses references ahead of their use, so that those of many images need not be parsed at once. */
export function parseAhead(references: readonly string[]): void {
  for (const reference of references) parse(reference);
}

function parse(reference: string): ImageRef | undefined {
  if (parsed.has(reference)) return parsed.get(reference);
  if (parsed.size >= MOST_PARSED) parsed.clear();
  const ref = parseOrUndefined(reference);
  parsed.set(reference, ref);
  return ref;
}

function parseOrUndefined(reference: string): ImageRef | undefined {
  try {
    return parseImageRef(reference);
  } catch {
    return undefined;
  }
}
