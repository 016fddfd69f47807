import type { Container, EnvVarSource } from "./generated/types.ts";
import { isEnvName, isQualifiedName } from "./names.ts";
import type { Problems } from "./problems.ts";

const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const KEYED_FIELD = /^metadata\.(?:labels|annotations)\['([^']+)'\]$/;
const RESOURCE = /^(?:limits|requests)\.(?:cpu|memory|ephemeral-storage|hugepages-\w+)$/;

/** Checks a container's variables. Values are never shown. */
export function checkEnv(path: string, container: Container, problems: Problems): void {
  for (const [index, { name, value, valueFrom }] of (container.env ?? []).entries()) {
    const at = `${path}.env[${index}]`;
    if (!isEnvName(name)) {
      const fix = "use printable characters other than =";
      problems.add(`${at}.name`, name, { message: "is not a valid variable name", fix });
    }
    if (valueFrom === undefined) continue;
    if (value !== undefined && value !== "") {
      problems.add(`${at}.valueFrom`, undefined, { message: "cannot stand beside value", fix: "keep one of them" });
    }
    checkSource(`${at}.valueFrom`, valueFrom, problems);
  }
}

/** True for a field that a variable may show. */
export function isEnvField(fieldPath: string): boolean {
  const key = KEYED_FIELD.exec(fieldPath)?.[1];
  return key === undefined ? FIELDS.includes(fieldPath) : isQualifiedName(key);
}

function checkSource(path: string, source: EnvVarSource, problems: Problems): void {
  const kinds = Object.keys(source);
  if (kinds.length !== 1) {
    const fix = kinds.length === 0 ? "name one, such as fieldRef" : `keep one of ${kinds.join(", ")}`;
    problems.add(path, undefined, { message: "must have exactly one source", fix });
  }
  const { fieldRef, resourceFieldRef } = source;
  if (fieldRef !== undefined && !isEnvField(fieldRef.fieldPath)) {
    const fix = `use ${FIELDS.join(", ")}, metadata.labels['key'] or metadata.annotations['key']`;
    problems.add(`${path}.fieldRef.fieldPath`, fieldRef.fieldPath, {
      message: "is not a field that can be shown",
      fix,
    });
  }
  if (resourceFieldRef !== undefined && !RESOURCE.test(resourceFieldRef.resource)) {
    const fix = "use limits. or requests. with cpu, memory, ephemeral-storage or hugepages-SIZE";
    problems.add(`${path}.resourceFieldRef.resource`, resourceFieldRef.resource, { message: "cannot be shown", fix });
  }
}
