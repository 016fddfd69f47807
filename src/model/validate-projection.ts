import type { DownwardAPIVolumeFile, KeyToPath, Volume, VolumeProjection } from "./generated/types.ts";
import type { Problems } from "./problems.ts";
import { isEnvField } from "./validate-env.ts";
import { volumePathProblem } from "./volume-path.ts";

const MOST_MODE = 0o777;

/** Checks the volumes whose files the agent writes: names, modes, and paths that must stay inside. */
export function checkWrittenVolume(path: string, volume: Volume, problems: Problems): void {
  const { configMap, secret, downwardAPI, projected } = volume;
  if (configMap !== undefined) checkObject(`${path}.configMap`, { field: "name", ...configMap }, problems);
  if (secret !== undefined) {
    const named = { field: "secretName", ...secret, ...(secret.secretName && { name: secret.secretName }) };
    checkObject(`${path}.secret`, named, problems);
  }
  if (downwardAPI !== undefined) {
    checkMode(`${path}.downwardAPI.defaultMode`, downwardAPI.defaultMode, problems);
    checkFields(`${path}.downwardAPI.items`, downwardAPI.items ?? [], problems);
  }
  if (projected === undefined) return;
  checkMode(`${path}.projected.defaultMode`, projected.defaultMode, problems);
  for (const [index, source] of (projected.sources ?? []).entries()) {
    checkProjection(`${path}.projected.sources[${index}]`, source, problems);
  }
}

function checkProjection(path: string, source: VolumeProjection, problems: Problems): void {
  const kinds = Object.keys(source);
  if (kinds.length !== 1) {
    const fix = kinds.length === 0 ? "name one, such as configMap" : `keep one of ${kinds.join(", ")}`;
    problems.add(path, undefined, { message: "must have exactly one source", fix });
  }
  const { configMap, secret, downwardAPI, serviceAccountToken: token, clusterTrustBundle: bundle } = source;
  if (configMap !== undefined) checkObject(`${path}.configMap`, { field: "name", ...configMap }, problems);
  if (secret !== undefined) checkObject(`${path}.secret`, { field: "name", ...secret }, problems);
  if (downwardAPI !== undefined) checkFields(`${path}.downwardAPI.items`, downwardAPI.items ?? [], problems);
  if (token !== undefined) {
    checkPath(`${path}.serviceAccountToken.path`, token.path, problems);
    const seconds = token.expirationSeconds ?? 3600;
    if (seconds < 600 || seconds > 2 ** 32) {
      const fix = "write 600 (ten minutes) or more";
      problems.add(`${path}.serviceAccountToken.expirationSeconds`, seconds, { message: "is out of range", fix });
    }
  }
  if (bundle === undefined) return;
  checkPath(`${path}.clusterTrustBundle.path`, bundle.path, problems);
  if ((bundle.name === undefined) === (bundle.signerName === undefined)) {
    const fix = "name either a bundle or a signer";
    problems.add(`${path}.clusterTrustBundle`, undefined, { message: "must have a name or a signerName", fix });
  }
}

interface ObjectVolume {
  readonly field: string;
  readonly name?: string;
  readonly items?: readonly KeyToPath[];
  readonly defaultMode?: number;
}

function checkObject(
  path: string,
  { field, name = "", items = [], defaultMode }: ObjectVolume,
  problems: Problems,
): void {
  if (name === "") problems.add(`${path}.${field}`, undefined, { message: "is required", fix: "name the object" });
  checkMode(`${path}.defaultMode`, defaultMode, problems);
  for (const [index, { key, path: file, mode }] of items.entries()) {
    const at = `${path}.items[${index}]`;
    if (key === "") problems.add(`${at}.key`, undefined, { message: "is required", fix: "name a key of the object" });
    checkPath(`${at}.path`, file, problems);
    checkMode(`${at}.mode`, mode, problems);
  }
}

function checkFields(path: string, items: readonly DownwardAPIVolumeFile[], problems: Problems): void {
  for (const [index, { path: file, fieldRef, resourceFieldRef, mode }] of items.entries()) {
    const at = `${path}[${index}]`;
    checkPath(`${at}.path`, file, problems);
    checkMode(`${at}.mode`, mode, problems);
    if ((fieldRef === undefined) === (resourceFieldRef === undefined)) {
      const fix = "keep one of fieldRef and resourceFieldRef";
      problems.add(at, undefined, { message: "must have exactly one source", fix });
    }
    if (fieldRef !== undefined && !isFileField(fieldRef.fieldPath)) {
      const fix = "use metadata.name, metadata.namespace, metadata.uid, metadata.labels or metadata.annotations";
      problems.add(`${at}.fieldRef.fieldPath`, fieldRef.fieldPath, { message: "cannot be shown in a file", fix });
    }
    if (resourceFieldRef !== undefined && !resourceFieldRef.containerName) {
      const fix = "name the container whose resources are meant";
      problems.add(`${at}.resourceFieldRef.containerName`, undefined, { message: "is required", fix });
    }
  }
}

/** Files show the metadata, whole maps included; addresses are not known when a volume is made. */
function isFileField(field: string): boolean {
  if (field === "metadata.labels" || field === "metadata.annotations") return true;
  return field.startsWith("metadata.") && isEnvField(field);
}

function checkPath(path: string, value: string, problems: Problems): void {
  const message = volumePathProblem(value);
  if (message !== undefined) problems.add(path, value, { message, fix: "write a relative path inside the volume" });
}

function checkMode(path: string, mode: number | undefined, problems: Problems): void {
  if (mode === undefined || (Number.isInteger(mode) && mode >= 0 && mode <= MOST_MODE)) return;
  problems.add(path, mode, { message: "is no file mode", fix: "write 0 to 0777 (511 in JSON)" });
}
