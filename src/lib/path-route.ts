import { lstat, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf } from "./errors.ts";

/** A name in a directory. */
export interface Place {
  readonly directory: string;
  readonly name: string;
}

/** The target of a path at one moment, and the names that determine it. */
export interface Route {
  /** Each directory and link on the way: a change of one of these names may lead the path elsewhere. */
  readonly steps: readonly Place[];
  readonly target:
    | ({ readonly kind: "file" } & Place)
    | { readonly kind: "directory"; readonly directory: string }
    | { readonly kind: "missing" };
}

/** More links than this in one path are a loop, as for the kernel. */
const MOST_LINKS = 40;

/**
 * Follows a path name by name. `visit` is called with each directory before a name in it is read, so that a
 * watch placed there misses nothing. What cannot be read is `missing`.
 */
export async function findRoute(
  from: string,
  names: readonly string[],
  visit: (directory: string) => void,
): Promise<Route> {
  const steps: Place[] = [];
  const rest = [...names];
  let current = from;
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      current = dirname(current);
      continue;
    }
    visit(current);
    const found = await look(join(current, name));
    if (found.kind === "file" && rest.every((left) => left === "" || left === ".")) {
      return { steps, target: { kind: "file", directory: current, name } };
    }
    steps.push({ directory: current, name });
    if (found.kind === "directory") current = join(current, name);
    else if (found.kind === "link" && ++links <= MOST_LINKS) {
      if (found.to.startsWith("/")) current = "/";
      rest.unshift(...found.to.split("/"));
    } else return { steps, target: { kind: "missing" } };
  }
  visit(current);
  return { steps, target: { kind: "directory", directory: current } };
}

type Found = { kind: "directory" | "file" | "missing" } | { kind: "link"; to: string };

async function look(path: string): Promise<Found> {
  try {
    const stat = await lstat(path);
    if (stat.isSymbolicLink()) return { kind: "link", to: await readlink(path) };
    return { kind: stat.isDirectory() ? "directory" : "file" };
  } catch (error) {
    // Not there, no permission, name too long: for a reader it is all the same.
    if (errnoOf(error) === undefined) throw error;
    return { kind: "missing" };
  }
}
