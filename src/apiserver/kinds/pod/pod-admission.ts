import { PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, SERVICE_ACCOUNTS } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { Container, Pod, PodSpec, Toleration, Volume } from "../../../model/generated/types.ts";
import { CONFIG_MIRROR_ANNOTATION } from "../../../model/labels.ts";
import { forbiddenRequest, type StatusError } from "../../status/status-error.ts";
import type { WriteContext } from "../kind.ts";

const TOKEN_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";
/** An hour and a few seconds: how kubelets recognize tokens that may live longer than they say. */
const TOKEN_SECONDS = 3607;
const TOLERATED_SECONDS = 300;
const ABSENT_TAINTS = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/** What the admission plugins of a cluster do to a new pod. Throws `StatusError` if one refuses it. */
export function admitPod(pod: Pod, context: WriteContext): Pod {
  const isMirror = ownValue(pod.metadata.annotations ?? {}, CONFIG_MIRROR_ANNOTATION) !== undefined;
  const steps = [isMirror ? unchanged : withServiceAccount, withPriority, withTolerations, withRuntimeClass];
  return steps.reduce((admitted, step) => step(admitted, context), pod);
}

function unchanged(pod: Pod): Pod {
  return pod;
}

function refused(pod: Pod, why: string): StatusError {
  return forbiddenRequest(PODS, pod.metadata.name || pod.metadata.generateName || "", why);
}

function withServiceAccount(pod: Pod, { read, suffix }: WriteContext): Pod {
  const { spec } = pod;
  const { namespace = "" } = pod.metadata;
  const name = spec.serviceAccountName || "default";
  const account = read.get(SERVICE_ACCOUNTS, { namespace, name });
  if (account === undefined) {
    throw refused(pod, `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`);
  }
  const secrets = spec.imagePullSecrets ?? account.imagePullSecrets;
  const named: PodSpec = {
    ...spec,
    serviceAccountName: name,
    serviceAccount: name,
    ...(secrets && { imagePullSecrets: secrets }),
  };
  const isMounted = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  return { ...pod, spec: isMounted ? withToken(named, suffix) : named };
}

/** Mounts a token into every container that has nothing at its place. */
function withToken(spec: PodSpec, suffix: () => string): PodSpec {
  const lacks = ({ volumeMounts = [] }: Container): boolean =>
    !volumeMounts.some(({ mountPath }) => mountPath === TOKEN_DIRECTORY);
  const { containers, initContainers = [] } = spec;
  if (![...containers, ...initContainers].some(lacks)) return spec;
  const volume = tokenVolume(`kube-api-access-${suffix()}`);
  const mounted = (container: Container): Container => {
    if (!lacks(container)) return container;
    const mount = { name: volume.name, readOnly: true, mountPath: TOKEN_DIRECTORY };
    return { ...container, volumeMounts: [...(container.volumeMounts ?? []), mount] };
  };
  return {
    ...spec,
    containers: containers.map(mounted),
    ...(initContainers.length > 0 && { initContainers: initContainers.map(mounted) }),
    volumes: [...(spec.volumes ?? []), volume],
  };
}

function tokenVolume(name: string): Volume {
  const sources = [
    { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    {
      downwardAPI: {
        items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
      },
    },
  ];
  return { name, projected: { sources, defaultMode: 0o644 } };
}

function withPriority(pod: Pod, { read }: WriteContext): Pod {
  const { spec } = pod;
  const name = spec.priorityClassName ?? "";
  const all = read.list(PRIORITY_CLASSES);
  const found = name === "" ? lowest(all.filter(({ globalDefault }) => globalDefault)) : all.find(isNamed(name));
  if (name !== "" && found === undefined) throw refused(pod, `no PriorityClass with name ${name} was found`);
  const priority = found?.value ?? 0;
  if (spec.priority !== undefined && spec.priority !== priority) {
    throw refused(
      pod,
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`,
    );
  }
  const preemptionPolicy = spec.preemptionPolicy ?? found?.preemptionPolicy ?? "PreemptLowerPriority";
  const className = found?.metadata.name ?? "";
  const named = className === "" ? {} : { priorityClassName: className };
  return { ...pod, spec: { ...spec, ...named, priority, preemptionPolicy } };
}

function isNamed(name: string): (object: { readonly metadata: { readonly name?: string } }) => boolean {
  return ({ metadata }) => metadata.name === name;
}

/** Of several defaults the lowest counts, as in Kubernetes. */
function lowest<T extends { readonly value?: number }>(classes: readonly T[]): T | undefined {
  return [...classes].sort((a, b) => (a.value ?? 0) - (b.value ?? 0))[0];
}

/** Pods outlive a short absence of their node. */
function withTolerations(pod: Pod): Pod {
  const tolerations = pod.spec.tolerations ?? [];
  const tolerates = (key: string): boolean =>
    tolerations.some((one) => {
      const isKey = !one.key || one.key === key;
      return isKey && (!one.effect || one.effect === "NoExecute");
    });
  const missing = ABSENT_TAINTS.filter((key) => !tolerates(key));
  if (missing.length === 0) return pod;
  const added = missing.map(
    (key): Toleration => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: TOLERATED_SECONDS }),
  );
  return { ...pod, spec: { ...pod.spec, tolerations: [...tolerations, ...added] } };
}

function withRuntimeClass(pod: Pod, { read }: WriteContext): Pod {
  const { spec } = pod;
  const name = spec.runtimeClassName ?? "";
  if (name === "") return pod;
  const found = read.get(RUNTIME_CLASSES, { name });
  if (found === undefined) throw refused(pod, `pod rejected: RuntimeClass "${name}" not found`);
  const { overhead, scheduling } = found;
  const nodeSelector = { ...scheduling?.nodeSelector, ...spec.nodeSelector };
  const tolerations = [...(spec.tolerations ?? []), ...(scheduling?.tolerations ?? [])];
  return {
    ...pod,
    spec: {
      ...spec,
      ...(overhead?.podFixed && { overhead: overhead.podFixed }),
      ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
      ...(tolerations.length > 0 && { tolerations }),
    },
  };
}
