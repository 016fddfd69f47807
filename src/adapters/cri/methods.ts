import { method } from "../grpc/channel.ts";
import * as content from "./generated/containerd-content.ts";
import * as events from "./generated/containerd-events.ts";
import * as cri from "./generated/cri.ts";
import { Empty } from "./generated/google/protobuf/empty.ts";

const RUNTIME = "/runtime.v1.RuntimeService";
const IMAGES = "/runtime.v1.ImageService";
const EVENTS = "/containerd.services.events.v1.Events";
const CONTENT = "/containerd.services.content.v1.Content";

/** The methods of CRI's RuntimeService that the agent calls; a codec that is not named here is not in the bundle. */
export const runtimeService = {
  version: method(`${RUNTIME}/Version`, cri.VersionRequest, cri.VersionResponse),
  status: method(`${RUNTIME}/Status`, cri.StatusRequest, cri.StatusResponse),
  runtimeConfig: method(`${RUNTIME}/RuntimeConfig`, cri.RuntimeConfigRequest, cri.RuntimeConfigResponse),
  runPodSandbox: method(`${RUNTIME}/RunPodSandbox`, cri.RunPodSandboxRequest, cri.RunPodSandboxResponse),
  stopPodSandbox: method(`${RUNTIME}/StopPodSandbox`, cri.StopPodSandboxRequest, cri.StopPodSandboxResponse),
  removePodSandbox: method(`${RUNTIME}/RemovePodSandbox`, cri.RemovePodSandboxRequest, cri.RemovePodSandboxResponse),
  podSandboxStatus: method(`${RUNTIME}/PodSandboxStatus`, cri.PodSandboxStatusRequest, cri.PodSandboxStatusResponse),
  listPodSandbox: method(`${RUNTIME}/ListPodSandbox`, cri.ListPodSandboxRequest, cri.ListPodSandboxResponse),
  createContainer: method(`${RUNTIME}/CreateContainer`, cri.CreateContainerRequest, cri.CreateContainerResponse),
  startContainer: method(`${RUNTIME}/StartContainer`, cri.StartContainerRequest, cri.StartContainerResponse),
  stopContainer: method(`${RUNTIME}/StopContainer`, cri.StopContainerRequest, cri.StopContainerResponse),
  removeContainer: method(`${RUNTIME}/RemoveContainer`, cri.RemoveContainerRequest, cri.RemoveContainerResponse),
  containerStatus: method(`${RUNTIME}/ContainerStatus`, cri.ContainerStatusRequest, cri.ContainerStatusResponse),
  listContainers: method(`${RUNTIME}/ListContainers`, cri.ListContainersRequest, cri.ListContainersResponse),
  listContainerStats: method(
    `${RUNTIME}/ListContainerStats`,
    cri.ListContainerStatsRequest,
    cri.ListContainerStatsResponse,
  ),
  listPodSandboxStats: method(
    `${RUNTIME}/ListPodSandboxStats`,
    cri.ListPodSandboxStatsRequest,
    cri.ListPodSandboxStatsResponse,
  ),
  listMetricDescriptors: method(
    `${RUNTIME}/ListMetricDescriptors`,
    cri.ListMetricDescriptorsRequest,
    cri.ListMetricDescriptorsResponse,
  ),
  listPodSandboxMetrics: method(
    `${RUNTIME}/ListPodSandboxMetrics`,
    cri.ListPodSandboxMetricsRequest,
    cri.ListPodSandboxMetricsResponse,
  ),
  updateContainerResources: method(
    `${RUNTIME}/UpdateContainerResources`,
    cri.UpdateContainerResourcesRequest,
    cri.UpdateContainerResourcesResponse,
  ),
  updatePodSandboxResources: method(
    `${RUNTIME}/UpdatePodSandboxResources`,
    cri.UpdatePodSandboxResourcesRequest,
    cri.UpdatePodSandboxResourcesResponse,
  ),
  reopenContainerLog: method(
    `${RUNTIME}/ReopenContainerLog`,
    cri.ReopenContainerLogRequest,
    cri.ReopenContainerLogResponse,
  ),
  updateRuntimeConfig: method(
    `${RUNTIME}/UpdateRuntimeConfig`,
    cri.UpdateRuntimeConfigRequest,
    cri.UpdateRuntimeConfigResponse,
  ),
  execSync: method(`${RUNTIME}/ExecSync`, cri.ExecSyncRequest, cri.ExecSyncResponse),
  exec: method(`${RUNTIME}/Exec`, cri.ExecRequest, cri.ExecResponse),
  attach: method(`${RUNTIME}/Attach`, cri.AttachRequest, cri.AttachResponse),
  portForward: method(`${RUNTIME}/PortForward`, cri.PortForwardRequest, cri.PortForwardResponse),
  checkpointContainer: method(
    `${RUNTIME}/CheckpointContainer`,
    cri.CheckpointContainerRequest,
    cri.CheckpointContainerResponse,
  ),
  getContainerEvents: method(`${RUNTIME}/GetContainerEvents`, cri.GetEventsRequest, cri.ContainerEventResponse),
} as const;

/** The methods of CRI's ImageService that the agent calls. */
export const imageService = {
  listImages: method(`${IMAGES}/ListImages`, cri.ListImagesRequest, cri.ListImagesResponse),
  imageStatus: method(`${IMAGES}/ImageStatus`, cri.ImageStatusRequest, cri.ImageStatusResponse),
  pullImage: method(`${IMAGES}/PullImage`, cri.PullImageRequest, cri.PullImageResponse),
  removeImage: method(`${IMAGES}/RemoveImage`, cri.RemoveImageRequest, cri.RemoveImageResponse),
  imageFsInfo: method(`${IMAGES}/ImageFsInfo`, cri.ImageFsInfoRequest, cri.ImageFsInfoResponse),
} as const;

/** containerd's own event service on the same socket. */
export const eventService = {
  publish: method(`${EVENTS}/Publish`, events.PublishRequest, Empty),
  subscribe: method(`${EVENTS}/Subscribe`, events.SubscribeRequest, events.Envelope),
} as const;

/** containerd's content store on the same socket. */
export const contentService = {
  list: method(`${CONTENT}/List`, content.ListContentRequest, content.ListContentResponse),
  read: method(`${CONTENT}/Read`, content.ReadContentRequest, content.ReadContentResponse),
  listStatuses: method(`${CONTENT}/ListStatuses`, content.ListStatusesRequest, content.ListStatusesResponse),
  abort: method(`${CONTENT}/Abort`, content.AbortRequest, Empty),
} as const;
