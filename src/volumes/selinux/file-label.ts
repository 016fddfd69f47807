import type { SelinuxContexts } from "../../adapters/host/selinux-contexts.ts";
import type { Pod, SELinuxOptions } from "../../model/generated/types.ts";
import { allContainers } from "../../model/pod-facts.ts";

/**
 * Returns the label that files get of a container with these options; undefined if the container runtime chooses it: it
 * gives each container without a level one of its own. Pure.
 */
export function fileLabel(options: SELinuxOptions, { process, file }: SelinuxContexts): string | undefined {
  const { user = "", role = "", type = "", level = "" } = options;
  if (user === "" && role === "" && type === "" && level === "") return undefined;
  const [ownUser = "", ownRole = "", ownType = "", ownLevel = ""] = parts(file);
  const hasLevels = (parts(process)[3] ?? "") !== "";
  if (level === "" && hasLevels) return undefined;
  // Role and type of the options are those of processes: files keep their own.
  const shown = [user || ownUser, ownRole, ownType, level || ownLevel];
  return shown.filter((part, at) => at < 3 || part !== "").join(":");
}

/** The labels that a volume would get of the containers of a pod that mount it; undefined for those that nobody knows. */
export function volumeLabels(pod: Pod, volume: string, contexts: SelinuxContexts): ReadonlySet<string | undefined> {
  const labels = new Set<string | undefined>();
  for (const { volumeMounts = [], securityContext } of allContainers(pod)) {
    const options = securityContext?.seLinuxOptions ?? pod.spec.securityContext?.seLinuxOptions;
    if (options === undefined) continue;
    if (volumeMounts.some(({ name }) => name === volume)) labels.add(fileLabel(options, contexts));
  }
  return labels;
}

/** `user:role:type:level`; the level may have colons of its own. */
function parts(label: string): readonly string[] {
  const [user = "", role = "", type = "", ...level] = label.split(":");
  return [user, role, type, level.join(":")];
}
