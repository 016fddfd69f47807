import { randomBytes } from "node:crypto";
import type { ContainerMount } from "../../adapters/cri/port.ts";
import type { Container, VolumeMount } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import { hostsFile } from "../config/hosts-file.ts";
import { podDir } from "../config/paths.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";

/** Every mount of a container: its volumes, /etc/hosts and the termination log (8.5). Writes the two files. */
export async function containerMounts(deps: ExecuteDeps, run: PodRun, container: Container): Promise<ContainerMount[]> {
  const { pod } = run;
  const base = podDir(deps.node.paths, podIdentity(pod).uid);
  const mounts = (container.volumeMounts ?? []).map((mount) => volumeMount(deps, run, mount));
  const ips = run.sandbox?.ips ?? [];
  const asksForHosts = (container.volumeMounts ?? []).some((mount) => mount.mountPath === "/etc/hosts");
  if (!asksForHosts && (ips.length > 0 || pod.spec.hostNetwork === true)) {
    const { clusterDomain } = deps.node.dns();
    const text = hostsFile(pod, { ips, nodeHosts: deps.node.hostsFile(), clusterDomain });
    await deps.files.writeFile(`${base}/etc-hosts`, text, 0o644);
    mounts.push(plain("/etc/hosts", `${base}/etc-hosts`));
  }
  const messagePath = container.terminationMessagePath ?? "";
  if (messagePath !== "") {
    const directory = `${base}/containers/${container.name}`;
    await deps.files.makeDir(directory, 0o750);
    const file = `${directory}/${randomBytes(4).toString("hex")}`;
    await deps.files.writeFile(file, "", 0o666);
    mounts.push(plain(messagePath, file));
  }
  return mounts;
}

function volumeMount(deps: ExecuteDeps, run: PodRun, mount: VolumeMount): ContainerMount {
  return {
    containerPath: mount.mountPath,
    hostPath: deps.volumes.hostPath(run.pod, mount.name),
    readonly: mount.readOnly === true,
    propagation: propagation(mount.mountPropagation),
  };
}

function propagation(mode: string | undefined): ContainerMount["propagation"] {
  if (mode === "Bidirectional") return "bidirectional";
  return mode === "HostToContainer" ? "hostToContainer" : "private";
}

function plain(containerPath: string, hostPath: string): ContainerMount {
  return { containerPath, hostPath, readonly: false, propagation: "private" };
}
