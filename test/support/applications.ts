import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { PodList } from "../../src/model/generated/types.ts";
import type { Site } from "../integration/support/site.ts";
import type { LocalKubectl } from "./local-kubectl.ts";

const LOG_LINKS = "/var/log/containers";
const EXAMPLES = join(import.meta.dirname, "../../examples/apps");

/** The applications of examples/apps, by the name of their directory and namespace, and their workloads. */
export const WORKLOADS = {
  notes: ["statefulset/database", "deployment/api", "deployment/web"],
  redis: ["statefulset/redis"],
  logs: ["deployment/collector", "daemonset/shipper"],
} as const;

export type AppName = keyof typeof WORKLOADS;
export const APPS = Object.keys(WORKLOADS) as AppName[];

/**
 * Writes a kustomization on top of an example and returns its directory: with other tags of the images, and with the
 * directory of this site where the example names that of the default state directory.
 */
export function overlay(site: Site, app: AppName, { tag, more = "" }: { tag: string; more?: string }): string {
  const dir = join(site.dir, `${app}-${tag}`);
  mkdirSync(dir, { recursive: true });
  const images = ["nginx", "python", "postgres", "redis", "rsyslog"];
  const logs = `- target: {kind: DaemonSet}
  patch: |-
    - {op: replace, path: /spec/template/spec/volumes/2/hostPath/path, value: ${join(site.state, "log/pods")}}
`;
  const text = `resources: [${relative(dir, join(EXAMPLES, app))}]
images:
${images.map((name) => `- {name: kubelet.local/apps/${name}, newTag: "${tag}"}\n`).join("")}patches:
${app === "logs" ? logs : ""}${more}`;
  writeFileSync(join(dir, "kustomization.yaml"), text);
  return dir;
}

/** The containers of all pods but those of jobs, and how often they were restarted. */
export async function containersOf(kubectl: LocalKubectl): Promise<Record<string, string>> {
  const { items } = await kubectl.json<PodList>("get", "pods", "-A");
  const lasting = items.filter(({ metadata }) => !metadata.ownerReferences?.some(({ kind }) => kind === "Job"));
  return Object.fromEntries(
    lasting.map(({ metadata, status }) => [
      `${metadata.namespace}/${metadata.name}`,
      (status?.containerStatuses ?? []).map(({ containerID, restartCount }) => `${containerID} ${restartCount}`).join(),
    ]),
  );
}

/** Where a link leads; empty if it is gone: agents of other suites have theirs there too. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return "";
  }
}

/** All that applications leave on the machine and in the API while they are there. */
export async function marks(site: Site, kubectl: LocalKubectl): Promise<object> {
  const kinds = "namespaces,pods,services,endpointslices,configmaps,secrets,persistentvolumes,persistentvolumeclaims";
  const workloads = "deployments,replicasets,statefulsets,daemonsets,controllerrevisions,jobs,cronjobs";
  const list = (path: string): string[] => (existsSync(path) ? readdirSync(path).sort() : []);
  const { layout, state } = site;
  return {
    objects: (await kubectl.ok("get", `${kinds},${workloads}`, "-A", "-o", "name", "--ignore-not-found")).split("\n"),
    sandboxes: (await site.sandboxes()).map(({ id }) => id),
    containers: (await site.containers()).map(({ id }) => id),
    pods: list(join(state, "kubelet/pods")),
    logs: list(join(state, "log/pods")),
    logLinks: list(LOG_LINKS).filter((name) => targetOf(join(LOG_LINKS, name)).startsWith(state)),
    volumes: list(join(state, "kubelet/local-volumes")),
    mounts: readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .filter((line) => line.includes(state))
      .map((line) => line.split(" ")[4]),
    rules: execFileSync("nft", ["-s", "list", "table", "ip", layout.name], { encoding: "utf8" }).split("\n"),
  };
}
