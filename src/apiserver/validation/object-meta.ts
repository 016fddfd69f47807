import type { ObjectMeta, OwnerReference } from "../../model/generated/types.ts";
import { type FieldError, forbidden, IMMUTABLE, invalid, required, tooLong } from "../status/field-error.ts";
import { labelKeyProblems, labelProblems, labelValueProblems } from "./formats.ts";

const MOST_ANNOTATION_BYTES = 256 * 1024;
const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** What is wrong with the metadata of any object, beside its name. */
export function validateMeta(meta: ObjectMeta, { isNamespaced }: { readonly isNamespaced: boolean }): FieldError[] {
  const { namespace = "", labels = {}, annotations = {}, ownerReferences = [], finalizers = [] } = meta;
  const errors: FieldError[] = [];
  if (!isNamespaced && namespace !== "") errors.push(forbidden("metadata.namespace", "not allowed on this type"));
  if (isNamespaced && namespace === "") errors.push(required("metadata.namespace"));
  else if (isNamespaced) {
    errors.push(...labelProblems(namespace).map((message) => invalid("metadata.namespace", namespace, message)));
  }
  errors.push(...validateLabels(labels, "metadata.labels"));
  errors.push(...validateAnnotations(annotations, "metadata.annotations"));
  errors.push(...validateOwners(ownerReferences));
  for (const finalizer of finalizers) {
    errors.push(...labelKeyProblems(finalizer).map((message) => invalid("metadata.finalizers", finalizer, message)));
  }
  if (finalizers.includes(ORPHAN) && finalizers.includes(FOREGROUND)) {
    const message = `finalizer ${ORPHAN} and ${FOREGROUND} cannot be both set`;
    errors.push(invalid("metadata.finalizers", finalizers, message));
  }
  return errors;
}

/** What is wrong with a change of the metadata of any object. */
export function validateMetaUpdate(meta: ObjectMeta, old: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (old.deletionTimestamp !== undefined) {
    const added = (meta.finalizers ?? []).filter((name) => !(old.finalizers ?? []).includes(name)).sort();
    if (added.length > 0) {
      const list = `[]string{${added.map((name) => JSON.stringify(name)).join(", ")}}`;
      const message = `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`;
      errors.push(forbidden("metadata.finalizers", message));
    }
  }
  const immutable = ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"] as const;
  for (const field of [...immutable, "deletionGracePeriodSeconds"] as const) {
    if (meta[field] !== old[field]) errors.push(invalid(`metadata.${field}`, meta[field] ?? null, IMMUTABLE));
  }
  return errors;
}

export function validateLabels(labels: Readonly<Record<string, string>>, path: string): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...labelKeyProblems(key).map((message) => invalid(path, key, message)),
    ...labelValueProblems(value).map((message) => invalid(path, value, message)),
  ]);
}

export function validateAnnotations(annotations: Readonly<Record<string, string>>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
    errors.push(...labelKeyProblems(key.toLowerCase()).map((message) => invalid(path, key, message)));
  }
  if (bytes > MOST_ANNOTATION_BYTES) errors.push(tooLong(path, MOST_ANNOTATION_BYTES));
  return errors;
}

function validateOwners(owners: readonly OwnerReference[]): FieldError[] {
  const path = "metadata.ownerReferences";
  const errors: FieldError[] = [];
  let controller: string | undefined;
  for (const owner of owners) {
    const { apiVersion, kind, name, uid } = owner;
    if (apiVersion === "" || apiVersion.endsWith("/")) {
      errors.push(invalid(`${path}.apiVersion`, apiVersion, "version must not be empty"));
    }
    for (const [field, value] of Object.entries({ kind, name, uid })) {
      if (value === "") errors.push(invalid(`${path}.${field}`, value, "must not be empty"));
    }
    if (apiVersion === "v1" && kind === "Event") {
      errors.push(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"));
    }
    if (owner.controller !== true) continue;
    const word = `${kind}/${name}`;
    if (controller !== undefined) {
      const found = `Only one reference can have Controller set to true. Found "true" in references for`;
      errors.push(invalid(path, owners, `${found} ${controller} and ${word}`));
    }
    controller ??= word;
  }
  return errors;
}
