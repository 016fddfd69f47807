import { matchesWildcard } from "../lib/wildcard.ts";
import { parseImageRef } from "./image-ref.ts";

/**
 * Returns the repository that an image is pulled from, with the registry of Docker where the name has none and without
 * tag and digest: `docker.io/library/busybox`. Throws `ImageRefError`.
 */
export function repositoryOf(image: string): string {
  const { registry, repository } = parseImageRef(image);
  if (registry !== "" && registry !== "docker.io" && registry !== "index.docker.io") return `${registry}/${repository}`;
  return `docker.io/${repository.includes("/") ? repository : `library/${repository}`}`;
}

/**
 * True if a location matches a repository, as in Kubernetes: the same port, the same number of host labels, each of
 * which may have wildcards, and a path that is a plain prefix, so that `registry/team` also matches `registry/team-a/app`.
 */
export function matchesRepository(location: string, repository: string): boolean {
  const pattern = splitLocation(location);
  const image = splitLocation(repository);
  return (
    pattern.port === image.port &&
    pattern.labels.length === image.labels.length &&
    image.path.startsWith(pattern.path) &&
    pattern.labels.every((label, at) => matchesWildcard(label, image.labels.at(at) ?? ""))
  );
}

/** `registry.example.com:5000/team` in its parts. */
function splitLocation(location: string): { labels: readonly string[]; port: string; path: string } {
  const slash = location.indexOf("/");
  const authority = slash === -1 ? location : location.slice(0, slash);
  const [, host = "", port = ""] = /^(.*?)(?::(\d*))?$/.exec(authority) ?? [];
  return { labels: host.split("."), port, path: slash === -1 ? "" : location.slice(slash) };
}
