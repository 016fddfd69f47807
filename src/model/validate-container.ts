import type { Container, EphemeralContainer, PodSpec, VolumeMount } from "./generated/types.ts";
import { isDnsLabel } from "./names.ts";
import { isSidecar } from "./pod-facts.ts";
import type { Problems } from "./problems.ts";
import { checkEnv } from "./validate-env.ts";
import { checkPorts } from "./validate-port.ts";
import { checkProbes } from "./validate-probe.ts";
import { checkResources } from "./validate-resources.ts";
import { checkContainerSecurity } from "./validate-security.ts";
import { hasParentSegment } from "./validate-volume.ts";

/** Checks all containers of a pod: each by itself, then names and host ports against each other. */
export function checkContainers(spec: PodSpec, volumes: ReadonlySet<string>, problems: Problems): void {
  if (spec.containers.length === 0) {
    problems.add("spec.containers", undefined, { message: "is required", fix: "name at least one container" });
  }
  const names = new Set<string>();
  for (const [path, container] of containersOf(spec)) {
    checkName(path, container.name, { names, problems });
    checkContainer(path, container, problems);
    checkMounts(path, container, { volumes, problems });
  }
  for (const [index, container] of (spec.initContainers ?? []).entries()) {
    checkInit(`spec.initContainers[${index}]`, container, problems);
  }
  checkPorts(spec, problems);
  if (spec.resources !== undefined) checkResources("spec.resources", spec.resources, problems);
}

function containersOf(spec: PodSpec): [string, Container | EphemeralContainer][] {
  return [
    ...spec.containers.map((container, index): [string, Container] => [`spec.containers[${index}]`, container]),
    ...(spec.initContainers ?? []).map((container, index): [string, Container] => [
      `spec.initContainers[${index}]`,
      container,
    ]),
    ...(spec.ephemeralContainers ?? []).map((container, index): [string, EphemeralContainer] => [
      `spec.ephemeralContainers[${index}]`,
      container,
    ]),
  ];
}

function checkName(path: string, name: string, { names, problems }: { names: Set<string>; problems: Problems }): void {
  if (!isDnsLabel(name)) {
    const fix = "use at most 63 lower-case letters, digits and -, beginning and ending with a letter or digit";
    problems.add(`${path}.name`, name, { message: "is not a valid container name", fix });
  } else if (names.has(name)) {
    problems.add(`${path}.name`, name, { message: "is used twice", fix: "give each container its own name" });
  }
  names.add(name);
}

function checkContainer(path: string, container: Container, problems: Problems): void {
  const image = container.image ?? "";
  if (image === "") problems.add(`${path}.image`, undefined, { message: "is required", fix: "name an image" });
  else if (image !== image.trim()) {
    problems.add(`${path}.image`, image, { message: "has blanks around it", fix: "remove them" });
  }
  problems.oneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, ["Always", "IfNotPresent", "Never"]);
  problems.oneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, [
    "File",
    "FallbackToLogsOnError",
  ]);
  checkEnv(path, container, problems);
  if (container.resources !== undefined) checkResources(`${path}.resources`, container.resources, problems);
  checkContainerSecurity(path, container, problems);
  checkProbes(path, container, problems);
}

function checkInit(path: string, container: Container, problems: Problems): void {
  problems.oneOf(`${path}.restartPolicy`, container.restartPolicy, ["Always", "OnFailure", "Never"]);
  if (isSidecar(container)) return;
  for (const field of ["livenessProbe", "readinessProbe", "startupProbe", "lifecycle"] as const) {
    if (container[field] === undefined) continue;
    const fix = "remove it, or set restartPolicy: Always to make it a sidecar";
    problems.add(`${path}.${field}`, undefined, { message: "is not allowed on an init container", fix });
  }
}

interface MountContext {
  readonly volumes: ReadonlySet<string>;
  readonly problems: Problems;
}

function checkMounts(
  path: string,
  container: Container | EphemeralContainer,
  { volumes, problems }: MountContext,
): void {
  const places = new Set<string>();
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    const at = `${path}.volumeMounts[${index}]`;
    if (!volumes.has(mount.name)) {
      const known =
        volumes.size === 0 ? "the pod has no volumes" : `the pod has ${[...volumes].slice(0, 10).join(", ")}`;
      problems.add(`${at}.name`, mount.name, { message: "names no volume of the pod", fix: known });
    }
    if (!mount.mountPath.startsWith("/") || mount.mountPath.includes("\0")) {
      problems.add(`${at}.mountPath`, mount.mountPath, { message: "must be an absolute path", fix: "begin it with /" });
    } else if (places.has(mount.mountPath)) {
      problems.add(`${at}.mountPath`, mount.mountPath, {
        message: "is used twice",
        fix: "mount each volume elsewhere",
      });
    }
    places.add(mount.mountPath);
    problems.oneOf(`${at}.mountPropagation`, mount.mountPropagation, ["None", "HostToContainer", "Bidirectional"]);
    if (mount.mountPropagation === "Bidirectional" && !container.securityContext?.privileged) {
      const fix = "set securityContext.privileged: true, or use HostToContainer";
      problems.add(`${at}.mountPropagation`, mount.mountPropagation, { message: "needs a privileged container", fix });
    }
    if (mount.subPath !== undefined && mount.subPathExpr !== undefined) {
      problems.add(`${at}.subPathExpr`, mount.subPathExpr, {
        message: "cannot stand beside subPath",
        fix: "keep one of them",
      });
    }
    checkRecursive(at, mount, problems);
    for (const field of ["subPath", "subPathExpr"] as const) {
      const value = mount[field] ?? "";
      if (value.startsWith("/") || hasParentSegment(value)) {
        problems.add(`${at}.${field}`, value, {
          message: "leaves the volume",
          fix: "write a relative path without ..",
        });
      }
    }
  }
}

function checkRecursive(at: string, mount: VolumeMount, problems: Problems): void {
  const mode = mount.recursiveReadOnly ?? "Disabled";
  problems.oneOf(`${at}.recursiveReadOnly`, mode, ["Disabled", "IfPossible", "Enabled"]);
  const isShared = mount.mountPropagation !== undefined && mount.mountPropagation !== "None";
  if (mode === "Disabled" || (mount.readOnly === true && !isShared)) return;
  const fix = "set readOnly: true and no mountPropagation, or remove it";
  problems.add(`${at}.recursiveReadOnly`, mode, { message: "needs a read-only mount without propagation", fix });
}
