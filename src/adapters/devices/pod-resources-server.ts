import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { method } from "../grpc/channel.ts";
import { type GrpcListener, listenGrpc, serve } from "../grpc/server.ts";
import * as wire from "./generated/podresources.ts";

const V1 = "/v1.PodResourcesLister";
const list = method(`${V1}/List`, wire.ListPodResourcesRequest, wire.ListPodResourcesResponse);
const allocatable = method(
  `${V1}/GetAllocatableResources`,
  wire.AllocatableResourcesRequest,
  wire.AllocatableResourcesResponse,
);
const get = method(`${V1}/Get`, wire.GetPodResourcesRequest, wire.GetPodResourcesResponse);
/** The same messages with fewer fields. */
const listAlpha = method(
  "/v1alpha1.PodResourcesLister/List",
  wire.ListPodResourcesRequest,
  wire.ListPodResourcesResponse,
);

/** What the pod resources API answers. An error is answered as it is. */
export interface PodResourcesAnswers {
  list(): wire.ListPodResourcesResponse;
  listAlpha(): wire.ListPodResourcesResponse;
  allocatable(): wire.AllocatableResourcesResponse;
  get(request: wire.GetPodResourcesRequest): wire.GetPodResourcesResponse;
}

/** Listens on the socket of the pod resources API, in a directory that only root may enter. */
export function listenPodResources(path: string, answers: PodResourcesAnswers): Promise<GrpcListener> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  return listenGrpc({ path, mode: 0o755 }, [
    serve(list, () => answers.list()),
    serve(listAlpha, () => answers.listAlpha()),
    serve(allocatable, () => answers.allocatable()),
    serve(get, (request) => answers.get(request)),
  ]);
}
