import type { Container, EphemeralContainer, Pod, Volume } from "./generated/types.ts";
import { type ObjectRef, objectKey } from "./object-source.ts";
import { allContainers } from "./pod-facts.ts";

type Ref = ObjectRef<"ConfigMap" | "Secret">;

/** Every ConfigMap and Secret that the pod refers to, each once: what a node may see of its namespace. Pure. */
export function podObjects(pod: Pod): readonly Ref[] {
  const namespace = pod.metadata.namespace ?? "";
  const { spec } = pod;
  const found = new Map<string, Ref>();
  const add = (kind: Ref["kind"], name: string | undefined): void => {
    if (name === undefined || name === "") return;
    const ref = { kind, namespace, name };
    found.set(objectKey(ref), ref);
  };
  for (const { name } of spec.imagePullSecrets ?? []) add("Secret", name);
  for (const volume of spec.volumes ?? []) addVolume(volume, add);
  const containers = allContainers(pod);
  for (const container of containers) addVariables(container, add);
  return [...found.values()];
}

type Add = (kind: Ref["kind"], name: string | undefined) => void;

function addVolume({ configMap, secret, projected, iscsi, flexVolume }: Volume, add: Add): void {
  add("Secret", iscsi?.secretRef?.name);
  add("Secret", flexVolume?.secretRef?.name);
  if (configMap !== undefined) add("ConfigMap", configMap.name);
  if (secret !== undefined) add("Secret", secret.secretName);
  for (const source of projected?.sources ?? []) {
    add("ConfigMap", source.configMap?.name);
    add("Secret", source.secret?.name);
  }
}

function addVariables(container: Container | EphemeralContainer, add: Add): void {
  for (const { valueFrom } of container.env ?? []) {
    add("ConfigMap", valueFrom?.configMapKeyRef?.name);
    add("Secret", valueFrom?.secretKeyRef?.name);
  }
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    add("ConfigMap", configMapRef?.name);
    add("Secret", secretRef?.name);
  }
}
