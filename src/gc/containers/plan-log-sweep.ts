/** A symbolic link in the directory of container logs. */
export interface LogLink {
  readonly name: string;
  /** Whether the file that it points to exists. */
  readonly hasTarget: boolean;
}

/** Returns the UID of the pod that a log directory `NAMESPACE_NAME_UID` belongs to; undefined if it is named otherwise. */
export function uidOfLogDirectory(name: string): string | undefined {
  const parts = name.split("_");
  const uid = parts.at(-1) ?? "";
  return parts.length === 3 && parts.every((part) => part !== "") ? uid : undefined;
}

/** Returns the log directories of pods that are gone. What the agent did not name stays. Pure. */
export function orphanedLogs(names: readonly string[], isKnown: (uid: string) => boolean): readonly string[] {
  return names.filter((name) => {
    const uid = uidOfLogDirectory(name);
    return uid !== undefined && !isKnown(uid);
  });
}

/**
 * Returns the links to logs that are gone. That of a container which is not known to have ended stays: its log is
 * missing for a moment while it is rotated. Pure.
 */
export function deadLinks(links: readonly LogLink[], isAlive: (containerId: string) => boolean): readonly string[] {
  return links.filter(({ name, hasTarget }) => !hasTarget && !isAlive(containerOfLink(name))).map(({ name }) => name);
}

/** The container id in a link `POD_NAMESPACE_CONTAINER-ID.log`; empty if there is none. */
function containerOfLink(name: string): string {
  return /-([^-]+)\.log$/.exec(name)?.[1] ?? "";
}
