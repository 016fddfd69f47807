import { PODS } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { Pod, PodCondition, PodStatus } from "../../../model/generated/types.ts";
import { CONFIG_MIRROR_ANNOTATION, CONFIG_SOURCE_ANNOTATION } from "../../../model/labels.ts";
import { defaultPod } from "../../../model/pod-defaults.ts";
import { isMirrorPod } from "../../../model/pod-facts.ts";
import { deriveQosClass } from "../../../model/qos.ts";
import { labelProblems } from "../../validation/formats.ts";
import { podErrors } from "../../validation/pod-template.ts";
import { defineKind, type Kind, type KindDefinition } from "../kind.ts";
import { admitPod } from "./pod-admission.ts";
import { podTable } from "./pod-table.ts";
import { ephemeralContainersUpdate, resizeUpdate, validatePodUpdate } from "./pod-updates.ts";

/** `describeSource` says where the pods of a source come from: `file` or `http`. */
export function podKind(describeSource: (source: string) => string): Kind {
  return defineKind<Pod>({ ...definition, admitDelete: (pod, { warn }) => warnOfMirror(pod, describeSource, warn) });
}

/** The mirror of a static pod comes back as long as its manifest is there. */
function warnOfMirror(
  { metadata }: Pod,
  describeSource: (source: string) => string,
  warn: (text: string) => void,
): void {
  const { name = "", annotations = {} } = metadata;
  if (ownValue(annotations, CONFIG_MIRROR_ANNOTATION) === undefined) return;
  const source = describeSource(ownValue(annotations, CONFIG_SOURCE_ANNOTATION) ?? "file");
  warn(`pod "${name}" comes from ${source} and will be back: remove its manifest there to stop it`);
}

const definition: KindDefinition<Pod> = {
  resource: PODS,
  shortNames: ["po"],
  categories: ["all"],
  returnsDeleted: true,
  hasGeneration: true,
  defaults: (pod) => withServiceAccountAlias(defaultPod(pod)),
  admit: admitPod,
  // The pod of a manifest runs, whatever the API has: its mirror shows it.
  makesNamespace: isMirrorPod,
  prepareCreate: (pod, context) => {
    const name = pod.metadata.name ?? "";
    const problems = name === "" ? [] : labelProblems(name);
    if (problems.length > 0) {
      const advice =
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended";
      context.warn(`${advice}: [${problems.join(" ")}]`);
    }
    const status: PodStatus = { phase: "Pending", qosClass: deriveQosClass(pod), ...gatedCondition(pod, context.now) };
    return { ...pod, status };
  },
  validate: (pod) => podErrors(pod),
  validateUpdate: validatePodUpdate,
  // Pods that are not running anywhere have nothing to finish.
  graceSeconds: ({ spec, status }, requested) => {
    const isOver = status?.phase === "Failed" || status?.phase === "Succeeded";
    if (isOver || !spec.nodeName) return 0;
    const seconds = requested ?? spec.terminationGracePeriodSeconds ?? 0;
    return seconds < 0 ? 1 : seconds;
  },
  selectableFields: ({ spec, status }) => ({
    "spec.nodeName": spec.nodeName ?? "",
    "spec.restartPolicy": spec.restartPolicy ?? "",
    "spec.schedulerName": spec.schedulerName ?? "",
    "spec.serviceAccountName": spec.serviceAccountName ?? "",
    "spec.hostNetwork": String(spec.hostNetwork ?? false),
    "status.phase": status?.phase ?? "",
    "status.podIP": status?.podIPs?.[0]?.ip ?? "",
    "status.nominatedNodeName": status?.nominatedNodeName ?? "",
  }),
  status: {
    prepare: (next, old) => ({
      ...next,
      metadata: { ...withoutOwners(next.metadata), ...ownersOf(old.metadata) },
      status: { ...next.status, ...keptGenerations(next.status ?? {}, old.status ?? {}) },
    }),
  },
  updates: { ephemeralcontainers: ephemeralContainersUpdate, resize: resizeUpdate },
  table: podTable,
};

/** Both names of the service account are always the same. */
function withServiceAccountAlias(pod: Pod): Pod {
  const name = pod.spec.serviceAccountName || pod.spec.serviceAccount;
  return name ? { ...pod, spec: { ...pod.spec, serviceAccountName: name, serviceAccount: name } } : pod;
}

function gatedCondition({ spec }: Pod, now: string): Pick<PodStatus, "conditions"> {
  if ((spec.schedulingGates ?? []).length === 0) return {};
  const condition: PodCondition = {
    type: "PodScheduled",
    status: "False",
    reason: "SchedulingGated",
    message: "Scheduling is blocked due to non-empty scheduling gates",
    lastTransitionTime: now,
  };
  return { conditions: [condition] };
}

function withoutOwners({ ownerReferences: _owners, ...metadata }: Pod["metadata"]): Pod["metadata"] {
  return metadata;
}

function ownersOf({ ownerReferences }: Pod["metadata"]): Pick<Pod["metadata"], "ownerReferences"> {
  return ownerReferences === undefined ? {} : { ownerReferences };
}

/** What an older kubelet leaves out stays as it was. */
function keptGenerations(next: PodStatus, old: PodStatus): Partial<PodStatus> {
  const conditions = next.conditions?.map((condition) => {
    const before = old.conditions?.find(({ type }) => type === condition.type)?.observedGeneration;
    return condition.observedGeneration || !before ? condition : { ...condition, observedGeneration: before };
  });
  return {
    ...(!next.qosClass && old.qosClass && { qosClass: old.qosClass }),
    ...(!next.observedGeneration && old.observedGeneration && { observedGeneration: old.observedGeneration }),
    ...(conditions && { conditions }),
  };
}
