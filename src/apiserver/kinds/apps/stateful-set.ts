import { isDeepStrictEqual } from "node:util";
import { STATEFUL_SETS } from "../../../adapters/kubeapi/index.ts";
import type {
  PersistentVolumeClaim,
  PodTemplateSpec,
  StatefulSet,
  StatefulSetSpec,
} from "../../../model/generated/types.ts";
import { type FieldError, forbidden, notSupported } from "../../status/field-error.ts";
import { AGE, containerColumns, NAME, tableOf } from "../../tables/columns.ts";
import { nonNegative } from "../../validation/numbers.ts";
import { defineKind } from "../kind.ts";
import { claimSpecErrors } from "../storage/persistent-volume-claim.ts";
import { defaultTemplate, replicaScale, workloadErrors } from "./template.ts";

const ROLLING = "RollingUpdate";
const MAY_CHANGE =
  "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const MUTABLE = [
  ...["replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds"],
  "persistentVolumeClaimRetentionPolicy",
];

export const statefulSetKind = defineKind<StatefulSet>({
  resource: STATEFUL_SETS,
  shortNames: ["sts"],
  categories: ["all"],
  hasGeneration: true,
  defaults: (set) => ({ ...set, spec: defaultSpec(set.spec) }),
  validate: ({ spec }) => [
    ...(["OrderedReady", "Parallel"].includes(spec.podManagementPolicy ?? "")
      ? []
      : [notSupported("spec.podManagementPolicy", spec.podManagementPolicy, ["OrderedReady", "Parallel"])]),
    ...([ROLLING, "OnDelete"].includes(spec.updateStrategy?.type ?? "")
      ? []
      : [notSupported("spec.updateStrategy", spec.updateStrategy, [ROLLING, "OnDelete"])]),
    ...nonNegative(spec.updateStrategy?.rollingUpdate?.partition, "spec.updateStrategy.rollingUpdate.partition"),
    ...nonNegative(spec.replicas, "spec.replicas"),
    ...nonNegative(spec.minReadySeconds, "spec.minReadySeconds"),
    ...nonNegative(spec.ordinals?.start, "spec.ordinals.start"),
    ...(spec.volumeClaimTemplates ?? []).flatMap((claim, index) =>
      claimSpecErrors(claim.spec ?? {}, `spec.volumeClaimTemplates[${index}].spec`),
    ),
    ...workloadErrors({ ...spec, template: withClaims(spec) }, "statefulset"),
  ],
  validateUpdate: (next, old) => specChange(next.spec, old.spec),
  status: {},
  scale: replicaScale<StatefulSet>(),
  table: tableOf<StatefulSet>([
    NAME,
    { name: "Ready", cell: ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec.replicas ?? 0}` },
    AGE,
    ...containerColumns<StatefulSet>(({ spec }) => spec.template.spec?.containers ?? []),
  ]),
});

function defaultSpec(spec: StatefulSetSpec): StatefulSetSpec {
  const { updateStrategy, persistentVolumeClaimRetentionPolicy: retention } = spec;
  const type = updateStrategy?.type || ROLLING;
  const rolling = updateStrategy?.type ? updateStrategy.rollingUpdate : (updateStrategy?.rollingUpdate ?? {});
  const hasRolling = type === ROLLING && rolling !== undefined;
  return {
    ...spec,
    podManagementPolicy: spec.podManagementPolicy || "OrderedReady",
    updateStrategy: {
      ...updateStrategy,
      type,
      ...(hasRolling && { rollingUpdate: { ...rolling, partition: rolling.partition ?? 0 } }),
    },
    persistentVolumeClaimRetentionPolicy: {
      whenDeleted: retention?.whenDeleted || "Retain",
      whenScaled: retention?.whenScaled || "Retain",
    },
    replicas: spec.replicas ?? 1,
    revisionHistoryLimit: spec.revisionHistoryLimit ?? 10,
    template: defaultTemplate(spec.template),
    ...(spec.volumeClaimTemplates && { volumeClaimTemplates: spec.volumeClaimTemplates.map(defaultClaim) }),
  };
}

function defaultClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return {
    ...claim,
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    spec: { ...claim.spec, volumeMode: claim.spec?.volumeMode ?? "Filesystem" },
    status: { ...claim.status, phase: claim.status?.phase ?? "Pending" },
  };
}

/** The template as the controller completes it: a volume for each claim, name and subdomain of its own. */
function withClaims({ template, volumeClaimTemplates = [] }: StatefulSetSpec): PodTemplateSpec {
  if (template.spec === undefined) return template;
  const { hostname: _hostname, subdomain: _subdomain, ...spec } = template.spec;
  const claims = new Set(volumeClaimTemplates.map(({ metadata }) => metadata?.name ?? ""));
  const volumes = [
    ...[...claims].map((name) => ({ name, persistentVolumeClaim: { claimName: name } })),
    ...(spec.volumes ?? []).filter(({ name }) => !claims.has(name)),
  ];
  return { ...template, spec: { ...spec, volumes } };
}

function specChange(next: StatefulSetSpec, old: StatefulSetSpec): FieldError[] {
  const fixed = (spec: StatefulSetSpec): object =>
    Object.fromEntries(Object.entries(spec).filter(([name]) => !MUTABLE.includes(name)));
  return isDeepStrictEqual(fixed(next), fixed(old)) ? [] : [forbidden("spec", MAY_CHANGE)];
}
