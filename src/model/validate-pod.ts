import type { Pod, PodSpec } from "./generated/types.ts";
import { isIpAddress } from "./ip.ts";
import { isDnsLabel, isDnsSubdomain, isLabelValue, isQualifiedName } from "./names.ts";
import type { FieldProblem } from "./problem.ts";
import { Problems } from "./problems.ts";
import { checkContainers } from "./validate-container.ts";
import { checkPodSecurity } from "./validate-security.ts";
import { checkVolumes } from "./validate-volume.ts";

const LABEL_FIX = "use at most 63 lower-case letters, digits and -, beginning and ending with a letter or digit";
const SUBDOMAIN_FIX = "use lower-case letters, digits, - and ., beginning and ending with a letter or digit";
const MAX_ANNOTATION_BYTES = 256 * 1024;

/** All that is wrong with a defaulted pod that is about to be created; empty when it may run. */
export function validatePod(pod: Pod): readonly FieldProblem[] {
  const problems = new Problems();
  checkMetadata(pod, problems);
  checkSpec(pod.spec, problems);
  const volumes = checkVolumes(pod.spec.volumes ?? [], problems);
  checkContainers(pod.spec, volumes, problems);
  checkPodSecurity(pod.spec, problems);
  return problems.list;
}

function checkMetadata({ metadata }: Pod, problems: Problems): void {
  const { name = "", namespace = "", uid = "", labels = {}, annotations = {} } = metadata;
  // It becomes part of paths and cgroup names.
  if (uid !== "" && !/^[A-Za-z0-9](?:[-A-Za-z0-9]{0,62}[A-Za-z0-9])?$/.test(uid)) {
    problems.add("metadata.uid", uid, {
      message: "is not usable as a UID",
      fix: "leave it out, or use letters, digits and -",
    });
  }
  if (name === "") problems.add("metadata.name", undefined, { message: "is required", fix: "name the pod" });
  else if (!isDnsSubdomain(name)) {
    problems.add("metadata.name", name, { message: "is not a valid pod name", fix: SUBDOMAIN_FIX });
  }
  if (namespace !== "" && !isDnsLabel(namespace)) {
    problems.add("metadata.namespace", namespace, { message: "is not a valid namespace", fix: LABEL_FIX });
  }
  checkLabels("metadata.labels", labels, problems);
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    size += key.length + value.length;
    if (!isQualifiedName(key.toLowerCase())) {
      problems.add("metadata.annotations", key, {
        message: "has an invalid key",
        fix: "write it as name or domain/name",
      });
    }
  }
  if (size > MAX_ANNOTATION_BYTES) {
    problems.add("metadata.annotations", undefined, {
      message: "are too large",
      fix: "keep them below 256 KiB together",
    });
  }
}

function checkLabels(path: string, labels: Readonly<Record<string, string>>, problems: Problems): void {
  for (const [key, value] of Object.entries(labels)) {
    if (!isQualifiedName(key)) {
      problems.add(path, key, { message: "has an invalid key", fix: "write it as name or domain/name" });
    }
    if (!isLabelValue(value)) {
      const fix = "use at most 63 letters, digits, -, _ and ., beginning and ending with a letter or digit";
      problems.add(`${path}.${key}`, value, { message: "is not a valid label value", fix });
    }
  }
}

function checkSpec(spec: PodSpec, problems: Problems): void {
  problems.oneOf("spec.restartPolicy", spec.restartPolicy, ["Always", "OnFailure", "Never"]);
  problems.oneOf("spec.preemptionPolicy", spec.preemptionPolicy, ["PreemptLowerPriority", "Never"]);
  problems.oneOf("spec.os.name", spec.os?.name, ["linux", "windows"]);
  const limitless = Number.POSITIVE_INFINITY;
  problems.range("spec.terminationGracePeriodSeconds", spec.terminationGracePeriodSeconds, [0, limitless]);
  problems.range("spec.activeDeadlineSeconds", spec.activeDeadlineSeconds, [1, 2 ** 31 - 1]);
  for (const field of ["hostname", "subdomain"] as const) {
    const value = spec[field];
    if (value && !isDnsLabel(value)) {
      problems.add(`spec.${field}`, value, { message: "is not a valid host name", fix: LABEL_FIX });
    }
  }
  for (const field of ["serviceAccountName", "priorityClassName", "hostnameOverride"] as const) {
    const value = spec[field];
    if (value && !isDnsSubdomain(value)) {
      problems.add(`spec.${field}`, value, { message: "is not a valid name", fix: SUBDOMAIN_FIX });
    }
  }
  checkLabels("spec.nodeSelector", spec.nodeSelector ?? {}, problems);
  checkTolerations(spec, problems);
  checkDns(spec, problems);
}

