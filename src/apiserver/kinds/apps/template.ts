import { isDeepStrictEqual } from "node:util";
import type { LabelSelector, PodTemplateSpec } from "../../../model/generated/types.ts";
import { matchesLabels } from "../../../model/label-selector.ts";
import { defaultPodSpec } from "../../../model/pod-defaults.ts";
import { labelQueryOf } from "../../select/label-query.ts";
import { type FieldError, IMMUTABLE, invalid, notSupported } from "../../status/field-error.ts";
import { templateErrors } from "../../validation/pod-template.ts";
import { ownedSelectorErrors } from "../../validation/selectors.ts";
import type { ScaleFields } from "../kind.ts";

/** A template with the defaults of its pods. */
export function defaultTemplate(template: PodTemplateSpec): PodTemplateSpec {
  return template.spec === undefined ? template : { ...template, spec: defaultPodSpec(template.spec) };
}

/** What is wrong with the selector and the template of a workload whose pods always run. */
export function workloadErrors(
  { selector, template }: { readonly selector?: LabelSelector; readonly template: PodTemplateSpec },
  kind: string,
): FieldError[] {
  const labels = template.metadata?.labels;
  const matches = (wanted: LabelSelector, found: Readonly<Record<string, string>>): boolean =>
    matchesLabels(wanted, found);
  const errors = [
    ...ownedSelectorErrors(selector, { labels, matches, kind }),
    ...templateErrors(template, "spec.template"),
  ];
  const policy = template.spec?.restartPolicy;
  if (policy !== undefined && policy !== "Always") {
    errors.push(notSupported("spec.template.spec.restartPolicy", policy, ["Always"]));
  }
  return errors;
}

/** An error if the selector changed. */
export function selectorChange(next: LabelSelector | undefined, old: LabelSelector | undefined): FieldError[] {
  return isDeepStrictEqual(next, old) ? [] : [invalid("spec.selector", next ?? null, IMMUTABLE)];
}

interface Replicated {
  readonly spec: { readonly replicas?: number; readonly selector: LabelSelector };
  readonly status?: { readonly replicas?: number };
}

/** `scale` of a kind with the usual fields. */
export function replicaScale<T extends Replicated>(): ScaleFields<T> {
  return {
    read: ({ spec, status }) => ({
      wanted: spec.replicas ?? 0,
      current: status?.replicas ?? 0,
      selector: labelQueryOf(spec.selector),
    }),
    withReplicas: (object, replicas) => ({ ...object, spec: { ...object.spec, replicas } }),
  };
}
