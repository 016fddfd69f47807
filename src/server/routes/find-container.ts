import { type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import { CodedError } from "../../lib/errors.ts";
import type { ContainerStatus, Pod } from "../../model/generated/types.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { ApiDeps } from "../api-deps.ts";

/** The names of all containers of a pod, of every kind. */
export function containerNames(pod: Pod): string[] {
  return allContainers(pod).map(({ name }) => name);
}

/** The status of a container of any kind. */
export function containerStatus({ status }: Pod, name: string): ContainerStatus | undefined {
  const all = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  return all.find((one) => one.name === name);
}

/** The pod of a path, by namespace and name; 404 when there is none. */
export function podOf(deps: ApiDeps, { params }: RouteRequest): Pod | RouteAnswer {
  return deps.pods.find(params["namespace"] ?? "", params["pod"] ?? "") ?? textAnswer(404, "pod does not exist\n");
}

export function isAnswer(value: object): value is RouteAnswer {
  return "status" in value && typeof value.status === "number";
}

/** The HTTP answer for an error of the runtime; any other error is a bug and rethrown. */
export function runtimeRefusal(error: unknown): RouteAnswer {
  if (!(error instanceof CodedError)) throw error;
  switch (error.code) {
    case "NotFound":
      return textAnswer(404, `${error.message}\n`);
    case "ResourceExhausted":
      return { ...textAnswer(429, `${error.message}\n`), headers: { "Retry-After": "60" } };
    default:
      return textAnswer(500, `${error.message}\n`);
  }
}