function checkTolerations(spec: PodSpec, problems: Problems): void {
  for (const [index, toleration] of (spec.tolerations ?? []).entries()) {
    const path = `spec.tolerations[${index}]`;
    problems.oneOf(`${path}.operator`, toleration.operator, ["", "Equal", "Exists", "Lt", "Gt"]);
    problems.oneOf(`${path}.effect`, toleration.effect, ["", "NoSchedule", "PreferNoSchedule", "NoExecute"]);
    if (!toleration.key && toleration.operator !== "Exists") {
      const fix = "name a key, or set operator: Exists";
      problems.add(`${path}.operator`, toleration.operator, { message: "must be Exists when there is no key", fix });
    }
    if (toleration.operator === "Exists" && toleration.value) {
      const fix = "remove the value, or set operator: Equal";
      problems.add(`${path}.value`, toleration.value, { message: "must be empty when the operator is Exists", fix });
    }
  }
}

function checkDns(spec: PodSpec, problems: Problems): void {
  problems.oneOf("spec.dnsPolicy", spec.dnsPolicy, ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
  const { nameservers = [], searches = [], options = [] } = spec.dnsConfig ?? {};
  if (spec.dnsPolicy === "None" && nameservers.length === 0) {
    const fix = "name at least one server, or choose another dnsPolicy";
    problems.add("spec.dnsConfig.nameservers", undefined, { message: "is required when dnsPolicy is None", fix });
  }
  if (nameservers.length > 3) {
    problems.add("spec.dnsConfig.nameservers", nameservers, { message: "has too many", fix: "name at most 3 servers" });
  }
  for (const [index, server] of nameservers.entries())
    checkIp(`spec.dnsConfig.nameservers[${index}]`, server, problems);
  const isTooLong = searches.join(" ").length > 2048;
  if (searches.length > 32 || isTooLong) {
    const fix = "keep at most 32 domains and 2048 characters";
    problems.add("spec.dnsConfig.searches", searches, { message: "has too many", fix });
  }
  for (const [index, search] of searches.entries()) {
    const domain = search === "." ? "" : search.replace(/\.$/, "").toLowerCase().replaceAll("_", "-");
    if (domain === "" || isDnsSubdomain(domain)) continue;
    problems.add(`spec.dnsConfig.searches[${index}]`, search, { message: "is not a domain", fix: SUBDOMAIN_FIX });
  }
  for (const [index, option] of options.entries()) {
    if (option.name) continue;
    problems.add(`spec.dnsConfig.options[${index}].name`, undefined, {
      message: "is required",
      fix: "name the option",
    });
  }
  for (const [index, alias] of (spec.hostAliases ?? []).entries()) {
    const path = `spec.hostAliases[${index}]`;
    checkIp(`${path}.ip`, alias.ip, problems);
    for (const [at, name] of (alias.hostnames ?? []).entries()) {
      if (isDnsSubdomain(name)) continue;
      problems.add(`${path}.hostnames[${at}]`, name, { message: "is not a valid host name", fix: SUBDOMAIN_FIX });
    }
  }
}

function checkIp(path: string, value: string, problems: Problems): void {
  if (isIpAddress(value)) return;
  problems.add(path, value, { message: "is not an IP address", fix: "write it like 10.0.0.10 or fd00::10" });
}
