import { isDeepStrictEqual } from "node:util";
import type { Container, Pod, PodSpec, Toleration } from "../../../model/generated/types.ts";
import { deriveQosClass, qosClass } from "../../../model/qos.ts";
import { type FieldError, forbidden, invalid } from "../../status/field-error.ts";
import { podErrors } from "../../validation/pod-template.ts";
import type { UpdateSubresource } from "../kind.ts";

const MAY_CHANGE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/** What is wrong with a change of a pod: most of its spec is decided when it is created. */
export function validatePodUpdate(next: Pod, old: Pod): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ["containers", "initContainers"] as const) {
    if ((next.spec[field] ?? []).length !== (old.spec[field] ?? []).length) {
      return [forbidden(`spec.${field}`, "pod updates may not add or remove containers")];
    }
  }
  const added = next.spec.tolerations ?? [];
  const lost = (old.spec.tolerations ?? []).filter((one) => !added.some((other) => isSameToleration(one, other)));
  if (lost.length > 0) {
    errors.push(forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"));
  }
  const deadline = next.spec.activeDeadlineSeconds;
  const before = old.spec.activeDeadlineSeconds;
  if (before !== undefined && (deadline === undefined || deadline > before)) {
    const message = `must be less than or equal to previous value`;
    errors.push(invalid("spec.activeDeadlineSeconds", deadline ?? null, message));
  }
  const gates = (old.spec.schedulingGates ?? []).map(({ name }) => name);
  for (const [index, { name }] of (next.spec.schedulingGates ?? []).entries()) {
    if (gates.includes(name)) continue;
    const message = `only deletion is allowed, but found new scheduling gate '${name}'`;
    errors.push(forbidden(`spec.schedulingGates[${index}].name`, message));
  }
  const changed = changedFields(asOld(next.spec, old.spec), old.spec);
  if (changed.length > 0) errors.push(forbidden("spec", `${MAY_CHANGE}\nchanged: ${changed.join(", ")}`));
  return errors;
}

/** The new spec with everything that may change as it was. */
function asOld(next: PodSpec, old: PodSpec): PodSpec {
  const withImages = (list: readonly Container[] | undefined, was: readonly Container[] | undefined) =>
    list?.map((container, index) => {
      const image = was?.[index]?.image;
      const { image: _image, ...rest } = container;
      return image === undefined ? rest : { ...rest, image };
    });
  const { tolerations: _tolerations, activeDeadlineSeconds: _deadline, schedulingGates: _gates, ...rest } = next;
  return {
    ...rest,
    containers: withImages(next.containers, old.containers) ?? [],
    ...(next.initContainers && { initContainers: withImages(next.initContainers, old.initContainers) ?? [] }),
    ...(old.tolerations && { tolerations: old.tolerations }),
    ...(old.activeDeadlineSeconds !== undefined && { activeDeadlineSeconds: old.activeDeadlineSeconds }),
    ...((old.terminationGracePeriodSeconds ?? 0) < 0 &&
      next.terminationGracePeriodSeconds === 1 &&
      old.terminationGracePeriodSeconds !== undefined && {
        terminationGracePeriodSeconds: old.terminationGracePeriodSeconds,
      }),
    ...(old.schedulingGates && { schedulingGates: old.schedulingGates }),
  };
}

function changedFields(next: PodSpec, old: PodSpec): readonly string[] {
  const left: Readonly<Record<string, unknown>> = { ...next };
  const right: Readonly<Record<string, unknown>> = { ...old };
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].filter((name) => !isDeepStrictEqual(left[name], right[name])).map((name) => `spec.${name}`);
}

function isSameToleration(a: Toleration, b: Toleration): boolean {
  const { tolerationSeconds: _a, ...left } = a;
  const { tolerationSeconds: _b, ...right } = b;
  return isDeepStrictEqual(left, right);
}

/** `pods/ephemeralcontainers`: containers for debugging are added, never changed or removed. */
export const ephemeralContainersUpdate: UpdateSubresource<Pod> = {
  prepare: (next, old) => {
    const { ephemeralContainers } = next.spec;
    const metadata = { ...old.metadata, ...managed(next) };
    const { ephemeralContainers: _before, ...spec } = old.spec;
    return { ...old, metadata, spec: { ...spec, ...(ephemeralContainers && { ephemeralContainers }) } };
  },
  validate: (next, old) => {
    const path = "spec.ephemeralContainers";
    const now = next.spec.ephemeralContainers ?? [];
    const errors: FieldError[] = [...podErrors(next)];
    for (const container of old.spec.ephemeralContainers ?? []) {
      const index = now.findIndex(({ name }) => name === container.name);
      const found = now[index];
      if (found === undefined) {
        errors.push(forbidden(path, `existing ephemeral containers "${container.name}" may not be removed\n`));
      } else if (!isDeepStrictEqual(found, container)) {
        const message = `existing ephemeral containers "${container.name}" may not be changed\n`;
        errors.push(forbidden(`${path}[${index}]`, message));
      }
    }
    return errors;
  },
};

/** `pods/resize`: requests, limits and resize policies change, nothing else. */
export const resizeUpdate: UpdateSubresource<Pod> = {
  prepare: (next, old) => {
    const resized = (list: readonly Container[] | undefined, from: readonly Container[] | undefined) =>
      list?.map((container) => {
        const wanted = from?.find(({ name }) => name === container.name);
        const { resources: _resources, resizePolicy: _policy, ...rest } = container;
        return {
          ...rest,
          ...(wanted?.resources && { resources: wanted.resources }),
          ...(wanted?.resizePolicy && { resizePolicy: wanted.resizePolicy }),
        };
      });
    const { initContainers } = old.spec;
    const spec: PodSpec = {
      ...old.spec,
      containers: resized(old.spec.containers, next.spec.containers) ?? [],
      ...(initContainers && { initContainers: resized(initContainers, next.spec.initContainers) ?? [] }),
      ...(next.spec.resources && { resources: next.spec.resources }),
    };
    return { ...old, metadata: { ...old.metadata, ...managed(next) }, spec };
  },
  validate: (next, old) => {
    const statuses = [...(old.status?.containerStatuses ?? []), ...(old.status?.initContainerStatuses ?? [])];
    if (statuses.some(({ resources }) => resources === undefined)) {
      return [forbidden("spec", "Pod running on node without support for resize")];
    }
    const isSameClass = deriveQosClass(next) === qosClass(old);
    const errors = isSameClass
      ? []
      : [invalid("spec", qosClass(old), "Pod QOS Class may not change as a result of resizing")];
    return [...errors, ...podErrors(next)];
  },
};

/** What the metadata of an update is needed for: who owns the change, and which version it is of. */
function managed({ metadata }: Pod): Partial<Pod["metadata"]> {
  const { managedFields, resourceVersion, generation } = metadata;
  return {
    ...(managedFields && { managedFields }),
    ...(resourceVersion && { resourceVersion }),
    ...(generation !== undefined && { generation }),
  };
}
