import { isDeepStrictEqual } from "node:util";
import { DEPLOYMENTS } from "../../../adapters/kubeapi/index.ts";
import type { Deployment } from "../../../model/generated/types.ts";
import { forbidden, invalid, notSupported } from "../../status/field-error.ts";
import { AGE, containerColumns, NAME, selectorColumn, tableOf } from "../../tables/columns.ts";
import { countOrPercent, nonNegative } from "../../validation/numbers.ts";
import { defineKind } from "../kind.ts";
import { defaultTemplate, replicaScale, selectorChange, workloadErrors } from "./template.ts";

const ROLLING = "RollingUpdate";

export const deploymentKind = defineKind<Deployment>({
  resource: DEPLOYMENTS,
  shortNames: ["deploy"],
  categories: ["all"],
  hasGeneration: true,
  // Annotations are copied to the ReplicaSets, so the controller has to observe them too.
  countsChange: ({ metadata: next }, { metadata: old }) =>
    !isDeepStrictEqual(next.annotations ?? {}, old.annotations ?? {}),
  defaults: (deployment) => {
    const { spec } = deployment;
    const type = spec.strategy?.type || ROLLING;
    const rolling = { maxUnavailable: "25%", maxSurge: "25%", ...spec.strategy?.rollingUpdate };
    return {
      ...deployment,
      spec: {
        ...spec,
        replicas: spec.replicas ?? 1,
        strategy: { ...spec.strategy, type, ...(type === ROLLING && { rollingUpdate: rolling }) },
        revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
        progressDeadlineSeconds: spec.progressDeadlineSeconds ?? 600,
        template: defaultTemplate(spec.template),
      },
    };
  },
  validate: ({ spec }) => {
    const { strategy, replicas, minReadySeconds = 0, progressDeadlineSeconds, revisionHistoryLimit } = spec;
    const errors = [
      ...nonNegative(replicas, "spec.replicas"),
      ...workloadErrors(spec, "deployment"),
      ...nonNegative(minReadySeconds, "spec.minReadySeconds"),
      ...nonNegative(revisionHistoryLimit, "spec.revisionHistoryLimit"),
      ...nonNegative(progressDeadlineSeconds, "spec.progressDeadlineSeconds"),
      ...countOrPercent(strategy?.rollingUpdate?.maxUnavailable, "spec.strategy.rollingUpdate.maxUnavailable"),
      ...countOrPercent(strategy?.rollingUpdate?.maxSurge, "spec.strategy.rollingUpdate.maxSurge"),
    ];
    if (strategy?.type !== ROLLING && strategy?.type !== "Recreate") {
      errors.push(notSupported("spec.strategy.type", strategy?.type, ["Recreate", ROLLING]));
    }
    if (strategy?.type === "Recreate" && strategy.rollingUpdate !== undefined) {
      const message = "may not be specified when strategy `type` is 'Recreate'";
      errors.push(forbidden("spec.strategy.rollingUpdate", message));
    }
    const { maxUnavailable, maxSurge } = strategy?.rollingUpdate ?? {};
    const isZero = (value: number | string | undefined): boolean => value === 0 || value === "0%";
    if (strategy?.rollingUpdate && isZero(maxUnavailable) && isZero(maxSurge)) {
      const message = "may not be 0 when `maxSurge` is 0";
      errors.push(invalid("spec.strategy.rollingUpdate.maxUnavailable", maxUnavailable, message));
    }
    if (progressDeadlineSeconds !== undefined && progressDeadlineSeconds <= minReadySeconds) {
      const message = "must be greater than minReadySeconds";
      errors.push(invalid("spec.progressDeadlineSeconds", progressDeadlineSeconds, message));
    }
    return errors;
  },
  validateUpdate: (next, old) => selectorChange(next.spec.selector, old.spec.selector),
  status: { prepare: (next, old) => ({ ...next, metadata: { ...next.metadata, labels: old.metadata.labels ?? {} } }) },
  scale: replicaScale<Deployment>(),
  table: tableOf<Deployment>([
    NAME,
    { name: "Ready", cell: ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}` },
    { name: "Up-to-date", cell: ({ status }) => status?.updatedReplicas ?? 0 },
    { name: "Available", cell: ({ status }) => status?.availableReplicas ?? 0 },
    AGE,
    ...containerColumns<Deployment>(({ spec }) => spec.template.spec?.containers ?? []),
    selectorColumn<Deployment>(({ spec }) => spec.selector),
  ]),
});
