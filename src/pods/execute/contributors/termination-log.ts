import { randomBytes } from "node:crypto";
import { podIdentity } from "../../../model/pod-facts.ts";
import { podDir } from "../../config/paths.ts";
import type { ExecuteDeps } from "../context.ts";
import { agentFileMount, hasVolumeAt } from "./agent-file.ts";
import type { ContainerContributor } from "./contributor.ts";

/** The file that a container may leave its termination message in, a new one for each instance. */
export function terminationLog(deps: ExecuteDeps): ContainerContributor {
  return {
    name: "termination log",
    async contribute({ pod, container }) {
      const path = container.terminationMessagePath ?? "";
      if (path === "" || hasVolumeAt(container, path)) return {};
      const directory = `${podDir(deps.node.paths, podIdentity(pod).uid)}/containers/${container.name}`;
      const file = `${directory}/${randomBytes(4).toString("hex")}`;
      await deps.files.writeFile(file, "", 0o666);
      return { mounts: [agentFileMount(deps, path, file)] };
    },
  };
}
