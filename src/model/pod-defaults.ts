import { ownValue } from "../lib/own-value.ts";
import type {
  Container,
  ContainerPort,
  EphemeralContainer,
  HTTPGetAction,
  Lifecycle,
  LifecycleHandler,
  Pod,
  PodSpec,
  Probe,
  ResourceRequirements,
} from "./generated/types.ts";
import { defaultPullPolicy } from "./image-ref.ts";
import { formatQuantity, parseQuantity, roundUpToMilli } from "./quantity.ts";
import { containerTotals } from "./resources.ts";
import { defaultVolume } from "./volume-defaults.ts";

/**
 * The pod with the defaults that the API server would have set: for pods that never passed one. Pure; applying it
 * twice changes nothing. The pod has passed `checkObject`, so required fields and types are there.
 */
export function defaultPod(pod: Pod): Pod {
  const { spec } = pod;
  const isOwnHost = spec.hostNetwork ?? false;
  const forContainer = <T extends Container | EphemeralContainer>(container: T): T =>
    withRequests(withHostPorts(container, isOwnHost));
  const defaulted = defaultPodSpec(spec);
  const whole: PodSpec = {
    ...defaulted,
    enableServiceLinks: spec.enableServiceLinks ?? true,
    containers: defaulted.containers.map(forContainer),
    ...(defaulted.initContainers && { initContainers: defaulted.initContainers.map(forContainer) }),
    ...(defaulted.ephemeralContainers && { ephemeralContainers: defaulted.ephemeralContainers.map(forContainer) }),
  };
  return withPodLevelRequests({ ...pod, spec: whole });
}

/** The defaults that a template of pods gets, too. */
export function defaultPodSpec(spec: PodSpec): PodSpec {
  const forContainer = <T extends Container | EphemeralContainer>(container: T): T => defaultContainer(container);
  return {
    ...spec,
    restartPolicy: spec.restartPolicy || "Always",
    dnsPolicy: spec.dnsPolicy || "ClusterFirst",
    schedulerName: spec.schedulerName || "default-scheduler",
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    securityContext: spec.securityContext ?? {},
    containers: spec.containers.map(forContainer),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(forContainer) }),
    ...(spec.ephemeralContainers && { ephemeralContainers: spec.ephemeralContainers.map(forContainer) }),
    ...(spec.volumes && { volumes: spec.volumes.map(defaultVolume) }),
    ...(spec.overhead && { overhead: roundList(spec.overhead) }),
  };
}

function defaultContainer<T extends Container | EphemeralContainer>(container: T): T {
  return {
    ...container,
    imagePullPolicy: container.imagePullPolicy || defaultPullPolicy(container.image ?? ""),
    terminationMessagePath: container.terminationMessagePath || "/dev/termination-log",
    terminationMessagePolicy: container.terminationMessagePolicy || "File",
    ...(container.ports && { ports: container.ports.map(defaultPort) }),
    ...(container.resources && { resources: roundResources(container.resources) }),
    ...(container.env && { env: container.env.map(defaultEnv) }),
    ...(container.livenessProbe && { livenessProbe: defaultProbe(container.livenessProbe) }),
    ...(container.readinessProbe && { readinessProbe: defaultProbe(container.readinessProbe) }),
    ...(container.startupProbe && { startupProbe: defaultProbe(container.startupProbe) }),
    ...(container.lifecycle && { lifecycle: defaultLifecycle(container.lifecycle) }),
  };
}

function defaultPort(port: ContainerPort): ContainerPort {
  return { ...port, protocol: port.protocol || "TCP" };
}

/** On the host's network every port is one of the host. */
function withHostPorts<T extends Container | EphemeralContainer>(container: T, isOwnHost: boolean): T {
  if (!isOwnHost || container.ports === undefined) return container;
  return {
    ...container,
    ports: container.ports.map((port) => ({ ...port, hostPort: port.hostPort || port.containerPort })),
  };
}

function roundResources(resources: ResourceRequirements): ResourceRequirements {
  const { limits, requests } = resources;
  return {
    ...resources,
    ...(limits && { limits: roundList(limits) }),
    ...(requests && { requests: roundList(requests) }),
  };
}

/** What is limited and not requested is requested as far as it is limited. */
function withRequests<T extends Container | EphemeralContainer>(container: T): T {
  const { resources } = container;
  const requests = { ...resources?.limits, ...resources?.requests };
  if (Object.keys(requests).length === 0) return container;
  return { ...container, resources: { ...resources, requests } };
}

/** A pod-level limit without a request: the sum of the containers' requests, else the limit itself. */
function withPodLevelRequests(pod: Pod): Pod {
  const { resources } = pod.spec;
  if (resources?.limits === undefined) return pod;
  const limits = roundList(resources.limits);
  const asked = containerTotals(pod, "requests");
  const requests = Object.entries(limits).map(([name, limit]) => {
    const amount = ownValue(asked, name);
    return [name, amount === undefined ? limit : formatQuantity(amount)];
  });
  const own = resources.requests && roundList(resources.requests);
  return {
    ...pod,
    spec: { ...pod.spec, resources: { ...resources, limits, requests: { ...Object.fromEntries(requests), ...own } } },
  };
}

function roundList(list: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(list).map(([name, text]) => [name, formatQuantity(roundUpToMilli(parseQuantity(text)))]),
  );
}

type EnvVar = NonNullable<Container["env"]>[number];

function defaultEnv(env: EnvVar): EnvVar {
  const field = env.valueFrom?.fieldRef;
  if (field === undefined) return env;
  return { ...env, valueFrom: { ...env.valueFrom, fieldRef: { ...field, apiVersion: field.apiVersion || "v1" } } };
}

function defaultProbe(probe: Probe): Probe {
  return {
    ...probe,
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
    ...(probe.httpGet && { httpGet: defaultHttpGet(probe.httpGet) }),
    ...(probe.grpc && { grpc: { ...probe.grpc, service: probe.grpc.service ?? "" } }),
  };
}

function defaultLifecycle(lifecycle: Lifecycle): Lifecycle {
  const forHandler = (handler: LifecycleHandler): LifecycleHandler =>
    handler.httpGet === undefined ? handler : { ...handler, httpGet: defaultHttpGet(handler.httpGet) };
  return {
    ...lifecycle,
    ...(lifecycle.postStart && { postStart: forHandler(lifecycle.postStart) }),
    ...(lifecycle.preStop && { preStop: forHandler(lifecycle.preStop) }),
  };
}

function defaultHttpGet(action: HTTPGetAction): HTTPGetAction {
  return { ...action, path: action.path || "/", scheme: action.scheme || "HTTP" };
}
