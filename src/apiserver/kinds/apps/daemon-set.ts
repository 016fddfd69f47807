import { isDeepStrictEqual } from "node:util";
import { DAEMON_SETS } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { DaemonSet } from "../../../model/generated/types.ts";
import { notSupported } from "../../status/field-error.ts";
import { AGE, containerColumns, labelsText, NAME, selectorColumn, tableOf } from "../../tables/columns.ts";
import { countOrPercent, nonNegative } from "../../validation/numbers.ts";
import { defineKind } from "../kind.ts";
import { defaultTemplate, selectorChange, workloadErrors } from "./template.ts";

const ROLLING = "RollingUpdate";

/** The number of changes of the template: a field of old versions, which clients of today see as an annotation. */
const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";

function templateGeneration({ metadata }: DaemonSet): number | undefined {
  const text = ownValue(metadata.annotations ?? {}, TEMPLATE_GENERATION);
  return text === undefined ? undefined : Number(text);
}

/** Sets it; 0 only if there is none. */
function withTemplateGeneration(set: DaemonSet, generation: number): DaemonSet {
  if (generation === 0 && templateGeneration(set) !== undefined) return set;
  const annotations = { ...set.metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

export const daemonSetKind = defineKind<DaemonSet>({
  resource: DAEMON_SETS,
  shortNames: ["ds"],
  categories: ["all"],
  hasGeneration: true,
  defaults: (set) => {
    const { spec } = set;
    const type = spec.updateStrategy?.type || ROLLING;
    const rolling = { maxUnavailable: 1, maxSurge: 0, ...spec.updateStrategy?.rollingUpdate };
    return {
      ...withTemplateGeneration(set, 0),
      spec: {
        ...spec,
        updateStrategy: { ...spec.updateStrategy, type, ...(type === ROLLING && { rollingUpdate: rolling }) },
        revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
        template: defaultTemplate(spec.template),
      },
    };
  },
  prepareCreate: (set) => withTemplateGeneration(set, 1),
  prepareUpdate: (next, old) => {
    const before = templateGeneration(old) ?? 0;
    const isChanged = !isDeepStrictEqual(next.spec.template, old.spec.template);
    return withTemplateGeneration(next, isChanged ? before + 1 : before);
  },
  validate: ({ spec }) => [
    ...workloadErrors(spec, "daemonset"),
    ...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"),
    ...nonNegative(spec.revisionHistoryLimit, "spec.revisionHistoryLimit"),
    ...countOrPercent(
      spec.updateStrategy?.rollingUpdate?.maxUnavailable,
      "spec.updateStrategy.rollingUpdate.maxUnavailable",
    ),
    ...([ROLLING, "OnDelete"].includes(spec.updateStrategy?.type ?? "")
      ? []
      : [notSupported("spec.updateStrategy.type", spec.updateStrategy?.type, [ROLLING, "OnDelete"])]),
  ],
  validateUpdate: (next, old) => selectorChange(next.spec.selector, old.spec.selector),
  status: {},
  table: tableOf<DaemonSet>([
    NAME,
    { name: "Desired", type: "integer", cell: ({ status }) => status?.desiredNumberScheduled ?? 0 },
    { name: "Current", type: "integer", cell: ({ status }) => status?.currentNumberScheduled ?? 0 },
    { name: "Ready", type: "integer", cell: ({ status }) => status?.numberReady ?? 0 },
    { name: "Up-to-date", type: "integer", cell: ({ status }) => status?.updatedNumberScheduled ?? 0 },
    { name: "Available", type: "integer", cell: ({ status }) => status?.numberAvailable ?? 0 },
    { name: "Node Selector", cell: ({ spec }) => labelsText(spec.template.spec?.nodeSelector) },
    AGE,
    ...containerColumns<DaemonSet>(({ spec }) => spec.template.spec?.containers ?? []),
    selectorColumn<DaemonSet>(({ spec }) => spec.selector),
  ]),
});
