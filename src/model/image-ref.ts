import { CodedError } from "../lib/errors.ts";

/** The parts of an image's name as it was written; nothing is added. */
export interface ImageRef {
  /** Registry host and port; empty when the name has none. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
  readonly digest: string;
}

/** A text that names no image. */
export class ImageRefError extends CodedError<"InvalidImageName"> {
  constructor(image: string, why: string) {
    const shown = image.length > 120 ? `${image.slice(0, 120)}…` : image;
    super("InvalidImageName", `couldn't parse image name ${JSON.stringify(shown)}: invalid reference format: ${why}`);
  }
}

const REGISTRY =
  /^(?:[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:]+\])(?::\d+)?$/;
const COMPONENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
/** The algorithms that Kubernetes and the runtimes know; in lower case only. */
const DIGEST = /^(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$/;
const BARE_ID = /^[a-f0-9]{64}$/;
/** Of a repository without its registry, in characters. */
const MAX_REPOSITORY = 255;

/** Takes an image's name apart. Throws `ImageRefError`. */
export function parseImageRef(image: string): ImageRef {
  if (BARE_ID.test(image)) throw new ImageRefError(image, "64 hexadecimal digits are an id, not a name");
  const at = image.indexOf("@");
  const digest = at === -1 ? "" : image.slice(at + 1);
  if (at !== -1 && !DIGEST.test(digest)) throw new ImageRefError(image, "the digest is malformed");
  const named = at === -1 ? image : image.slice(0, at);
  const colon = named.lastIndexOf(":");
  const hasTag = colon > named.lastIndexOf("/");
  const tag = hasTag ? named.slice(colon + 1) : "";
  if (hasTag && !TAG.test(tag)) throw new ImageRefError(image, "the tag is malformed");
  const name = hasTag ? named.slice(0, colon) : named;
  if (name === "") throw new ImageRefError(image, "the name is empty");
  return { ...splitRegistry(image, name), tag, digest };
}

/** The name with `:latest` where it has neither tag nor digest. Throws `ImageRefError`. */
export function withDefaultTag(image: string): string {
  const { tag, digest } = parseImageRef(image);
  return tag === "" && digest === "" ? `${image}:latest` : image;
}

/** The pull policy of a container that names none. */
export function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  try {
    const { tag, digest } = parseImageRef(image);
    return tag === "latest" || (tag === "" && digest === "") ? "Always" : "IfNotPresent";
  } catch {
    // Such a pod fails later with InvalidImageName; which policy it has does not matter.
    return "IfNotPresent";
  }
}

function splitRegistry(image: string, name: string): { registry: string; repository: string } {
  const slash = name.indexOf("/");
  const first = slash === -1 ? "" : name.slice(0, slash);
  const isRegistry = /[.:[]/.test(first) || first === "localhost" || first !== first.toLowerCase();
  // What is no host may still be a part of a repository's name (`my_host.org/a`), as in Kubernetes.
  const isHost = REGISTRY.test(first);
  if (isRegistry && !isHost && !COMPONENT.test(first)) throw new ImageRefError(image, "the registry is malformed");
  const repository = isRegistry ? name.slice(slash + 1) : name;
  for (const component of repository.split("/")) {
    if (COMPONENT.test(component)) continue;
    const isUpper = COMPONENT.test(component.toLowerCase());
    throw new ImageRefError(image, isUpper ? "repository name must be lowercase" : "the repository name is malformed");
  }
  // Without a registry a name of one part is below `library/`.
  const full = isRegistry
    ? isHost
      ? repository
      : name
    : repository.includes("/")
      ? repository
      : `library/${repository}`;
  if (full.length > MAX_REPOSITORY)
    throw new ImageRefError(image, `the repository name is longer than ${MAX_REPOSITORY} characters`);
  return { registry: isRegistry ? first : "", repository };
}
